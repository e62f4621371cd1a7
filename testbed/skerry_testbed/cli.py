"""``skerry testbed``, ``skerry up`` and ``skerry renode``."""

from __future__ import annotations

import contextlib
import json
import math
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn, TextIO

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from skerry.cli.output import leave_output
from skerry.client.client import Client
from skerry.client.errors import GatewayError
from skerry_testbed import duration
from skerry_testbed.asking import Asking
from skerry_testbed.capture import Capture
from skerry_testbed.checks import check_query, never_happens
from skerry_testbed.children import Children
from skerry_testbed.errors import TestbedError
from skerry_testbed.gdb.server import Debuggers
from skerry_testbed.hearing import unheard
from skerry_testbed.moving import Moves, Tell
from skerry_testbed.network import Network, NetworkError, Query, load
from skerry_testbed.renode import script as renode_script
from skerry_testbed.runner import Testbed
from skerry_testbed.serial_port import SerialPort

Description = Annotated[Path, typer.Argument(metavar="NETWORK.toml", help="network description")]
Speed = Annotated[str, typer.Option(help="max, or virtual seconds per second")]
#: Below so much of the speed that was asked for, for so long, in s, a run is said to be slower.
LAGS, LAGS_S = 0.9, 3.0
#: Of the root's serial line, on 127.0.0.1.
PORT = 7654


def testbed(
    network: Description,
    speed: Speed = "1",
    run_for: Annotated[
        str | None,
        typer.Option("--for", help="virtual time to run, as in 600s or 10min; default: until Ctrl-C"),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="write a JSON report here at the end")] = None,
    pcap: Annotated[Path | None, typer.Option(help="write all frames on the air here")] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="TCP port of the root's serial line; 0: any free one; default: 7654"
        ),
    ] = None,
    query: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SQL", help="asked of a gateway that comes and goes with the run; may be repeated"
        ),
    ] = None,
    queries: Annotated[bool, typer.Option(help="also those of the description")] = True,
    rows: Annotated[
        Path | None, typer.Option(help="write the queries' rows here, not to standard output")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=(1 << 64) - 1, help="instead of the description's: another run of it"),
    ] = None,
    gateway: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="gateway that tells motes where they have moved to, as of skerry up"
        ),
    ] = None,
    gdb: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MOTE:PORT",
            help="TCP port for a debugger at a mote, for which the run waits; may be repeated",
        ),
    ] = None,
) -> None:
    """Run emulated motes. The root's serial line is a TCP port, or, for a run with queries, the gateway's that it has itself."""
    pace = _speed(speed)
    limit = None if run_for is None else _duration("--for", run_for)
    debugged = [_mote_and_port(text) for text in gdb or []]
    with _one_line_errors():
        description = load(network)
        if seed is not None:
            description = msgspec.structs.replace(description, seed=seed)
        asked = _asked(description, query or [], queries, port, rows)
        description = msgspec.structs.replace(description, query=asked)
        _check_outputs(network, {"--report": report, "--pcap": pcap, "--rows": rows})
        bed = Testbed(description)
        stop = threading.Event()
        console = Console(stderr=True)
        with contextlib.ExitStack() as open_until_end:
            enter = open_until_end.enter_context
            line = None if asked else enter(contextlib.closing(SerialPort(bed, _port(port), pace)))
            debuggers = enter(contextlib.closing(Debuggers(bed, debugged, stop.is_set, _teller(console))))
            # Now that the run can begin: can they be written? What was there before is lost.
            if report:
                report.open("a").close()
            ends_s = math.inf if limit is None else limit
            for warning in [*never_happens(description, ends_s), *unheard(description, bed.links)]:
                print(f"skerry: {network}: {warning}", file=sys.stderr)
            if pcap:
                bed.air_listeners.append(enter(Capture(pcap)).add)
            if gateway is not None:
                enter(contextlib.closing(Moves(bed, _placing(gateway))))
            asking = None
            if asked:
                write = enter(RowsFile(rows)).write
                asking = enter(contextlib.closing(Asking(bed, asked, write, _teller(console))))
            _run(bed, line, debuggers, console, stop, pace, limit)
            told = bed.report()
            if asking is not None:
                told |= asking.report(told["queries"])
        if report:
            try:
                report.write_text(json.dumps(told, indent=1) + "\n")
            except OSError as error:
                raise TestbedError(f"{report}: {error.strerror}") from None


def _placing(url: str) -> Tell:
    """By a gateway's set_position."""
    client = Client(url)

    def place(mote: int, x: float, y: float) -> None:
        try:
            client.run("set_position", mote=mote, position=(x, y))
        except GatewayError as error:
            raise OSError(str(error)) from error

    return place


def _port(port: int | None) -> int:
    return PORT if port is None else port


