"""What pyproject.toml cannot say: a wheel carries the emulator's libraries, the motes' images and their aggregates, from this tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
BOARDS = ("iris", "cc2538")
#: The motes' aggregates, and how they plan queries of indexes, for the gateway.
LIBRARIES = ("libskerry_aggregates.so", "libskerry_index.so")
#: Beside what is built: from, below ``testbed/``.
FILES = ("core/include/*.h", "renode/*", "debugger/*.py", "networks/demo.toml")


class BuildPackages(build_py):
    """Packages, and in ``skerry_testbed/built`` and ``skerry/built`` what they run. An editable installation has that in ``build/``."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            self._carry_testbed(Path(self.build_lib) / "skerry_testbed" / "built")
            self._carry_libraries(Path(self.build_lib) / "skerry" / "built" / "firmware")

    def _carry_libraries(self, into: Path) -> None:
        _make("firmware", *(f"../build/firmware/{library}" for library in LIBRARIES))
        shutil.rmtree(into, ignore_errors=True)
        for library in LIBRARIES:
            _copy(ROOT / "build" / "firmware" / library, into / library)

    def _carry_testbed(self, into: Path) -> None:
        _make("testbed/core")
        for board in BOARDS:
            _make(
                "firmware",
                f"BOARD={board}",
                *(f"../build/firmware/{board}.{kind}" for kind in ("elf", "hex")),
            )
        shutil.rmtree(into, ignore_errors=True)
        built = ROOT / "build"
        for path in (
            *built.glob("testbed/lib*.so"),
            *(built / "firmware" / f"{board}.{kind}" for board in BOARDS for kind in ("elf", "hex")),
        ):
            _copy(path, into / path.relative_to(built))
        for pattern in FILES:
            for path in (ROOT / "testbed").glob(pattern):
                _copy(path, into / path.relative_to(ROOT / "testbed"))


class Wheel(bdist_wheel):
    """For any Python, and one kind of machine."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", super().get_tag()[2])


def _make(folder: str, *what: str) -> None:
    command = ["make", "--no-print-directory", "-C", str(ROOT / folder), f"PYTHON={sys.executable}", *what]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "protocol"), *filter(None, sys.path)]),
    }
    try:
        subprocess.run(command, check=True, env=environment)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(
            f"skerry: {folder} cannot be built ({error}): it needs what tools/packages.txt names"
        ) from None


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, to)


setup(cmdclass={"build_py": BuildPackages, "bdist_wheel": Wheel})
