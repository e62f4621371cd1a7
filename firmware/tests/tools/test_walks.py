"""docs/firmware.md follows a frame and a query by functions: each is in the image of the IRIS mote, from the file that the page names."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

PROJECT = Path(__file__).resolve().parents[3]
PAGE = (PROJECT / "docs" / "firmware.md").read_text()
ELF = PROJECT / "build" / "firmware" / "iris.elf"
WALKS = ("A frame: from the radio to the serial line", "A query: from the serial line to a sample, and back")
STEP = re.compile(r"^\| `(\w+)` \| `([\w/]+\.c)` \| ", re.MULTILINE)


def steps(heading: str) -> list[tuple[str, str]]:
    """Function and file of each line of a walk's table."""
    _, _, section = PAGE.partition(f"\n## {heading}\n")
    return STEP.findall(section.partition("\n## ")[0])


@cache
def functions() -> frozenset[tuple[str, str]]:
    """(name, file) of all functions of the image, those that the compiler has put into their callers too."""
    if not ELF.exists():
        pytest.fail(f"{ELF} is missing: run 'make firmware'")
    found = set()
    with ELF.open("rb") as file:
        for unit in ELFFile(file).get_dwarf_info(relocate_dwarf_sections=False).iter_CUs():
            top = unit.get_top_DIE()
            if "DW_AT_name" not in top.attributes:
                continue  # of a library
            source = top.attributes["DW_AT_name"].value.decode()
            for die in top.iter_children():
                # A declaration alone is no function of this file.
                if (
                    die.tag == "DW_TAG_subprogram"
                    and "DW_AT_name" in die.attributes
                    and "DW_AT_declaration" not in die.attributes
                ):
                    found.add((die.attributes["DW_AT_name"].value.decode(), source))
    return frozenset(found)


@pytest.mark.parametrize("heading", WALKS)
def test_each_function_of_a_walk_is_in_the_image_from_the_file_that_is_named(heading: str) -> None:
    named = steps(heading)
    assert len(named) > 12
    assert [step for step in named if step not in functions()] == []


def test_the_walks_begin_and_end_where_they_say() -> None:
    frame, query = map(steps, WALKS)
    assert (frame[0][1], frame[-1][0]) == ("drivers/rf230/rf230.c", "serial_write")
    assert query[0][0] == "serial_ready"
    assert ("sensor_acquire", "drivers/digital_board/sensors.c") in query


def test_each_file_and_module_that_the_page_names_exists() -> None:
    found = set(re.findall(r"`((?:\w+/)+[\w.]+)`", PAGE))
    # A newcomer makes them.
    found -= set(re.findall(r"^`([\w/.]+)`:\n\n```(?!diff)", PAGE, re.MULTILINE))
    assert len(found) > 30
    places = (PROJECT, PROJECT / "firmware")
    missing = [
        name
        for name in sorted(found)
        if not any((place / f"{name}{suffix}").exists() for place in places for suffix in ("", ".c"))
    ]
    assert missing == []


def test_what_is_not_in_the_image_is_found() -> None:
    assert ("serial_write", "drivers/cc2538/serial.c") not in functions()
    assert ("serial_written", "drivers/avr/serial.c") not in functions()