def _asked(
    description: Network, more: list[str], described: bool, port: int | None, rows: Path | None
) -> list[Query]:
    """The queries of a run. Raises BadParameter for options that they, or that there are none, leave without a meaning."""
    asked = [*(description.query if described else []), *(Query(sql=sql) for sql in more)]
    for one in asked:
        check_query(one)
    if asked and port is not None:
        raise typer.BadParameter(
            "the root's line is taken by the queries' gateway: leave it out, or ask none (--no-queries)",
            param_hint="--port",
        )
    if rows is not None and not asked:
        raise typer.BadParameter(
            'there are no queries: add [[query]] to the description or --query "SELECT …"',
            param_hint="--rows",
        )
    return asked


class RowsFile:
    """Lines to a file, None: to standard output, as they come. Raises TestbedError where they cannot be written."""

    def __init__(self, path: Path | None) -> None:
        self._name = "standard output" if path is None else str(path)
        self._file: TextIO = sys.stdout if path is None else path.open("w", encoding="utf-8")

    def __enter__(self) -> RowsFile:
        return self

    def write(self, line: str) -> None:
        """One line."""
        try:
            self._file.write(f"{line}\n")
            if self._file is sys.stdout:
                self._file.flush()
        except OSError as error:
            self._refused(error)

    def __exit__(self, *_: object) -> None:
        try:
            if self._file is not sys.stdout:
                self._file.close()
        except OSError as error:
            self._refused(error)

    def _refused(self, error: OSError) -> NoReturn:
        if self._file is sys.stdout:
            leave_output()
        raise TestbedError(f"{self._name}: {error.strerror}") from None


def _check_outputs(network: Path, outputs: dict[str, Path | None]) -> None:
    """Raises TestbedError where one would overwrite another, or the description."""
    taken = {network.resolve(): "the network description"}
    for option, path in outputs.items():
        if path is not None and (path.is_file() or not path.exists()):
            other = taken.setdefault(path.resolve(), option)
            if other != option:
                raise TestbedError(f"{option} {path}: that is {other} already: give another file")


def _teller(console: Console) -> Callable[[str], None]:
    # On one line each, however long: what is to be copied must not be broken.
    return lambda text: console.print(text, highlight=False, markup=False, soft_wrap=True)


def _run(
    bed: Testbed,
    line: SerialPort | None,
    debuggers: Debuggers,
    console: Console,
    stop: threading.Event,
    pace: float,
    limit: float | None,
) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    count = len(bed.network.query)
    at = (
        f"root's serial line: socket://127.0.0.1:{line.port}"
        if line is not None
        else f"{count} {'query' if count == 1 else 'queries'}, asked by this run's own gateway"
    )
    console.print(f"{len(bed.motes)} motes, seed {bed.network.seed}; {at}", highlight=False)
    bed.message_listeners.append(lambda message: console.print(message, highlight=False))
    debuggers.announce()
    debuggers.hold()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("virtual time 0 s", total=limit)

        lagging = Lagging(pace)

        def step() -> None:
            if line is not None:
                line.poll()
            debuggers.poll()
            at = "" if bed.speed is None else f", {bed.speed:.3g} times as fast as the clock"
            progress.update(task, completed=bed.now_s, description=f"virtual time {bed.now_s:.0f} s{at}")
            said = lagging.news(bed.speed, time.monotonic())
            if said is not None:
                console.print(said, highlight=False, soft_wrap=True)

        bed.run(limit, pace, stop.is_set, step, closely=bool(debuggers.ports))
    console.print(f"stopped at {bed.now_s:.1f} s of virtual time", highlight=False)


class Lagging:
    """Says when a run does not reach the speed that was asked for, and when it does again."""

    def __init__(self, asked: float) -> None:
        self._asked = asked
        self._lags, self._since = False, 0.0

    def news(self, reached: float | None, now: float) -> str | None:
        """A line for whoever watches, or None; ``now`` in s, monotonic."""
        if reached is None or math.isinf(self._asked):
            return None
        lags = reached < LAGS * self._asked
        if lags == self._lags:
            self._since = now
        if now - self._since < LAGS_S:
            return None
        self._lags, self._since = lags, now
        if not lags:
            return f"speed {self._asked:g}, as asked for, is reached again"
        return (
            f"this machine reaches {reached:.3g} of the {self._asked:g} virtual seconds per second asked for; motes and gateway "
            "go on at that"
        )


