"""Types of streams that somebody else wrote: what is wrong with one is told of its source, and no other source stands still for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gateway.tests.process import COMMAND, wait_for
from gateway.tests.sources.one_source import SHORT, come, one_source, state
from skerry.sources.opening import THREADS
from skerry.sources.stream_type import AddressError, types
from skerry.sources.tcp_lines import TcpLines

POINTS = """[skerry.streams]
faulty = gateway.tests.sources.own_types:Faulty
waiting = gateway.tests.sources.own_types:Waiting
missing = gateway.tests.sources.nowhere:Missing
function = json:loads
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with types of its own, for this process and those that it starts."""
    package = tmp_path / "package" / "own-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(package.parent))
    here = Path(__file__).parents[3]
    monkeypatch.setenv("PYTHONPATH", f"{package.parent}:{here}")


@pytest.mark.usefixtures("installed")
def test_a_type_that_cannot_be_loaded_is_no_other_types_trouble() -> None:
    found = types()
    assert {"tcp", "missing", "function"} <= {*found}
    assert found["tcp"] is TcpLines
    with pytest.raises(
        AddressError,
        match=r"'missing' cannot be loaded from gateway\.tests\.sources\.nowhere:Missing: Module",
    ):
        found["missing"]
    with pytest.raises(AddressError, match=r"'function': json:loads is no class whose base is .*StreamType"):
        found["function"]


@pytest.mark.usefixtures("installed")
def test_trying_a_type_whose_read_never_returns_ends_when_its_time_is_over(tmp_path: Path) -> None:
    ran = subprocess.run(
        [COMMAND, "stream", "try", "faulty://localhost/hangs", "--for", "1s", "--data", str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert ran.returncode == 1
    assert "it is open, and nothing came in 1s: --for waits longer" in ran.stderr


@pytest.mark.usefixtures("installed")
def test_what_a_type_does_wrong_is_told_of_its_source_alone(tmp_path: Path) -> None:
    (tmp_path / "streams").mkdir()
    (tmp_path / "streams" / "rain.csv").write_text("7,harbour,\n")
    told = {
        "faulty://localhost/nothing": "TypeError: read gave None: a value is bytes or a mapping of fields; tried again",
        "faulty://localhost/text": "TypeError: read gave '0.5': a value is bytes or a mapping",
        "faulty://localhost/over": "read raised StopIteration: what has ended returns Signal.END; tried again",
        "faulty://localhost/exit": "read raised SystemExit: what has ended",
        "faulty://localhost/kept": "kept(1): KeyError: 1",
        "faulty://localhost/init": "no dice; tried again",
        "faulty://localhost/init?of=3": "option 'of' is none of faulty's: there are none",
        "waiting://localhost": "what it waited for was cancelled; tried again",
        "missing://localhost": "type of streams 'missing' cannot be loaded",
        "function://localhost": "json:loads is no class",
    }
    brings = ["half", "proxy", "naive", *["hangs"] * (THREADS - 10)]
    addresses = [
        *told,
        *(f"faulty://localhost/{what}" for what in brings),
        "file:rain.csv?format=csv&from=start",
    ]
    with one_source([], tmp_path, addresses, SHORT) as (gateway, query):
        found = sorted(row[:3] for row in come(gateway, query, 5))
        half, kept = len(told) + 1, [*told].index("faulty://localhost/kept") + 1
        assert found == [
            (kept, 3.0, None), (half, 2.0, "whole"), (half + 1, 4.0, None), (half + 2, 5.0, None), (len(addresses), 7.0, "harbour"),
        ]  # fmt: skip
        for number, (address, why) in enumerate(told.items()):
            wait_for(lambda number=number, why=why: why in state(gateway, number)["why"])
            assert state(gateway, number)["address"] == address
        wait_for(lambda: state(gateway, half - 1)["misfits"] == 1)
        assert "it cannot be stored, 'utf-8' codec can't encode" in state(gateway, half - 1)["sample"][0]
        assert state(gateway, half - 1)["rows"] == 1
        assert gateway.sources.trouble is None
