"""The image of a mote that only stores: ``storage/power.c`` in place of the mote's main."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from skerry_testbed.built import PROJECT

needs_compiler = pytest.mark.skipif(
    not shutil.which("arm-none-eabi-gcc"), reason="arm-none-eabi-gcc is not installed"
)


def storing_image(folder: Path, pages: int | None = None) -> Path:
    """Compiled into ``folder``; it stores in all pages that the mote has for rows, or in so many of its own."""
    firmware, built = PROJECT / "firmware", PROJECT / "build" / "firmware" / "cc2538"
    elf = folder / "power.elf"
    # The image's, without the archives' and what earlier images left.
    replaced = ["main", "index/", "join/", "storage/"] + ["drivers/cc2538/pages"] * (pages is not None)
    names = [path.relative_to(built).with_suffix("") for path in sorted(built.rglob("*.o"))]
    objects = [
        str(built / name.with_suffix(".o"))
        for name in names
        if not str(name).startswith(tuple(replaced))
        and (str(name) == "registry" or (firmware / name.with_suffix(".c")).exists())
    ]
    defined = [] if pages is None else [f"-DPAGES={pages}"]
    subprocess.run(
        ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-Os", "-std=gnu11", "-Wall", "-Werror", "--specs=nano.specs",
         "-nostartfiles", f"-T{firmware / 'boards' / 'cc2538' / 'cc2538.ld'}", "-I", str(firmware), "-I", str(firmware / "include"),
         "-I", str(firmware / "boards" / "cc2538"), *defined, "-o", str(elf), str(Path(__file__).parent / "storage" / "power.c"),
         *objects, *(str(path) for path in sorted(built.glob("*.a")))],
        check=True,
    )  # fmt: skip
    return elf
