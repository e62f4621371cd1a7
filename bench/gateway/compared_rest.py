"""What a gateway's processes take while next to nothing comes: one user, a row each ten seconds; beside the state before, in turn."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from dataclasses import dataclass

from bench.measuring.arrow_readers import ArrowReaders
from bench.measuring.line_and_log import SPAN
from bench.measuring.rounds import in_turn, ratio
from bench.measuring.states import BEFORE, SINCE, Driven, driven, states
from bench.runner.benchmark import Benchmark, Options, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Spread

EVERY_S = 10


@dataclass(frozen=True)
class Rest(Options):
    rounds: int = option(5, "how often each is measured")
    rows: int = option(6, "rows of a round, one each 10 s")
    warm: int = option(6, "rows before")


def measure(options: Rest, recorder: Recorder) -> None:
    """Both gateways are at rest all the time; processor time of one counts while it gets a row each 10 s."""
    with ExitStack() as stack:
        gateways = {}
        for way in states(recorder):
            recorder.progress(f"{way.name}: starting")
            gateways[way.name] = stack.enter_context(driven(way))
        asyncio.run(_measure(gateways, options, recorder))


async def _measure(gateways: dict[str, Driven], options: Rest, recorder: Recorder) -> None:
    readers = {}
    for name, gateway in gateways.items():
        await asyncio.to_thread(gateway.ask, 0, SPAN - 1)
        await asyncio.to_thread(gateway.begin)
        readers[name] = ArrowReaders(gateway.daemon.port)
        await readers[name].open(gateway.users, gateway.rows - 1)
    for name, gateway in gateways.items():
        recorder.progress(f"{name}: begins")
        await _rows(gateway, readers[name], options.warm)
    parts: dict[str, list[float]] = {name: [] for name in gateways}
    sizes: dict[str, list[float]] = {name: [] for name in gateways}
    for number, name in in_turn(gateways, options.rounds):
        recorder.progress(f"{name}, round {number} of {options.rounds}")
        before, began = sum(gateways[name].processor().values()), time.monotonic()
        await _rows(gateways[name], readers[name], options.rows)
        took = sum(gateways[name].processor().values()) - before
        parts[name].append(100 * took / (time.monotonic() - began))
        sizes[name].append(gateways[name].memory() / 2**30)
    table = recorder.table(
        "states",
        [
            Column("state"), Column("processor, of one core", "%", ".1f", better="less"),
            Column("memory of all processes (PSS)", "GiB", ".2f", better="less"),
        ],
    )  # fmt: skip
    for name in gateways:
        table.row(name, Spread.of(parts[name]), Spread.of(sizes[name]))
    if BEFORE in gateways:
        for what, found in (("processor", parts), ("memory", sizes)):
            recorder.figure(
                f"{what} at rest, since ÷ before", ratio(found[SINCE], found[BEFORE]), "", ".2f", better="less", goal=1,
                main=True,
            )  # fmt: skip
    for one in readers.values():
        await one.close()


async def _rows(gateway: Driven, reader: ArrowReaders, rows: int) -> None:
    for _ in range(rows):
        got, next_one = reader.rows, time.monotonic() + EVERY_S
        await asyncio.to_thread(gateway.append, 1)
        await reader.until(got + 1)
        await asyncio.sleep(max(0.0, next_one - time.monotonic()))


BENCHMARK = Benchmark(measure, quick=Rest(rounds=1, rows=1, warm=0), minutes=13)
