"""What may include what."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LAYERS = Path(__file__).parents[2] / "tools" / "layers.py"


def said(folder: Path, **files: list[str]) -> list[str]:
    """What is said of files that include others, but for LOOPS of the firmware itself; two underscores stand for a slash, one at the end
    for a header."""
    for name, others in files.items():
        path = folder / (name.rstrip("_").replace("__", "/") + (".h" if name.endswith("_") else ".c"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f'#include "{other}"\n' for other in others))
    command = [sys.executable, str(LAYERS), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("LOOPS ")]
    assert done.returncode == (1 if done.stderr else 0)
    return lines


def test_the_firmware_keeps_its_layers() -> None:
    done = subprocess.run(
        [sys.executable, str(LAYERS)], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_lies_below_may_be_included(tmp_path: Path) -> None:
    files = {
        "net__mac__mac": ["wire.h", "board.h", "lib/crc.h", "kernel/timer.h", "drivers/radio.h", "net/app.h"]
    }
    headers = {
        name: [] for name in ("include__wire_", "lib__crc_", "kernel__timer_", "drivers__radio_", "net__app_")
    }
    assert said(tmp_path, main=["net/mac/mac.h"], net__mac__mac_=[], **files, **headers) == []


@pytest.mark.parametrize(
    ("file", "other", "message"),
    [
        ("net/routing/tree.c", "query/srt.h", "net/routing/ includes query/srt.h, which is above it: net/routing/ declares what it needs, "
         "and query/ implements it"),
        ("net/mac/mac.c", "net/routing/tree.h", "net/mac/ includes net/routing/tree.h, which is above it: net/mac/ declares what it "
         "needs, and net/routing/ implements it"),
        ("net/root/line.c", "net/health/status.h", "net/root/ includes net/health/status.h, which is beside it: net/root/ declares "
         "what it needs, and net/health/ implements it"),
        ("lib/crc.c", "kernel/timer.h", "lib/ includes kernel/timer.h, which is above it: lib/ declares what it needs, and kernel/ "
         "implements it"),
        ("radios/chip.c", "kernel/timer.h", "radios/chip is in no layer: LAYERS in tools/layers.py says where it stands"),
    ],
)  # fmt: skip
def test_what_lies_above_or_beside_may_not(tmp_path: Path, file: str, other: str, message: str) -> None:
    one, two = file.removesuffix(".c").replace("/", "__"), other.removesuffix(".h").replace("/", "__") + "_"
    assert said(tmp_path, **{one: ["wire.h", other], two: []}) == [f"{file}:2: {message}"]


def test_a_loop_is_named_with_its_way(tmp_path: Path) -> None:
    (line,) = said(
        tmp_path,
        query__a=["query/b.h"],
        query__b_=[],
        query__b=["query/c.h"],
        query__c_=["query/a.h"],
        query__a_=[],
    )
    where, _, way = line.partition(": a loop: ")
    first, *rest = way.split(" > ")
    assert rest[-1] == first
    assert sorted(rest) == ["query/a", "query/b", "query/c"]
    assert where in ("query/a.c:1", "query/b.c:1", "query/c.h:1")


def test_a_pair_that_is_allowed_and_not_needed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(LAYERS.parent)!r}); import layers; "
         "print(*layers.loops(list(layers.includes(layers.Path(sys.argv[1]))), (('net/a', 'net/b'),)))", str(tmp_path)],
        capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == (
        "LOOPS in tools/layers.py: net/a and net/b do not include each other any more: remove them"
    )
