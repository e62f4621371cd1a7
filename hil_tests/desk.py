"""A gateway at emulated motes, in virtual time: all that it is, but for Spark and HTTP."""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from construct import Container

from skerry.catalog.static_attributes import NO_STATICS, Statics
from skerry.delivery.engine import Engine
from skerry.ingest.ingest import Ingest
from skerry.network.link.endpoint import Endpoint
from skerry.network.link.stamp import Stamp
from skerry.network.network import Common, Network
from skerry.network.networks import Networks
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.planner import plan_query
from skerry.storage.log.record import Block
from skerry.storage.log.stream_log import StreamLog, read
from skerry_protocol.codes import PacketType
from skerry_testbed.pytest import NetworkHandle


class Desk:
    """``rows``: what each query has been told, in order; ``feeds``: which rows of which stream were its. This machine's clock goes with
    the network's."""

    def __init__(self, net: NetworkHandle, data: Path, machine: pytest.MonkeyPatch) -> None:
        self.net, self._began = net, time.time()
        machine.setattr("time.time", self._now)
        machine.setattr("time.time_ns", lambda: round(self._now() * 1e9))
        machine.setattr("time.clock_gettime", lambda _: self._now())
        self.rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.feeds: dict[str, dict[int, Feed]] = defaultdict(dict)
        self.log = StreamLog(data)
        self.endpoint = Endpoint(net.bed.send, self._greet)
        common = Common()
        self.network = Network(self.endpoint.send, common)
        self.networks = Networks([self.network], common)
        self.ingest, self.engine = Ingest(roll=self.networks), Engine(common.streams.get)
        self._numbers = itertools.count(1)
        self._position: dict[str, int] = {}
        net.bed.line_listeners[:] = [self._received]
        self.advance(3)

    def _now(self) -> float:
        return self._began + self.net.now

    def _greet(self, hello: Container[Any]) -> None:
        self.network.greet(hello)
        self._tell()

    def _received(self, data: bytes) -> None:
        packets = [
            Stamp(packet.type, packet.body, self._now()) if packet.type is PacketType.TIME else packet
            for packet in self.endpoint.feed(data)
        ]
        self.ingest.store(packets, self.networks.source(self.network), self.log, self.networks.now_ms())
        self.endpoint.acknowledge()
        self.network.hear(packets)
        if any(isinstance(packet, Stamp) for packet in packets):
            self.ingest.tell(self.log)

    def _tell(self) -> None:
        self.networks.prepare()
        self.networks.tell()

    def ask(self, sql: str, statics: Statics = NO_STATICS) -> str:
        """A query; returns what :attr:`rows` has its rows under."""
        plan, user = plan_query(sql, statics=statics), f"u{next(self._numbers)}"
        assert isinstance(plan, QueryPlan)
        self.networks.add_user(user, plan)
        self._tell()
        self.engine.subscribe(user, plan)
        self._position[user] = self.engine.done - 1
        self._feeds()
        return user

    def stop(self, user: str) -> None:
        """He goes, with what has been told so far."""
        self._read()
        self.networks.remove_user(user)
        self._tell()
        self.engine.unsubscribe(user)
        del self._position[user]
        self._feeds()

    def _feeds(self) -> None:
        for user in self.networks.changed():
            feeds = self.networks.feeds(user)
            if feeds and user in self._position:
                self.engine.set_feeds(user, feeds)
                off = self.networks.called_off(user, self.feeds[user], feeds)
                mine = {**self.feeds[user], **feeds}
                self.feeds[user] = {number: feed for number, feed in mine.items() if number not in off}

    def _read(self) -> None:
        if self.log.rows > self.engine.done:
            self.engine.process(Block(self.engine.done, read(self.log.path, self.engine.done, self.log.rows)))
        for user, position in self._position.items():
            subscriber = self.engine.subscriber(user)
            assert subscriber is not None
            told = subscriber.buffer.after(position) or []
            self.rows[user] += [row for _, row in told]
            self._position[user] = max(position, self.engine.done - 1)

    def advance(self, seconds: int) -> None:
        """Let virtual time pass."""
        for _ in range(seconds):
            for _ in range(10):
                self.net.advance(0.1)
                self.endpoint.tick(self.net.now)
            self.ingest.release(self.log, self.networks.now_ms())
            if self.networks.known:
                self.networks.advance()
                self._tell()
                self._feeds()
            self._read()
