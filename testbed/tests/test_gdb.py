"""Debian's GDBs at emulated motes of both boards, which run the very images that real motes run."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from skerry_testbed.errors import TestbedError
from skerry_testbed.gdb.server import Debuggers
from skerry_testbed.pytest import MakeNetwork, line_of
from testbed.tests.debugging import LIMIT_S, Gdb, running, wait_for
from testbed.tests.descriptions import ROOT

pytestmark = pytest.mark.usefixtures("skerry_built")

BOARDS = ("iris", "cc2538")
MOTES = {"iris": 7, "cc2538": 8}
SKERRY = str(Path(sys.executable).parent / "skerry")


@pytest.fixture(scope="module")
def installed() -> None:
    for program in ("avr-gdb", "gdb-multiarch"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing: run 'make setup'")


@pytest.fixture
def description(installed: None, tmp_path: Path) -> Path:  # noqa: ARG001
    """A root, mote 7 (IRIS) and mote 8 (CC2538)."""
    path = tmp_path / "trio.toml"
    path.write_text(
        f'{ROOT}[[mote]]\nid = 7\nx = 10\ny = 0\n[[mote]]\nid = 8\nx = 0\ny = 10\nboard = "cc2538"\n'
    )
    return path


def ended(*arguments: object) -> subprocess.CompletedProcess[str]:
    """``skerry testbed`` that needs no debugger, or gets none."""
    command = [SKERRY, "testbed", *map(str, arguments), "--port", "0"]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)


#: Looks, and changes nothing.
LOOK = """
break main
continue
backtrace
delete
break status_report
continue
backtrace
info registers
x/3i $pc
print 'settings.c'::current.nodeid
delete
watch 'status.c'::battery.supply
continue
delete
finish
step
next
stepi
stepi 20
monitor status
shell sleep 0.5
monitor status
tbreak board_sleep
continue
backtrace
stepi 40
detach
"""


@pytest.mark.parametrize("board", BOARDS)
def test_a_session_that_only_looks_changes_nothing(description: Path, tmp_path: Path, board: str) -> None:
    files = {
        name: [f"--report={tmp_path / name}.json", f"--pcap={tmp_path / name}.pcap"]
        for name in ("with", "without")
    }
    assert ended(description, "--speed", "max", "--for", "30s", *files["without"]).returncode == 0
    mote = MOTES[board]
    with running(description, "--speed", "max", "--for", "30s", *files["with"], gdb={mote: 0}) as bed:
        with Gdb(bed, mote, LOOK, tmp_path / "gdb.log") as gdb:
            said = gdb.wait()
        assert bed.process.wait(LIMIT_S) == 0
    assert re.search(r"^Breakpoint 1, main \(\)", said, re.MULTILINE), said
    assert re.search(r"^Breakpoint 2, status_report \(\) at net/health/status.c:", said, re.MULTILINE)
    # From the report through the kernel to the start: the stack is unwound to its end.
    assert re.search(
        r"#0 +status_report \(\).*\n(#.*\n)+#\d+ .*kernel_run \(\).*\n#\d+ .*main \(\) at main.c", said
    )
    assert re.search(rf"= {mote}$", said, re.MULTILINE)
    assert re.search(
        r"^Hardware watchpoint 3: 'status.c'::battery.supply\n\nOld value = 0\nNew value = (\d+)",
        said,
        re.MULTILINE,
    )
    first, second = re.findall(
        rf"^mote {mote} \({board}\) at (\d+\.\d+) s: it has power$", said, re.MULTILINE
    )
    assert first == second, "time stands still"
    assert "board_sleep" in said
    assert said.rstrip().endswith("[Inferior 1 (Remote target) detached]")
    for kind in ("json", "pcap"):
        assert (tmp_path / f"with.{kind}").read_bytes() == (tmp_path / f"without.{kind}").read_bytes()


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "testbed.md").read_text()
NETWORKS = Path(__file__).resolve().parents[1] / "networks"


def masked(text: str) -> str:
    """Without numbers, which change with the firmware, and with single blanks."""
    return " ".join(re.sub(r"0x[0-9a-f]+|\d+", "0", text).split())


@pytest.mark.usefixtures("installed")
def test_the_session_on_the_page_is_what_gdb_says(tmp_path: Path) -> None:
    page = PAGE[PAGE.index("## A debugger") :]
    lines = [line.strip() for line in re.findall(r"^    (.*)$", page[: page.index("\n## ", 1)], re.MULTILINE)]
    session = lines[lines.index("(gdb) break status_report") :]
    commands = [line.removeprefix("(gdb) ") for line in session if line.startswith("(gdb) ")]
    description = tmp_path / "demo.toml"
    description.write_bytes((NETWORKS / "demo.toml").read_bytes())
    with running(description, "--speed", "max", gdb={7: 0}) as bed:
        with Gdb(bed, 7, "\n".join(commands), tmp_path / "gdb.log") as gdb:
            said = masked(gdb.wait())
        assert masked("mote 7 waits for a debugger: avr-gdb -x") in masked(bed.said)
        assert bed.end() == 0
    at = 0
    for line in session:
        if not line.startswith("(gdb) "):
            at = said.find(masked(line), at)
            assert at >= 0, f"{line!r} is not what follows in: {said}"


#: GDB ends a script at its first error; Python in it goes on.
TRY = """
python
for command in {commands!r}:
    try:
        gdb.execute(command)
    except gdb.error as error:
        print(f"{{command}}: {{error}}")
