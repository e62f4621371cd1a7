"""A gateway's users in virtual time: what they ask goes to emulated motes, and what motes send comes to them, through the gateway's own
parts; links between these and the clock are the test's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from skerry.execution.residual import Residual, Rows
from skerry.execution.stream_batches import stream_batch
from skerry.ingest.ingest import Ingest
from skerry.planner.model.plans import Difference, Feed, QueryPlan
from skerry.planner.planner import plan_query
from skerry.sharing.demand import Demand
from skerry.storage.log.stream_log import StreamLog, read
from skerry.streams.stream import Derived, Source, Stream
from skerry_protocol.packets import NO_LEVEL, PacketType
from skerry_testbed.pytest import NetworkHandle


class Users:
    """A gateway's demand, which motes are told of as it changes, and which goes on each second."""

    def __init__(self, net: NetworkHandle) -> None:
        self.net, self.demand = net, Demand()

    @property
    def now(self) -> float:
        """Network time in s."""
        return self.net.line.network_time()

    def add(self, user: str, sql: str) -> QueryPlan:
        """A user asks. Raises QueryError where motes have no room."""
        plan = plan_query(sql)
        assert isinstance(plan, QueryPlan)
        self.tell(self.demand.add_user(user, plan, self.now))
        return plan

    def remove(self, user: str) -> None:
        """A user goes."""
        self.tell(self.demand.remove_user(user, self.now))

    def advance(self, seconds: int) -> None:
        """Time goes on."""
        for _ in range(seconds):
            self.net.advance("1s")
            levels = [record.body.level for record in self.net.line.of(PacketType.STATUS)]
            self.demand.hops = max((level for level in levels if level != NO_LEVEL), default=0)
            self.tell(self.demand.advance(self.now))

    def tell(self, change: Difference) -> None:
        """Motes are told what changes."""
        for query in change.stop:
            self.net.line.stop(query)
        for installation in change.install:
            self.net.line.install(installation.query, installation.program)


class Answered(Users):
    """The same with a log, from which each user has his rows."""

    def __init__(self, net: NetworkHandle, data: Path) -> None:
        super().__init__(net)
        self.log, self._ingest, self._taken = StreamLog(data), Ingest(), 0
        self._streams: list[Stream] = []
        self._current: dict[int, Stream] = {}
        self._source = Source(self._current.get, lambda _: None, views=self._views)
        #: Of all users there have been: the plan, and which rows of which stream are theirs.
        self.asked: dict[str, QueryPlan] = {}
        self._feeds: dict[str, dict[int, Feed]] = {}

    def add(self, user: str, sql: str) -> QueryPlan:
        self.asked[user] = super().add(user, sql)
        self._note()
        return self.asked[user]

    def remove(self, user: str) -> None:
        now_ms = int(self.now * 1000)
        super().remove(user)
        self._feeds[user] = {
            number: feed if feed.until_ms is not None else replace(feed, until_ms=now_ms)
            for number, feed in self._feeds[user].items()
        }

    def advance(self, seconds: int) -> None:
        for _ in range(seconds):
            super().advance(1)
            new, self._taken = self.net.line.records[self._taken :], len(self.net.line.records)
            now_ms = int(self.now * 1000)
            packets = [
                record.packet for record in new if record.type in (PacketType.RESULT, PacketType.PARTIAL)
            ]
            self._ingest.store(packets, self._source, self.log, now_ms)
            self._ingest.release(self.log, now_ms)
            self._note()

    def tell(self, change: Difference) -> None:
        super().tell(change)
        for made in (*change.install, *change.made):
            since_ms = self.demand.cut_ms(made.query)
            stream = Stream(len(self._streams) + 1, 1, made.query, made.mote_query, since_ms)
            self._streams.append(stream)
            self._current[made.query] = stream

    def _views(self, stream: Stream) -> list[Derived]:
        return [
            Derived(self._current[made.query], since_ms, until_ms)
            for made, since_ms, until_ms in self.demand.views(stream.query)
        ]

    def _note(self) -> None:
        for user in self.demand.users():
            feeds = {self._current[feed.query].number: feed for feed in self.demand.feeds(user)}
            self._feeds.setdefault(user, {}).update(feeds)

    def since_ms(self, user: str) -> int | None:
        """When his first epoch was to begin; None: he went before it was known."""
        return min((feed.since_ms for feed in self._feeds[user].values()), default=None)

    def rows(self, user: str) -> list[tuple[int, dict[str, Any]]]:
        """All that he had, with his epoch, in the order in which it came."""
        plan = self.asked[user]
        records, residual = read(self.log.path, 0, self.log.rows), Residual(plan)
        found: list[tuple[int, int, dict[str, Any]]] = []
        for number, feed in self._feeds[user].items():
            stream = self._streams[number - 1]
            mine = records["stream"] == number
            prepared = Rows(stream_batch(records[mine], stream), stream.mote_query)
            chosen = residual.select(prepared, feed)
            epochs = (prepared.sample_ms[chosen] // plan.period_ms).tolist()
            places = mine.nonzero()[0][chosen].tolist()
            found += zip(places, epochs, residual.project(prepared, chosen).to_pylist(), strict=True)
        return [(epoch, row) for _, epoch, row in sorted(found, key=lambda each: each[0])]
