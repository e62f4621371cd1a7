"""How deep stacks get in a long run, against the figure of `make firmware`: motes paint their RAM and tell what has kept the colour."""

from __future__ import annotations

import re

import pytest
from elftools.elf.elffile import ELFFile

from skerry_protocol.codes import PacketType
from skerry_testbed.built import PROJECT
from skerry_testbed.network import Environment, Field
from skerry_testbed.pytest import MakeNetwork, grid
from skerry_testbed.queries import ask

IMAGES = PROJECT / "build" / "firmware"
#: Least share of the figure that a run with the queries below is to come to: less, and the figure would be of other programs. The
#: figure's path on the CC2538, a tuple of an index that is stored, is none of theirs: they come to 664 bytes of its 1,116.
LEAST = 0.55
#: What goes deep, all at once: states of many intervals that are merged, rows of windows, events that are raised with a row.
QUERIES = [
    "SELECT MEDIAN(light), AVG(temp) FROM sensors SAMPLE PERIOD 10 s",
    "SELECT nodeid, WINAVG(temp, 8, 1), temp * light % 7 FROM sensors SAMPLE PERIOD 4 s",
    "SELECT nodeid FROM sensors WHERE temp > 22 SIGNAL warm(temp) SAMPLE PERIOD 7 s",
    "ON EVENT warm(temp, loc): SELECT MEDIAN(light), event.temp FROM sensors AS s WHERE dist(s.loc, event.loc) < 25 m"
    " SAMPLE PERIOD 2 s FOR 6 s",
    "SELECT AVG(temp) FROM sensors SAMPLE PERIOD 5 s APPROXIMATE WITHIN 1",
]  # fmt: skip


def figure(board: str) -> int:
    """The stack by `make firmware`, bytes."""
    found = re.search(r"^stack: (\d+):", (IMAGES / f"{board}.sizes").read_text(), re.MULTILINE)
    assert found
    return int(found[1])


def not_data(board: str) -> int:
    """RAM that the image's data leaves to the stack, bytes."""
    with (IMAGES / f"{board}.elf").open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab")
        begin, top = {"iris": ("__heap_start", "__stack"), "cc2538": ("_end_of_data", "_top_of_stack")}[board]
        value = {name: symbols.get_symbol_by_name(name)[0]["st_value"] for name in (begin, top)}
    # AVR: addresses of data have a bit more than the chip's, and the stack begins in its last byte.
    return (value[top] - value[begin]) % 2**16 + (board == "iris")


@pytest.mark.slow
def test_no_stack_gets_deeper_than_the_figure(network: MakeNetwork) -> None:
    boards = ("iris", "cc2538")
    fields = {"temp": Field(base=20.0, amplitude=8.0, noise=0.5), "light": Field(base=300.0, noise=100.0)}
    net = network(grid(5, 3, spacing=10, boards=boards), seed=42, environment=Environment(fields=fields))
    net.advance("40s")
    for number, sql in enumerate(QUERIES, 1):
        ask(net, number, sql)
        net.advance("20s")
    net.advance("15min")
    free = {record.body.node: record.body.free_ram for record in net.line.of(PacketType.STATUS)}
    assert len(free) == len(net.motes)
    used = {
        board: max(not_data(board) - left for node, left in free.items() if boards[node % 2] == board)
        for board in boards
    }
    print(used)
    for board in boards:
        assert LEAST * figure(board) <= used[board] <= figure(board), (board, used[board])
