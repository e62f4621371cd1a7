"""From appending a row until its user has it, through HTTP, with one user and with many, beside the state before; and a user who comes.

Both gateways run all the time and are measured in turn, by the same log writer and readers. That of the state before has PySpark's own
workers, not those that it patched.
"""

from __future__ import annotations

import asyncio
import bisect
import time
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

import numpy as np

from bench.measuring.arrow_readers import ArrowReaders
from bench.measuring.line_and_log import SPAN
from bench.measuring.open_files import allow_open_files
from bench.measuring.rounds import in_turn, ratio
from bench.measuring.states import BEFORE, SINCE, Driven, driven, states
from bench.runner.benchmark import Benchmark, Options, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Spread

#: % of the rows that the first user gets, and each other one.
FIRST, OTHERS = 20, 0.1


@dataclass(frozen=True)
class Users(Options):
    many: int = option(10_000, "users beside whom the first one is measured again")
    rounds: int = option(5, "how often each")
    rate: int = option(100, "rows a second")
    length: int = option(15, "s of rows that are timed")
    comers: int = option(10, "users who come while rows flow, of this state")


class Timed:
    """A gateway whose readers' rows are timed."""

    def __init__(self, gateway: Driven) -> None:
        self.gateway, self.readers = gateway, ArrowReaders(gateway.daemon.port)
        self._rng = np.random.default_rng(1)
        #: The last row that the gateway knew when it started.
        self.known = -1

    async def users(self, count: int) -> None:
        """As many as that, with a reader each; the first one has most rows."""
        await self.readers.close()
        while len(self.gateway.users) < count:
            width = round(SPAN * (OTHERS if self.gateway.users else FIRST) / 100)
            low = int(self._rng.integers(0, SPAN - width))
            await asyncio.to_thread(self.gateway.ask, low, low + width - 1)
        await asyncio.to_thread(self.gateway.begin)
        self.known = self.gateway.rows - 1
        await self.readers.open(self.gateway.users, self.known)

    async def waits(self, rate: int, seconds: float) -> list[float]:
        """How long rows took, in ms, ascending."""
        self.readers.seen.clear()
        self.readers.timed = True
        got = self.readers.rows
        appended = await asyncio.to_thread(self.gateway.trickle, rate, seconds)
        await self.readers.until(
            got + self.gateway.expected(self.gateway.users, [one[:2] for one in appended])
        )
        self.readers.timed = False
        firsts = [first for first, _, _ in appended]
        times = [at for _, _, at in appended]
        seen = self.readers.seen
        return sorted(1e3 * (now - times[bisect.bisect_right(firsts, row) - 1]) for row, now in seen)

    async def comes(self, rate: int) -> float:
        """From asking until the first row, in s, of one who wants what the first one does, so that motes are asked nothing else."""
        await asyncio.to_thread(self.gateway.trickle, rate, 1)
        began, one = time.monotonic(), ArrowReaders(self.gateway.daemon.port)
        query = await asyncio.to_thread(self.gateway.ask, *next(iter(self.gateway.users.values())))
        one.timed = True
        # The gateway, which has not written them, takes all rows since its start for later than his query.
        await one.open([query], self.known)
        first = self.gateway.rows
        while not (came := [now for row, now in one.seen if row >= first]):
            await asyncio.to_thread(self.gateway.trickle, rate, 0.2)
        took = min(came) - began
        await one.close()
        await asyncio.to_thread(self.gateway.client.stop, query)
        del self.gateway.users[query]
        return took


def measure(options: Users, recorder: Recorder) -> None:
    """All gateways, with one user and with many."""
    ways = states(recorder, plain_workers=True)
    allow_open_files(len(ways) * options.many + 1_000)
    with ExitStack() as stack:
        gateways = {}
        for way in ways:
            recorder.progress(f"{way.name}: starting")
            gateways[way.name] = Timed(stack.enter_context(driven(way)))
        asyncio.run(_measure(gateways, options, recorder))


async def _measure(gateways: dict[str, Timed], options: Users, recorder: Recorder) -> None:
    table = recorder.table(
        "states",
        [
            Column("users"), Column("state"), Column("append → row at its user, median", "ms", ".0f", better="less"),
            Column("the same, 95 %", "ms", ".0f", better="less"),
        ],
        labels=2,
    )  # fmt: skip
    middles: dict[tuple[int, str], list[float]] = {}
    for users in (1, options.many):
        lates: dict[str, list[float]] = {name: [] for name in gateways}
        for name, gateway in gateways.items():
            middles[users, name] = []
            recorder.progress(f"{users:,} users come, {name}")
            await gateway.users(users)
            # What is used for the first time is not timed.
            await gateway.waits(options.rate, options.length)
        for number, name in in_turn(gateways, options.rounds):
            recorder.progress(f"{users:,} users, {name}, round {number} of {options.rounds}")
            waits = await gateways[name].waits(options.rate, options.length)
            middles[users, name].append(median(waits))
            lates[name].append(waits[int(0.95 * len(waits))])
        for name in gateways:
            table.row(users, name, Spread.of(middles[users, name]), Spread.of(lates[name]))
        _tell(users, middles, lates, recorder)
    one, many = middles[1, SINCE], middles[options.many, SINCE]
    recorder.figure(
        f"median with {options.many:,} users ÷ with one", ratio(many, one), "", ".2f", better="less", goal=1.2
    )
    comes = [
        1e3 * await gateways[SINCE].comes(options.rate)
        for _ in recorder.steps(range(options.comers), "a user comes")
    ]
    recorder.figure(
        f"user added among {options.many:,} → his first row", Spread.of(comes), "ms", ".0f", better="less", goal=1000,
        main=True,
    )  # fmt: skip
    for gateway in gateways.values():
        await gateway.readers.close()


def _tell(
    users: int, middles: dict[tuple[int, str], list[float]], lates: dict[str, list[float]], recorder: Recorder
) -> None:
    named = f"{users:,} user{'s' * (users != 1)}"
    goals = (150, 300) if users == 1 else (None, None)
    recorder.figure(
        f"append → row at its user, {named}, median", Spread.of(middles[users, SINCE]), "ms", ".0f", better="less",
        goal=goals[0], main=users == 1,
    )  # fmt: skip
    recorder.figure(
        f"the same, 95 %, {named}", Spread.of(lates[SINCE]), "ms", ".0f", better="less", goal=goals[1]
    )
    if BEFORE in lates:
        recorder.figure(
            f"median since ÷ before, {named}", ratio(middles[users, SINCE], middles[users, BEFORE]), "", ".2f", better="less",
            goal=1.15, main=users == 1,
        )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Users(many=20, rounds=1, length=4, comers=1), minutes=18)
