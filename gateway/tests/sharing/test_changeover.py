"""However often who shares with whom changes, each user has each of his epochs once, and motes never hold more than they can."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import pytest

from gateway.tests.sharing.plans import kept
from gateway.tests.sharing.test_placement import drawn, plan
from skerry.planner.model.periods import ceiling
from skerry.planner.model.plans import Difference, QueryPlan
from skerry.planner.physical.mote_memory import MEMORY_BYTES, bytes_taken
from skerry.sharing.demand import Demand
from skerry.sql.errors import QueryError
from skerry_protocol.limits import QUERIES_MAXIMUM


class Motes:
    """A network that samples what is installed, from the program's start until it is stopped, at all motes alike."""

    def __init__(self, demand: Demand) -> None:
        self.demand, self.now = demand, 100
        self.sampled: dict[int, set[int]] = {}
        #: By user, what he had: his epochs, with the ms of the samples that they are of.
        self.had: dict[str, dict[int, list[int]]] = {}
        self._kept: dict[int, tuple[tuple[int, int, int | None], ...]] = {}

    def note(self, change: Difference) -> None:
        """What motes are told."""
        for installation in change.install:
            assert installation.query not in self.sampled
            self.sampled[installation.query] = set()
        active = self.demand.installations()
        assert len(active) <= QUERIES_MAXIMUM
        assert sum(bytes_taken(installation.mote_query) for installation in active) <= MEMORY_BYTES
        assert not {installation.query for installation in active} & set(change.stop)

    def go_on(self, seconds: int) -> None:
        """Time passes."""
        for _ in range(seconds):
            for installation in self.demand.installations():
                period = installation.mote_query.period_ms
                for t in range(ceiling(self.now * 1000, period), (self.now + 1) * 1000, period):
                    if installation.start * 1000 <= t < installation.end * 1000:
                        self.sampled[installation.query].add(t)
            self.collect([user for user, chosen in self.demand.users().items() if _ends(chosen)])
            self.now += 1
            self.note(self.demand.advance(self.now))
        self.collect(self.demand.users())

    def collect(self, users: Iterable[str]) -> None:
        """What they have now. Who may be gone after the next second is asked each second."""
        streams: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for user in users:
            period, rows = self.demand.users()[user].period_ms, dict[int, list[int]]()
            self.had[user] = rows
            for feed in self.demand.feeds(user):
                stream = feed.query, feed.stream_period_ms
                if stream not in streams:
                    streams[stream] = self._rows(*stream)
                for begin, sample in streams[stream]:
                    if feed.passes(begin):
                        rows.setdefault(begin // period, []).append(sample)

    def _rows(self, query: int, period_ms: int) -> list[tuple[int, int]]:
        """Of a stream's rows, the time that stands for them and when they were sampled."""
        if query in self.sampled:
            return [(t, t) for t in self.sampled[query]]
        rows = []
        for source, samples in self.sampled.items():
            every = self.demand.installation(source)
            for made, since, until in self.demand.views(source) if every is not None else ():
                for t in samples if made.query == query and every is not None else ():
                    begin = t // period_ms * period_ms
                    first = t - every.mote_query.period_ms < begin
                    if first and since <= begin and (until is None or begin < until):
                        rows.append((begin, t))
        return rows


def _ends(chosen: QueryPlan) -> bool:
    return chosen.once or chosen.duration_ms is not None


def _check(motes: Motes, user: str, chosen: QueryPlan) -> None:
    epochs = motes.had.get(user, {})
    assert all(len(samples) == 1 for samples in epochs.values()), f"{user} has an epoch twice: {epochs}"
    if epochs:
        first = min(epochs)
        assert sorted(epochs) == list(range(first, first + len(epochs))), f"{user} misses an epoch"
        # What motes answer to him alone is of the moment at which his epoch begins.
        exact = all(samples == [epoch * chosen.period_ms] for epoch, samples in epochs.items())
        assert exact or chosen.once or _shares_another_period(motes, user, chosen)


def _shares_another_period(motes: Motes, user: str, chosen: QueryPlan) -> bool:
    periods = set[int]()
    for feed in motes.demand.feeds(user) if motes.demand.has(user) else ():
        periods.add(feed.stream_period_ms)
        for source in motes.sampled:
            running = motes.demand.installation(source)
            if running is not None and any(
                made.query == feed.query for made, _, _ in motes.demand.views(source)
            ):
                periods.add(running.mote_query.period_ms)
    return not motes.demand.has(user) or any(chosen.period_ms % period for period in periods)


def restarted(demand: Demand) -> Demand:
    """A gateway that was stopped in between."""
    again = kept(demand)
    again.placement.depth = demand.placement.depth
    return again


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(start, start + 25) for start in range(0, 100, 25)], ids=str)
def test_nobody_misses_an_epoch_or_has_one_twice(seeds: Sequence[int]) -> None:
    for seed in seeds:
        rng = random.Random(seed)
        demand = Demand(linger_seconds=3, forget_seconds=10**6)
        demand.placement.depth = rng.choice([1, 2, 4])
        motes = Motes(demand)
        lives: dict[str, QueryPlan] = {}
        for number in range(rng.choice([0, 2, 4])):
            motes.note(
                demand.add_user(
                    f"own{number}",
                    plan(f"ON EVENT x{number}: SELECT light FROM sensors SAMPLE PERIOD 2 s FOR 1 min"),
                    motes.now,
                )
            )
        for step in range(40):
            if rng.random() < 0.6 or not lives:
                user, chosen = f"u{step}", drawn(rng)
                try:
                    motes.note(motes.demand.add_user(user, chosen, motes.now))
                    lives[user] = chosen
                except QueryError:
                    pass
            else:
                gone = rng.choice([*lives])
                if motes.demand.has(gone):
                    motes.note(motes.demand.remove_user(gone, motes.now))
                _check(motes, gone, lives.pop(gone))
            motes.go_on(rng.choice([0, 0, 1, 3, 10, 30, 60]))
            if rng.random() < 0.1:
                motes.demand = restarted(motes.demand)
        motes.go_on(120)
        for user, chosen in lives.items():
            _check(motes, user, chosen)
            assert motes.had.get(user) or chosen.clauses, f"seed {seed}: {user} has no rows: {chosen.text}"
            if motes.demand.has(user) and not chosen.clauses:
                last = max(motes.had[user]) * chosen.period_ms
                assert motes.now * 1000 - last <= 2 * chosen.period_ms + 1000, (
                    f"seed {seed}: {user} has none any more"
                )