end
"""

WRITE = """
break status_report
continue
delete
set var *((unsigned char *)$sp - 200) = 0x5a
print/x *((unsigned char *)$sp - 200)
set var $r5 = 0x17
print/x $r5
set var 'status.c'::battery.low = 1
print 'status.c'::battery.low
print board_free_ram() > 100
print settings()->nodeid
info symbol $pc
{more}
{watch}
delete
compare-sections
load
break main
continue
detach
"""
MORE = {
    "iris": "x/4xb 0x810000\n",
    # The UART's flags are what they are; its data would be gone once read; beyond are no registers.
    "cc2538": "print/x *(unsigned *)0x4000c018\nprint $primask\n",
}


@pytest.mark.parametrize("board", BOARDS)
def test_memory_and_registers_are_written_and_functions_called(
    description: Path, tmp_path: Path, board: str
) -> None:
    mote = MOTES[board]
    watched = TRY.format(commands=["rwatch 'status.c'::battery.supply", "continue"])
    script = WRITE.format(more=MORE[board], watch=watched)
    with running(description, "--speed", "max", gdb={mote: 0}) as bed:
        with Gdb(bed, mote, script, tmp_path / "gdb.log") as gdb:
            said = gdb.wait()
        assert "= 0x5a\n" in said, said
        assert "= 0x17\n" in said
        assert "= true\n" in said
        assert "= 1\n" in said
        assert f"= {mote}\n" in said
        assert "status_report in section .text" in said
        assert (":\t0x59\t0x53\t0x07\t0x00" if board == "iris" else "= 0x90\n") in said
        assert "Could not insert hardware watchpoint" in said, "of reads"
        assert re.search(r"^Section \.text, range .*: matched\.$", said, re.MULTILINE)
        assert "MIS-MATCHED" not in said
        assert re.search(r"^Breakpoint \d+, main \(\)", said, re.MULTILINE), "what was loaded anew"
        assert bed.end() == 0


def test_what_cannot_be_read_is_said_to_be_so(description: Path, tmp_path: Path) -> None:
    """The UART's data, the radio's, no register of the model, no memory; in flash and RAM only what there is."""
    addresses = (0x4000C000, 0x40088828, 0x40030000, 0x60000000, 0x20008000, 0x00280000)
    commands = [f"print *(unsigned *)0x{address:x}" for address in addresses]
    script = f"tbreak main\ncontinue\n{TRY.format(commands=commands)}detach\n"
    with running(description, "--speed", "max", gdb={8: 0}) as bed:
        with Gdb(bed, 8, script, tmp_path / "gdb.log") as gdb:
            said = gdb.wait()
        for address, command in zip(addresses, commands, strict=True):
            assert f"{command}: Cannot access memory at address 0x{address:x}\n" in said
        assert bed.end() == 0
        assert "not in the model" not in bed.said


def test_ctrl_c_stops_a_mote_and_a_gdb_that_is_killed_lets_it_go(description: Path, tmp_path: Path) -> None:
    with running(description, "--speed", "max", gdb={7: 0}) as bed:
        script = "echo here\\n\ncontinue\nmonitor status\nbacktrace\ncontinue\n"
        with Gdb(bed, 7, script, tmp_path / "gdb.log") as gdb:
            wait_for(lambda: "not switched on" in gdb.said, "the mote to go on")
            gdb.interrupt()
            wait_for(lambda: "received signal SIGINT" in gdb.said, "Ctrl-C")
            wait_for(lambda: re.search(r"^#\d", gdb.said, re.MULTILINE), "the stack")
        wait_for(lambda: "mote 7: the debugger is gone at " in bed.said, "the mote to be let go")
        # The mote has gone on since then, without and with another one.
        with Gdb(
            bed, 7, "monitor status\nbreak kernel_step\ncontinue\ndetach\n", tmp_path / "gdb.log"
        ) as gdb:
            assert "Breakpoint 1, kernel_step" in gdb.wait()
        gone = [float(at) for at in re.findall(r"the debugger is gone at (\d+\.\d+) s", bed.said)]
        assert len(gone) == 2
        assert gone[0] < gone[1]
        assert bed.end() == 0


def test_a_second_debugger_is_turned_away_and_who_is_none_is_cut_off(
    description: Path, tmp_path: Path
) -> None:
    with running(description, gdb={7: 0}) as bed:
        with Gdb(bed, 7, "continue\n", tmp_path / "first.log") as first:
            wait_for(lambda: "not switched on" in first.said, "the first")
            with Gdb(bed, 7, "info registers\n", tmp_path / "second.log") as second:
                assert "E.mote 7 has a debugger already" in second.wait()
            assert first.process.poll() is None
        wait_for(lambda: "the debugger is gone" in bed.said, "the first to be gone")
        with socket.create_connection(("127.0.0.1", bed.port(7)), LIMIT_S) as browser:
            browser.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert browser.recv(100) == b""
        assert "mote 7: a second debugger was turned away" in bed.said
        assert "mote 7: what is attached is no gdb: b'GET / HTTP/1.1" in bed.said
        assert bed.end() == 0


def test_time_goes_on_when_all_motes_do(description: Path, tmp_path: Path) -> None:
    """Mote 7 is to go on while mote 8 is stopped."""
    script = "break main\ncontinue\nmonitor status\ndetach\n"
    go = tmp_path / "go"
    with running(description, "--speed", "max", gdb={7: 0, 8: 0}) as bed:
        later = f"shell while [ ! -e {go} ]; do sleep 0.1; done\n{script}"
        with (
            Gdb(bed, 8, later, tmp_path / "8.log") as on_eight,
            Gdb(bed, 7, script, tmp_path / "7.log") as on_seven,
        ):
            wait_for(lambda: "time stands still until these motes go on, too: 8\n" in on_seven.said, "mote 7")
            go.touch()
            for gdb in (on_seven, on_eight):
                assert "Breakpoint 1, main" in gdb.wait()
        assert bed.end() == 0


def test_a_run_ends_with_its_report_also_while_a_mote_is_stopped(description: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    script = "break main\ncontinue\nshell sleep 600\n"
    with (
        running(description, "--speed", "max", "--report", report, gdb={7: 0}) as bed,
        Gdb(bed, 7, script, tmp_path / "gdb.log") as gdb,
    ):
        wait_for(lambda: "Breakpoint 1, main" in gdb.said, "the breakpoint")
        assert bed.end() == 0
    assert 0 < json.loads(report.read_text())["duration_s"] < 5


def test_a_run_ends_also_while_it_waits_for_debuggers(description: Path) -> None:
    with running(description, gdb={7: 0, 8: 0}) as bed:
        assert bed.end(signal.SIGTERM) == 0
        assert "stopped at 0.0 s" in bed.said


def test_breakpoints_outlive_reboots_and_a_mote_without_power_is_told(
    description: Path, tmp_path: Path
) -> None:
    faults = (("reboot", 5), ("kill", 6), ("reboot", 8), ("kill", 9))
    text = "".join(f"[[fault]]\nkind = {kind!r}\nat = {at}\nmote = 7\n" for kind, at in faults)
    description.write_text(description.read_text() + text)
    script = "break main\n" + "continue\nmonitor status\n" * 4
    with running(description, "--speed", "max", "--for", "10s", gdb={7: 0}) as bed:
        with Gdb(bed, 7, script, tmp_path / "gdb.log") as gdb:
            said = gdb.wait()
        assert bed.process.wait(LIMIT_S) == 0
    assert said.count("Breakpoint 1, main ()") == 3
    times = re.findall(r"^mote 7 \(iris\) at (\d+)\.\d+ s: it has power", said, re.MULTILINE)
    assert times[1:] == ["5", "8"]
    assert re.findall(r"^mote 7 has lost its power at (\d)", said, re.MULTILINE) == ["6", "9"]
    assert "[Inferior 1 (Remote target) exited normally]" in said


def test_a_mote_that_lost_its_power_shows_what_it_had(description: Path, tmp_path: Path) -> None:
    description.write_text(description.read_text() + '[[fault]]\nkind = "kill"\nat = 5\nmote = 7\n')
    commands = ["set var $r5 = 1", "print $r5", "print 'settings.c'::current.nodeid"]
    script = f"continue\nmonitor status\n{TRY.format(commands=commands)}\nbacktrace\ndetach\n"
    with running(description, "--speed", "max", gdb={7: 0}) as bed:
        with Gdb(bed, 7, script, tmp_path / "gdb.log") as gdb:
            wait_for(lambda: "has lost its power at 5." in gdb.said, "the fault")
            gdb.interrupt()
            said = gdb.wait()
        assert bed.end() == 0
    assert "s: it has no power" in said
    assert "= 7\n" in said
    assert "main ()" in said


#: Something that the chip cannot do: to run where no program is; to set radio flags.
BREAK = {"iris": "set var $PC2 = 0x1f000", "cc2538": "set var *(unsigned *)0x40088834 = 1"}
WHY = {"iris": "CPU crashed at 0x", "cc2538": "radio register 0x40088834 written against its rules"}


@pytest.mark.parametrize("board", BOARDS)
def test_a_cpu_that_stops_on_a_fault_stops_in_gdb(description: Path, tmp_path: Path, board: str) -> None:
    mote = MOTES[board]
    script = (
        f"break status_report\ncontinue\n{BREAK[board]}\ncontinue\nmonitor status\ninfo registers\ncontinue\n"
    )
    with running(description, "--speed", "max", "--for", "20s", gdb={mote: 0}) as bed:
        with Gdb(bed, mote, script, tmp_path / "gdb.log") as gdb:
            said = gdb.wait()
        assert bed.process.wait(LIMIT_S) == 0
    assert re.search(f"^mote {mote}'s CPU has stopped: {WHY[board]}", said, re.MULTILINE), said
    assert "Program received signal SIGABRT" in said
    assert "Only the others go on, until Ctrl-C" in said
    assert "[Inferior 1 (Remote target) exited normally]" in said


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["9:0"], "skerry: --gdb 9:0: no mote 9; the network has 0, 7, 8\n"),
        (["7:0", "7:1234"], "skerry: --gdb 7:1234: mote 7 has port "),
        (["7:{taken}"], "skerry: --gdb 7:{taken}: port {taken}: Address already in use; choose another\n"),
    ],
)
def test_a_port_that_cannot_be_is_one_line_and_exit_1(
    description: Path, options: list[str], expected: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        failed = ended(description, *(f"--gdb={option.format(taken=taken)}" for option in options))
    assert failed.returncode == 1
    assert failed.stderr.startswith(expected.format(taken=taken))
    assert failed.stderr.count("\n") == 1


@pytest.mark.parametrize("text", ["7", "7-1234", ":1234", "7:", "7:65536", "seven:1234", "7:-1"])
def test_an_option_that_cannot_be_is_wrong_usage(
    description: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    failed = ended(description, f"--gdb={text}")
    assert failed.returncode == 2
    assert f"--gdb: {text!r}: expected MOTE:PORT, a mote's id and a port of 0..65535" in failed.stderr


def test_a_port_is_open_to_this_machine_only(network: MakeNetwork) -> None:
    debuggers = Debuggers(network(line_of(2, spacing=10)).bed, [(1, 0)], lambda: False, print)
    with contextlib.closing(debuggers), socket.socket() as other:
        # On another address of this machine the same port is free.
        other.bind(("127.0.0.2", debuggers.ports[1]))


def test_for_how_long_a_mote_was_stopped_is_not_made_up_for(network: MakeNetwork) -> None:
    bed = network(line_of(1, spacing=10)).bed
    held = []

    def progress() -> None:
        if not held:
            held.append(time.sleep(1))
            bed.held_s += 1

    began = time.monotonic()
    bed.run(0.3, 1.0, lambda: False, progress)
    assert time.monotonic() - began >= 1.2


def test_an_error_while_a_mote_is_stopped_ends_the_run_with_it(network: MakeNetwork) -> None:
    bed = network(line_of(2, spacing=10)).bed

    def stopped(*_: object) -> None:
        raise ZeroDivisionError

    bed.world.on_stop(stopped)
    bed.world.debug(1).step()
    with pytest.raises(TestbedError, match="mote 1 has a debugger already"):
        bed.world.debug(1)
    with pytest.raises(ZeroDivisionError):
        bed.advance(1)
    bed.advance(1)
