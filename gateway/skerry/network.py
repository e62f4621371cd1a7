"""The motes' side of the gateway: what they run, what they said, and what is to be sent to them."""

from __future__ import annotations

import logging
import time
from binascii import crc32
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from construct import Container

from skerry.catalog import Catalog
from skerry.catalog.refusals import Refusals
from skerry.commands import Commands, Running, arguments
from skerry.netclock import NetworkClock
from skerry.plan.model import Difference, Feed, Installation, QueryPlan
from skerry.plan.queueing import held_ms
from skerry.proxy.demand import Demand
from skerry.streams.ingest import Stream
from skerry_protocol import codec
from skerry_protocol.codec import Packet
from skerry_protocol.commands import Action, event_number
from skerry_protocol.packets import BROADCAST, FRAGMENT_MAXIMUM, CommandOp, Event, PacketType

log = logging.getLogger(__name__)

#: So long after a query was to be stopped its samples still count: the order takes its time.
STOPPING_S = 2


class Network:
    """Demand, the streams it makes, clock, catalog and refusals. ``send`` queues a packet for the root.

    Changes go out in two steps, so that their owner can remember them in between: :meth:`prepare`, :meth:`tell`.
    Not locked: its owner calls it under his lock.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self.clock = NetworkClock()
        self.catalog = Catalog()
        self.refusals = Refusals()
        self.commands = Commands()
        self.demand = Demand()
        #: Mote queries of all times by number, and those of this session by their query id.
        self.streams: dict[int, Stream] = {}
        self.current: dict[int, Stream] = {}
        self.session = 0
        self.query_version = 0
        #: Of the last command; motes number their own from 0x8000.
        self._token = int(time.time()) % 0x7FFF
        self._last_time = 0.0
        #: What the motes hold or will have been sent: checksums of programs by query id.
        self._told: dict[int, int] = {}
        self._outgoing: list[bytes] = []

    # ---- what is asked ----

    def now(self) -> int:
        """Network time in whole s; 0 while unknown."""
        return int(self.clock.now())

    def stream(self, number: int) -> Stream | None:
        """A stream of any time."""
        return self.streams.get(number)

    def held_ms(self, number: int) -> tuple[int, int] | None:
        """Of a stream whose rows come in any order, its sample period and how long after their sample time rows are held back, ms.
        None: of all others, and of those of sessions that are over."""
        stream = self.streams.get(number)
        held = held_ms(stream.mote_query) if stream is not None and stream.session == self.session else 0
        return (stream.mote_query.period_ms, held) if stream is not None and held else None

    def stream_of_query(self, query: int) -> Stream | None:
        """The stream of a mote query's id in this session."""
        return self.current.get(query)

    def feeds(self, user: str) -> dict[int, Feed]:
        """Which rows of which stream are a user's now, by stream number; {} for one whose query is over."""
        if not self.demand.has(user):
            return {}
        found = [(self.current.get(feed.query), feed) for feed in self.demand.feeds(user)]
        return {stream.number: feed for stream, feed in found if stream is not None}

    def called_off(self, user: str, had: Iterable[int], feeds: Mapping[int, Feed]) -> list[int]:
        """Of the streams that a user had, those that are not his any more though they have not ended long ago: another took their
        place before he was to read them, and rows that motes send until they hear of it are not his."""
        if not self.demand.has(user):
            return []
        known = [(number, self.streams[number]) for number in had if number not in feeds]
        return [
            number
            for number, stream in known
            if self.current.get(stream.query) is stream and self.demand.installation(stream.query) is not None
        ]

    def refused(self, user: str) -> list[str]:
        """Which motes do not run what a user asked, and why."""
        running = [feed.query for feed in self.demand.feeds(user)] if self.demand.has(user) else []
        return [sentence for query in running for sentence in self.refusals.of(query)]

    # ---- what motes say ----

    def hear(self, packet: Packet) -> None:
        """A packet of any kind; rows tell only that their mote is there."""
        if packet.type in (PacketType.RESULT, PacketType.SERIES, PacketType.STATUS, PacketType.COMMAND_ACK):
            self.catalog.hear(packet.body.node, time.time())
        if packet.type is PacketType.STATUS:
            self.catalog.update(packet.body, time.time())
            self.clock.sighting(packet.body.seconds, time.time())
        elif packet.type is PacketType.REFUSAL:
            log.warning("%s", self.refusals.add(packet.body))
        elif packet.type is PacketType.EVENT:
            self.catalog.events.hear(packet.body.event, time.time())
        elif packet.type is PacketType.COMMAND_ACK:
            self.commands.answer(packet.body.node, packet.body.token, packet.body.status)
        elif packet.type is PacketType.LOG:
            log.info("mote %d: %s", packet.body.node, packet.body.text.decode("ascii", "replace"))

    def greet(self, hello: Container[Any]) -> bool:
        """The root's HELLO; whether a new session begins with it."""
        if self.clock.known:
            self._last_time = self.clock.now()
        self.clock.restart(hello.seconds, hello.ticks, time.time())
        programs = {i.query: crc32(i.program) for i in self.demand.installations()}
        new = bool(hello.session != self.session)
        if new:
            # The root's time begins at 0 and no mote holds a query any more: ask anew for what is left of them.
            log.info("root's session %d begins", hello.session)
            self.session = hello.session
            self.current = {}
            self.adopt(self.demand.restart(self._last_time, self.now()))
            programs = {}
        self._outgoing = []
        self._told = {query: programs.get(query, 0) for query in hello.queries}
        return new

    # ---- what they are told ----

    def adopt(self, difference: Difference) -> None:
        """Give what is to be installed a stream each, and those of what is to be stopped an end."""
        views = [made.query for query in difference.stop for made in self.demand.views(query)]
        for query in (*difference.stop, *views):
            stream = self.current.get(query)
            if stream is not None and stream.until_ms is None:
                # What is called off before its cut-over never counts.
                begun = self.now() * 1000 >= stream.since_ms
                until_ms = (self.now() + STOPPING_S) * 1000 if begun else stream.since_ms
                self._keep(replace(stream, until_ms=until_ms))
        for installation in difference.install:
            number, query = len(self.streams) + 1, installation.query
            since_ms = self.demand.cut_ms(query)
            self._keep(Stream(number, self.session, query, installation.mote_query, since_ms))
        self._make_views()

    def _make_views(self) -> None:
        """A stream for each of what the gateway makes of rows."""
        for source in list(self.current.values()):
            for made in self.demand.views(source.query):
                known = self.current.get(made.query)
                since_ms = self.demand.cut_ms(made.query)
                if known is None or (known.mote_query, known.since_ms) != (made.mote_query, since_ms):
                    number = len(self.streams) + 1
                    self._keep(Stream(number, self.session, made.query, made.mote_query, since_ms))

    def views(self, stream: Stream) -> list[Stream]:
        """The streams that the gateway makes of one, in this session."""
        if self.current.get(stream.query) is not stream:
            return []
        made = [self.current.get(installation.query) for installation in self.demand.views(stream.query)]
        return [view for view in made if view is not None]

    def _keep(self, stream: Stream) -> None:
        self.streams[stream.number] = self.current[stream.query] = stream

    def prepare(self) -> bool:
        """Make the packets that let the motes run what the demand asks; whether there are any to send."""
        wanted = {i.query: (crc32(i.program), i) for i in self.demand.installations()}
        # Motes hold few queries: room first.
        for query in [q for q, program in self._told.items() if wanted.get(q, (0,))[0] != program]:
            self._stop(query)
        for query in [q for q in wanted if q not in self._told]:
            self._told[query] = wanted[query][0]
            self._install(wanted[query][1])
        return bool(self._outgoing)

    def tell(self) -> None:
        """Send what was prepared."""
        for packet in self._outgoing:
            self._send(packet)
        self._outgoing = []

    def _install(self, installation: Installation) -> None:
        self._next_version()
        self.refusals.forget(installation.query)
        program = installation.program
        for offset in range(0, len(program), FRAGMENT_MAXIMUM):
            self._outgoing.append(
                codec.encode(
                    PacketType.QUERY_INSTALL, query_version=self.query_version, query=installation.query,
                    total=len(program), offset=offset, data=program[offset : offset + FRAGMENT_MAXIMUM],
                )
            )  # fmt: skip

    def _stop(self, query: int) -> None:
        self._next_version()
        self.refusals.forget(query)
        del self._told[query]
        self._outgoing.append(
            codec.encode(PacketType.QUERY_STOP, query_version=self.query_version, query=query)
        )

    def _next_version(self) -> None:
        self.query_version = (self.query_version + 1) & 0xFFFF or 1

    def raise_event(self, event: str) -> None:
        """An event as if at the root."""
        root = self.catalog.root()
        values = {
            "event": event_number(event), "node": root.nodeid if root else 0, "x": round(root.xpos * 100) if root else 0,
            "y": round(root.ypos * 100) if root else 0, "seconds": self.now(), "value": -(2**31),
        }  # fmt: skip
        self._command(BROADCAST, CommandOp.EVENT, bytes(Event.build(values)))

    def run(self, action: Action, argument: int | None, mote: int | None) -> Running:
        """Send a command to a mote, None: to all."""
        target = BROADCAST if mote is None else mote
        token = self._command(target, CommandOp.RUN, arguments(action, argument))
        running = Running(token, action.name, argument, mote)
        self.commands.add(running)
        return running

    def _command(self, target: int, op: CommandOp, data: bytes) -> int:
        """Send it; its token."""
        self._token = self._token % 0x7FFF + 1
        self._send(codec.encode(PacketType.COMMAND, target=target, token=self._token, op=op, arguments=data))
        return self._token

    # ---- kept over a restart ----

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "session": self.session,
            "query_version": self.query_version,
            "network_time": self.clock.now() if self.clock.known else self._last_time,
            "streams": [stream.to_dict() for stream in self.streams.values()],
            "current": [stream.number for stream in self.current.values()],
            "demand": self.demand.to_dict(),
            "catalog": self.catalog.to_dict(),
        }

    def restore(self, state: Mapping[str, Any], plans: Mapping[str, QueryPlan]) -> None:
        """What :meth:`to_dict` wrote; ``plans`` of its users."""
        self.session, self.query_version = state["session"], state["query_version"]
        self._last_time = state["network_time"]
        streams: Iterable[Stream] = map(Stream.from_dict, state["streams"])
        self.streams = {stream.number: stream for stream in streams}
        self.current = {self.streams[number].query: self.streams[number] for number in state["current"]}
        self.catalog = Catalog.from_dict(state["catalog"])
        served = {user: entry for user, entry in state["served"].items() if entry is not None}
        self.demand = Demand.from_dict(state["demand"], served, plans)
