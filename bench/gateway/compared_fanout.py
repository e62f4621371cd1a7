"""Rows a second from the log to users, and what a gateway's processes take for them, beside the state before, both driven from outside.

A log writer appends so many rows at once; readers hold a connection each, and get Arrow. Both gateways run all the time, and are measured
in turn. Processor time is without readers but one, who tells when all rows have been through.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from bench.measuring.arrow_readers import ArrowReaders
from bench.measuring.line_and_log import SPAN
from bench.measuring.open_files import allow_open_files
from bench.measuring.processes import JAVA, PYTHON, WORKERS
from bench.measuring.rounds import in_turn, ratio
from bench.measuring.states import BEFORE, SINCE, Driven, driven, states
from bench.runner.benchmark import Benchmark, Options, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Spread

#: A gateway with several processes that serve readers.
TWO = "since, two API processes"


@dataclass(frozen=True)
class Users(Options):
    users: tuple[int, ...] = option((1, 100, 1_000, 10_000), "how many there are, in turn")
    share: float = option(0.1, "% of the rows that each wants")
    rounds: int = option(5, "how often each")
    rows: int = option(1_048_576, "rows at once whose rate is measured")
    deliveries: int = option(4_194_304, "of those so many that no more deliveries come of them than this")
    quiet: int = option(2_097_152, "rows at once whose processor time is measured")
    table: int = option(0, "rows of a table that all users' rows are joined with; 0: there is none")
    api_workers: int = option(
        1, "processes that serve readers, of this state; with more it stands beside one, too"
    )


class Measured:
    """One gateway, and its readers."""

    def __init__(self, gateway: Driven, seed: int) -> None:
        self.gateway = gateway
        #: Of one user, and of the others.
        self._first, self._others = (ArrowReaders(gateway.daemon.port) for _ in range(2))
        self._rng = np.random.default_rng(seed)

    async def users(self, count: int, width: int) -> None:
        """As many as that, with a reader each."""
        users = self.gateway.users
        await self.close()
        while len(users) < count:
            low = int(self._rng.integers(0, SPAN - width))
            await asyncio.to_thread(self.gateway.ask, low, low + width - 1)
        await asyncio.to_thread(self.gateway.begin)
        first, *others = users
        await self._first.open([first], self.gateway.rows - 1)
        await self._others.open(others, self.gateway.rows - 1)

    async def rate(self, rows: int) -> float:
        """Rows a second until every reader has his."""
        first, *others = self.gateway.users
        (got, beside), began = (self._first.rows, self._others.rows), self.gateway.rows
        _, ended = await asyncio.to_thread(self.gateway.append, rows)
        await self._first.until(got + self._expected([first], began))
        return rows / (await self._others.until(beside + self._expected(others, began)) - ended)

    async def without_readers(self) -> None:
        """All but one leave."""
        await self._others.close()

    async def takes(self, rows: int) -> dict[str, float]:
        """Processor time for a million rows, in s, by process, while one user has a reader."""
        before, got, began = self.gateway.processor(), self._first.rows, self.gateway.rows
        await asyncio.to_thread(self.gateway.append, rows)
        await self._first.until(got + self._expected([next(iter(self.gateway.users))], began))
        since = self.gateway.processor()
        return {name: (since[name] - before[name]) / rows * 1e6 for name in since}

    def _expected(self, users: list[str], began: int) -> int:
        """Rows that these users get of those appended since row ``began``."""
        return self.gateway.expected(users, [(began, self.gateway.rows - began)])

    async def close(self) -> None:
        """All readers."""
        await self._first.close()
        await self._others.close()


def measure(options: Users, recorder: Recorder) -> None:
    """All gateways, with more and more users."""
    ways = [replace(way, table=options.table) for way in states(recorder)]
    if options.api_workers > 1:
        since = ways[-1]
        more = ("--api-workers", str(options.api_workers))
        ways.append(replace(since, name=TWO, options=more))
    allow_open_files(len(ways) * max(options.users) + 1_000)
    with ExitStack() as stack:
        gateways = {}
        for way in ways:
            recorder.progress(f"{way.name}: starting")
            gateways[way.name] = stack.enter_context(driven(way))
        asyncio.run(_measure(gateways, options, recorder))


async def _measure(gateways: dict[str, Driven], options: Users, recorder: Recorder) -> None:
    measured = {name: Measured(gateway, 1) for name, gateway in gateways.items()}
    width = round(SPAN * options.share / 100)
    table = recorder.table(
        "states",
        [
            Column("users"), Column("state"), Column("rows from log to users", "/s", ",.0f", better="more"),
            Column(f"{PYTHON}, processor time for a million rows", "s", ".3f", better="less"),
            Column(JAVA, "s", ".2f", better="less"), Column(WORKERS, "s", ".2f", better="less"),
            Column("gateway and driver, of all", "%", ".0f", better="less"),
        ],
        labels=2,
    )  # fmt: skip
    for users in options.users:
        rows = min(options.rows, int(options.deliveries / (users * width / SPAN)))
        takes: dict[str, list[dict[str, float]]] = {name: [] for name in measured}
        rates: dict[str, list[float]] = {name: [] for name in measured}
        for name, one in measured.items():
            recorder.progress(f"{users:,} users come, {name}")
            await one.users(users, width)
            # What is used for the first time is not timed.
            await one.rate(rows)
        for number, name in in_turn(measured, options.rounds):
            recorder.progress(f"{users:,} users, rate, {name}, round {number} of {options.rounds}")
            rates[name].append(await measured[name].rate(rows))
        for one in measured.values():
            await one.without_readers()
        for number, name in in_turn(measured, options.rounds):
            recorder.progress(f"{users:,} users, processor time, {name}, round {number} of {options.rounds}")
            takes[name].append(await measured[name].takes(options.quiet))
        python = {name: [take[PYTHON] for take in found] for name, found in takes.items()}
        for name in measured:
            java, workers = (Spread.of(take[what] for take in takes[name]) for what in (JAVA, WORKERS))
            table.row(
                users, name, Spread.of(rates[name]), Spread.of(python[name]), java, workers, Spread.of(_part(takes[name]))
            )  # fmt: skip
        _tell(users, options, rates, python, _part(takes[SINCE]), recorder)
    for one in measured.values():
        await one.close()


def _part(takes: list[dict[str, float]]) -> list[float]:
    """Of all processes' time the gateway's and driver's, in %."""
    return [100 * take[PYTHON] / sum(take.values()) for take in takes]


