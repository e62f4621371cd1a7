"""A broken invariant resets the mote, and STATUS says which: provoked by writing into a running mote's memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from skerry_protocol.codes import CommandOp, Invariant, PacketType
from skerry_testbed.built import BUILD
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, line_of

#: Of a struct timer (kernel/timer.h): bytes before `running`.
RUNNING = {"iris": 8, "cc2538": 12}
#: GDB's number of the program counter, and its bytes; a jump to itself.
COUNTER = {"iris": (34, 4), "cc2538": (15, 4)}
FOREVER = {"iris": b"\xff\xcf", "cc2538": b"\xfe\xe7"}


def image(board: str) -> Path:
    return BUILD / "firmware" / f"{board}.elf"


def address(board: str, name: str, source: str = "") -> int:
    """Where a function or a variable lies, as GDB counts; ``source``: the C file of one that is static."""
    with image(board).open("rb") as file:
        within = ""
        for symbol in ELFFile(file).get_section_by_name(".symtab").iter_symbols():
            if symbol["st_info"]["bind"] == "STB_GLOBAL":
                within = ""
            elif symbol["st_info"]["type"] == "STT_FILE":
                within = symbol.name
            if (within, symbol.name) == (source, name):
                return int(symbol["st_value"])
    raise AssertionError(f"{image(board)}: no {name} of {source}")


def endless(board: str) -> int:
    """Where an instruction lies that jumps to itself."""
    with image(board).open("rb") as file:
        text = ELFFile(file).get_section_by_name(".text")
        data, begin = text.data(), int(text["sh_addr"])
    found = next(at for at in range(0, len(data), 2) if data[at : at + 2] == FOREVER[board])
    return begin + found


def said(net: NetworkHandle, node: int) -> list[int]:
    """The invariants in the reports of a mote, oldest first."""
    return [record.body.invariant for record in net.line.of(PacketType.STATUS) if record.body.node == node]


@pytest.mark.parametrize("board", ["iris", "cc2538"])
def test_a_broken_invariant_and_a_hang_reset_the_mote_and_its_status_says_which(
    network: MakeNetwork, board: str
) -> None:
    net = network(line_of(3, spacing=10, boards=[board]), radio=disc(15), seed=4)
    net.bed.world.on_stop(lambda *_: None)
    net.advance("30s")
    assert said(net, 1) == [0] * len(said(net, 1)) != []
    resets = [net.bed.world.counters(index)["resets"] for index in range(3)]

    # A timer that says it runs, and is in no list: the button's, which is started when it is pressed.
    debugger = net.bed.world.debug(1)
    debugger.write(address(board, "timer", "button.c") + RUNNING[board], b"\1")
    debugger.detach()
    net.motes[1].press()
    net.advance("40s")
    assert said(net, 1)[-1] == Invariant.TIMERS

    # A mote that hangs: its next instruction is for ever the same.
    hanging = net.bed.world.debug(2)
    number, size = COUNTER[board]

    def hang(*_: object) -> None:
        hanging.set_register(number, endless(board).to_bytes(size, "little"))
        hanging.detach()

    net.bed.world.on_stop(hang)
    hanging.breakpoint(address(board, "kernel_step") & ~1, on=True)
    net.advance("40s")
    assert said(net, 2)[-1] == Invariant.MAIN_LOOP
    assert said(net, 1)[-1] == Invariant.TIMERS, "until the next start"
    assert [net.bed.world.counters(index)["resets"] - before for index, before in enumerate(resets)] == [
        0,
        1,
        1,
    ]

    # What is asked for, and a loss of power, broke nothing; the reason is that of one start only.
    net.line.command(1, CommandOp.REBOOT)
    net.inject(kind="reboot", mote=2)
    net.advance("40s")
    assert said(net, 1)[-1] == said(net, 2)[-1] == 0