def up(
    networks: Annotated[
        list[Path], typer.Argument(metavar="NETWORK.toml…", help="network descriptions, a root each")
    ],
    speed: Speed = "1",
    port: Annotated[
        int,
        typer.Option(
            min=1, max=65535, help="TCP port of the root's serial line; further roots have the next ones"
        ),
    ] = PORT,
    listen: Annotated[str, typer.Option(help="address of the gateway's HTTP API")] = "127.0.0.1:8642",
    data: Annotated[Path | None, typer.Option(help="the gateway's data directory")] = None,
    extensions: Annotated[
        Path | None, typer.Option(help="folder of built extensions, as of skerry gateway")
    ] = None,
) -> None:
    """Testbeds and gateway together, until Ctrl-C."""
    command = str(Path(sys.executable).parent / "skerry")
    gateway = [command, "gateway", "--listen", listen]
    testbeds = []
    pace = _speed(speed)
    if pace != 1 and math.isfinite(pace):
        # As fast as it goes is no speed that could be told before.
        gateway += ["--speed", f"{pace:g}"]
    with _one_line_errors():
        for asking in _check_addresses(networks):
            print(f"skerry: {asking}: its [[query]] are left out: ask the gateway", file=sys.stderr)
        if port + len(networks) > 65536:
            raise TestbedError(
                f"--port {port}: {len(networks)} networks need ports up to {port + len(networks) - 1}"
            )
        for name in _attributes(networks):
            gateway += ["--attribute", name]
        for own, network in enumerate(networks, start=port):
            gateway += ["--link", f"socket://127.0.0.1:{own}"]
            testbeds.append(
                [command, "testbed", str(network), "--speed", speed, "--port", str(own), "--no-queries", "--gateway", f"http://{listen}"]
            )  # fmt: skip
        for option, path in (("--data", data), ("--extensions", extensions)):
            if path is not None:
                gateway += [option, str(path)]
        codes = _together([*testbeds, gateway])
    raise typer.Exit(1 if any(codes) else 0)


def _attributes(networks: list[Path]) -> list[str]:
    """Static attributes of all networks. Raises NetworkError where two of them name others, or in another order."""
    named = {tuple(attributes): network for network in networks if (attributes := load(network).attributes)}
    if len(named) > 1:
        (first, one), (other, two), *_ = named.items()
        raise NetworkError(
            f"{two}: attributes are {', '.join(other)}, and in {one} {', '.join(first)}: one gateway needs the same in the same order"
        )
    return list(next(iter(named), ()))


def _check_addresses(networks: list[Path]) -> list[Path]:
    """Those with queries. Raises NetworkError for a mote's address that two networks have, and for a description that is wrong."""
    owners: dict[int, Path] = {}
    asking = []
    for network in networks:
        description = load(network)
        asking += [network] if description.query else []
        for mote in description.mote:
            other = owners.setdefault(mote.id, network)
            if other is not network:
                raise NetworkError(
                    f"{network}: mote {mote.id} is in {other} too: one gateway needs addresses of their own"
                )
    return asking


def renode(
    network: Description,
    speed: Annotated[str, typer.Option(help="max, or 1 for wall-clock time")] = "1",
    run_for: Annotated[
        str, typer.Option("--for", help="how much of the environment to write down, as in 600s")
    ] = "600s",
    quantum: Annotated[
        str,
        typer.Option(help="lock-step quantum, the latency of a link; acknowledgements need 0.2ms or less"),
    ] = "0.2ms",
    port: Annotated[int, typer.Option(min=1, max=65535, help="TCP port of the root's serial line")] = PORT,
) -> None:
    """Print a network of CC2538 motes as a script for Renode."""
    if speed not in ("1", "max"):
        raise typer.BadParameter(f"{speed!r}: expected 1 or max", param_hint="--speed")
    lock_step, length = _duration("--quantum", quantum), _duration("--for", run_for)
    if lock_step < 1e-6:
        raise typer.BadParameter(f"{quantum!r}: expected 0.001ms or more", param_hint="--quantum")
    with _one_line_errors():
        text = renode_script(
            load(network), port=port, quantum_s=lock_step, duration_s=length, fastest=speed == "max"
        )
    sys.stdout.write(text)


def _together(commands: list[list[str]]) -> list[int]:
    """Run commands side by side until one ends or Ctrl-C, then end them, the last one first. Returns their exit codes."""
    with Children() as children:
        for command in commands:
            # Those that a signal comes before need not begin.
            if not children.asked:
                children.start(command)
        children.wait()
    return children.codes


def _speed(text: str) -> float:
    if text == "max":
        return math.inf
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise typer.BadParameter(f"{text!r}: expected max or a number above 0", param_hint="--speed")
    return value


def _mote_and_port(text: str) -> tuple[int, int]:
    mote, colon, port = text.partition(":")
    if not (colon and mote.isdecimal() and port.isdecimal() and int(port) < 1 << 16):
        raise typer.BadParameter(
            f"{text!r}: expected MOTE:PORT, a mote's id and a port of 0..65535, as in 7:1234",
            param_hint="--gdb",
        )
    return int(mote), int(port)


def _duration(option: str, text: str) -> float:
    try:
        return duration.seconds(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


class _one_line_errors:
    """Expected failures become one line on standard error and exit code 1."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, (NetworkError, TestbedError, ValueError, OSError)):
            text = (
                f"{error.filename}: {error.strerror}"
                if isinstance(error, OSError) and error.filename
                else error
            )
            print(f"skerry: {text}", file=sys.stderr)
            raise typer.Exit(1) from error