def _tell(
    users: int,
    options: Users,
    rates: dict[str, list[float]],
    python: dict[str, list[float]],
    part: list[float],
    recorder: Recorder,
) -> None:
    """The figures that have goals."""
    named = f"{users:,} user{'s' * (users != 1)}, {options.share:g} % each"
    if options.table:
        named += f", joined with a table of {options.table:,} rows"
    many, heavy = users >= 10_000, users * options.share >= 5_000
    if BEFORE in rates:
        recorder.figure(
            f"rows/s since ÷ before, {named}", ratio(rates[SINCE], rates[BEFORE]), "", ".2f", better="more",
            goal=0.6 if heavy else 0.8 if many or options.table else 0.9, main=True,
        )  # fmt: skip
        if users >= 100:
            recorder.figure(
                f"processor time of gateway and driver since ÷ before, {named}", ratio(python[SINCE], python[BEFORE]), "",
                ".2f", better="less", goal=1 / 4 if many else 1 / 3, main=True,
            )  # fmt: skip
    if TWO in rates:
        recorder.figure(
            f"rows/s with {options.api_workers} API processes ÷ with one, {named}", ratio(rates[TWO], rates[SINCE]), "", ".2f",
            better="more",
        )  # fmt: skip
    recorder.figure(
        f"gateway and driver, of all processes' time, {named}",
        Spread.of(part),
        "%",
        ".0f",
        better="less",
        goal=10,
    )


BENCHMARK = Benchmark(
    measure,
    quick=Users(users=(20,), rounds=1, rows=131_072, quiet=131_072),
    minutes=30,
)
