"""The product away from its checkout: a wheel of the sdist in an environment of its own, and a checkout that was copied."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

from skerry_testbed import built

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("skerry_built")]

#: As a user's file in a folder of his own.
TESTS = """
from skerry_testbed import built
from skerry_testbed.pytest import disc, grid
from skerry_protocol.codes import PacketType

def test_motes_of_both_boards_report(network):
    net = network(grid(2, 1, spacing=10, boards=("iris", "cc2538")), radio=disc(15), seed=3)
    net.advance("20s")
    assert {record.body.node for record in net.line.of(PacketType.STATUS)} == {0, 1}
    assert built.BUILD == built.INSTALLED
"""
LIMIT_S = 240
#: What `skerry` does.
CALL = "from skerry.cli.entry import main; main()"


def run(*command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SKERRY_BUILD")}
    return subprocess.run(
        [*map(str, command)], cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )  # fmt: skip


def done(*command: object, cwd: Path) -> str:
    ended = run(*command, cwd=cwd)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def environment(folder: Path) -> Path:
    """One without skerry, whose other packages are those of this one. Returns its Python."""
    done(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    [packages] = folder.glob("lib/python3*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From the sdist's own sources; what `make` has compiled already is not compiled again."""
    folder = tmp_path_factory.mktemp("wheel")
    done(sys.executable, "setup.py", "-q", "egg_info", "-e", folder, "sdist", "-d", folder, cwd=built.PROJECT)
    [archive] = folder.glob("*.tar.gz")
    with tarfile.open(archive) as sources:
        sources.extractall(folder, filter="data")
    [unpacked] = (path for path in folder.glob("skerry-*") if path.is_dir())
    for part in ("firmware", "testbed"):
        shutil.copytree(built.PROJECT / "build" / part, unpacked / "build" / part)
    done(sys.executable, "setup.py", "-q", "bdist_wheel", "-d", folder, cwd=unpacked)
    [made] = folder.glob("*.whl")
    shutil.rmtree(unpacked)
    return made


def test_an_installed_wheel_runs_motes_and_tests_anywhere(wheel: Path, tmp_path: Path) -> None:
    assert wheel.name.startswith("skerry-0.1.0-py3-none-linux_")
    python = environment(tmp_path / "fresh")
    own = tmp_path / "own"
    own.mkdir()
    done(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=own,
    )
    (own / "test_own.py").write_text(TESTS)
    assert "1 passed" in done(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=own)
    done(python, "-c", "from skerry.expressions import aggregate_code; aggregate_code.check()", cwd=own)
    skerry = tmp_path / "fresh" / "bin" / "skerry"
    where = done(python, "-c", "from skerry_testbed import built; print(built.INSTALLED)", cwd=own).strip()
    assert Path(where).is_relative_to(tmp_path / "fresh")
    asked = run(
        skerry, "testbed", Path(where) / "networks" / "demo.toml", "--speed", "max", "--for", "40s",
        "--query", "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 4 s", cwd=own,
    )  # fmt: skip
    assert asked.returncode == 0, asked.stderr
    assert len(asked.stdout.splitlines()) > 20
    (own / "n.toml").write_text("[[mote]]\nid = 0\nx = 0\ny = 0\nroot = true\nboard = 'cc2538'\n")
    assert f"include @{where}/renode/MatrixMedium.cs" in done(skerry, "renode", "n.toml", cwd=own)
    # Nothing is green on nothing.
    image = Path(where) / "firmware" / "iris.elf"
    image.rename(image.with_suffix(".away"))
    failed = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=own)
    assert failed.returncode == 1
    assert f"{image} is missing: the installed package lacks it" in failed.stdout
    assert "1 skipped" in done(
        python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--skerry-skip", cwd=own
    )


def copied(folder: Path) -> Path:
    """This checkout's packages, and what they run, elsewhere."""
    for part in (
        "protocol/skerry_protocol",
        "gateway/skerry",
        "testbed/skerry_testbed",
        "testbed/core/include",
    ):
        shutil.copytree(built.PROJECT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for board in ("iris", "cc2538"):
        (folder / "build" / "firmware").mkdir(parents=True, exist_ok=True)
        shutil.copy(built.PROJECT / "build" / "firmware" / f"{board}.elf", folder / "build" / "firmware")
    shutil.copytree(built.PROJECT / "build" / "testbed", folder / "build" / "testbed")
    return folder


def test_a_copy_runs_its_own_code_and_images_and_says_what_does_not_belong_together(tmp_path: Path) -> None:
    copy = copied(tmp_path / "copy")
    python = environment(tmp_path / "copy" / ".venv")
    [packages] = (copy / ".venv").glob("lib/python3*/site-packages")
    [link] = Path(sysconfig.get_path("purelib")).glob("__editable__.skerry*.pth")
    shutil.copy(link, packages)
    (copy / "n.toml").write_text("[[mote]]\nid = 0\nx = 0\ny = 0\nroot = true\n")

    def testbed() -> str:
        ended = run(
            python, "-c", CALL, "testbed", "n.toml", "--speed", "max", "--for", "1s", "--port", "0", cwd=copy
        )
        return ended.stderr if ended.returncode else "fine"

    said = done(
        python,
        "-c",
        "import skerry, skerry_testbed.built as b; print(skerry.__file__, b.BUILD)",
        cwd=tmp_path,
    )
    assert said.split() == [str(copy / "gateway/skerry/__init__.py"), str(copy / "build")]
    assert testbed() == "fine"
    # Another package's command, called here: it says so.
    other = run(Path(sys.executable).parent / "skerry", "--help", cwd=copy)
    assert (
        f"skerry: this runs code and images of {built.PROJECT / 'gateway' / 'skerry'}, not of {copy}"
        in other.stderr
    )
    assert run(Path(sys.executable).parent / "skerry", "--help", cwd=built.PROJECT).stderr == ""
    assert run(python, "-c", CALL, "--help", cwd=copy).stderr == ""
    # An image of other packets, a core of another header, and then none of them.
    image, header = copy / "build/firmware/iris.elf", copy / "testbed/core/include/skerry_core.h"
    sound = image.read_bytes()
    image.write_bytes(sound.replace(b"skerry-protocol:", b"skerry-protocol:0123456789abcdef", 1))
    assert f"{image} is of another version: it has protocol 0123456789abcdef" in testbed()
    image.unlink()
    assert f"{image} is missing: run 'make firmware' in {copy}" in testbed()
    image.write_bytes(sound)
    header.write_text(header.read_text() + "\n")
    assert f"libskerry_core.so is of another version than {header}: run 'make testbed' in {copy}" in testbed()
