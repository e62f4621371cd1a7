"""The motes behind one root: what they run, what they said, and what is to be sent to them."""

from __future__ import annotations

import logging
import time
from binascii import crc32
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from construct import Container

from skerry.catalog import Catalog
from skerry.catalog.refusals import Refusals
from skerry.network import pings, searches
from skerry.network.answers import Answers
from skerry.network.clock import NetworkClock
from skerry.network.commands import Commands, Running, arguments, place_arguments
from skerry.network.index_asks import IndexAsks
from skerry.network.link.stamp import Stamp
from skerry.network.roster import LATELY_S, Roster
from skerry.planner.features.queueing import held_ms
from skerry.planner.model.plans import Difference, Feed, Installation, MoteQuery, QueryPlan
from skerry.planner.model.waits import default_ms, told_by
from skerry.sensors.index_states import motes_of
from skerry.sharing.demand import Demand
from skerry.sharing.placement import Placement
from skerry.streams.stream import Derived, Stream
from skerry_protocol import codec
from skerry_protocol.codec import Packet
from skerry_protocol.codes import CommandOp, PacketType, RefusalReason
from skerry_protocol.commands import Action, event_number
from skerry_protocol.limits import BROADCAST, FRAGMENT_MAXIMUM
from skerry_protocol.records import Event

log = logging.getLogger(__name__)

#: So long after a query was to be stopped its samples still count: the order takes its time.
STOPPING_S = 2


@dataclass
class Common:
    """What all networks of a gateway have together."""

    catalog: Catalog = field(default_factory=Catalog)
    commands: Commands = field(default_factory=Commands)
    pings: pings.Pings = field(default_factory=pings.Pings)
    searches: searches.Searches = field(default_factory=searches.Searches)
    #: Mote queries of all networks and times by number.
    streams: dict[int, Stream] = field(default_factory=dict)
    #: Of the last command; motes number their own from 0x8000.
    token: int = field(default_factory=lambda: int(time.time()) % 0x7FFF)
    roster: Roster = field(default_factory=Roster)
    #: Seconds of network time in one of this machine's, of emulated motes.
    speed: float = 1.0
    #: Who shares a mote query with whom, in all networks alike.
    placement: Placement = field(default_factory=Placement)

    def __post_init__(self) -> None:
        self.catalog.speed = self.speed
        self.index_asks = IndexAsks(self.next_token)

    def next_token(self) -> int:
        """For a command."""
        self.token = self.token % 0x7FFF + 1
        return self.token


#: Whose mote a packet tells of, beside rows.
_OF_ONE_MOTE = frozenset(
    {PacketType.STATUS, PacketType.FLASH, PacketType.COMMAND_ACK, PacketType.LOG, PacketType.STORED}
)
#: What a root says of its time is believed to come behind all else after so long, in s, however much it has to send.
BUSY_S = 10.0
#: Motes report each 32 s while a session is young or motes have much to do, and each 512 s at rest: in so long all have, in s, who
#: listens from a session's first seconds on; and whoever comes later.
REPORTS_S, REPORTS_AT_REST_S, YOUNG_S = 70.0, 530.0, 30
#: A session whose time has gone back behind what its root has told already is another one, and so is one that is so far behind what a
#: real root must have come to, in s; and what share of it its crystal may be off.
BACK_S, DRIFT = 60.0, 1e-4
#: A root starts less often than that while no gateway listens, and each start is a session.
STARTS = 256
#: Bits of a session below the number of rounds: see :func:`session_of`.
_ROUND = 32


class Network:
    """Demand, the streams it makes, clock and refusals. ``send`` queues a packet for the root.

    Changes go out in two steps, so that their owner can remember them in between: :meth:`prepare`, :meth:`tell`.
    Not locked: its owner calls it under his lock.
    """

    def __init__(self, send: Callable[[bytes], None], common: Common | None = None) -> None:
        self._send = send
        self._common = common or Common()
        self.clock = NetworkClock(self._common.speed)
        self.refusals = Refusals()
        self.answers = Answers()
        self.demand = Demand(self._common.speed, placement=self._common.placement)
        #: Mote queries of this session by their query id.
        self.current: dict[int, Stream] = {}
        #: See :meth:`skerry.network.clock.NetworkClock.gap`, of the last HELLO.
        self.gap: tuple[float, float] | None = None
        #: See :func:`session_of`; 0 until the root has been heard for the first time.
        self.session = 0
        self.query_version = 0
        #: Since which network time, in s, its root has been heard without a break.
        self._heard_from = 0.0
        #: Network time in s up to which all that its root had has come, and since when that is to be found out.
        self._settled = self._unsettled = 0.0
        #: Whether all motes have had the time to report.
        self._knows_motes = False
        #: By mote query: see :meth:`waits`, :meth:`before`.
        self._waits: dict[int, dict[int, int]] = {}
        self._predecessors: dict[int, dict[int, int]] = {}
        self._last_time = 0.0
        #: Hops to the root, of its motes on average, as far as they have told.
        self.depth = 1.0
        #: What the motes hold or will have been sent: checksums of programs by query id.
        self._told: dict[int, int] = {}
        self._outgoing: list[bytes] = []
        self._from_the_beginning = False

    # ---- what is asked ----

    @property
    def streams(self) -> dict[int, Stream]:
        """Mote queries of all networks and times by number."""
        return self._common.streams

    @property
    def root(self) -> int:
        """The root's short address."""
        return root_of(self.session)

    @property
    def reachable(self) -> bool:
        """Whether its root can say something now."""
        return self.clock.connected

    @reachable.setter
    def reachable(self, connected: bool) -> None:
        self.clock.connected = connected

    def heard(self) -> float:
        """For how long its root has been heard without a break, in s of network time."""
        return self.clock.stamped - self._heard_from if self.reachable else 0.0

    def missed(self) -> None:
        """What its root says cannot be taken in now."""
        self._heard_from = self.clock.stamped

    def now(self) -> int:
        """Network time in whole s; before the root is heard, what it is if the root has gone on, or 0."""
        return int(self.clock.now())

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

    def called_off(self, user: str, had: Mapping[int, Feed], feeds: Mapping[int, Feed]) -> list[int]:
        """Of the streams that a user had, those that are not his any more though they have not ended long ago: another took their
        place before he was to read them, and rows that motes send until they hear of it are not his."""
        if not self.demand.has(user):
            return []
        return [
            stream.number
            for query, stream in self.current.items()
            if stream.number in had
            and stream.number not in feeds
            and self.demand.installation(query) is not None
        ]

    def refused(self, user: str) -> list[str]:
        """Which motes do not run what a user asked, and why."""
        running = [feed.query for feed in self.demand.feeds(user)] if self.demand.has(user) else []
        return [sentence for query in running for sentence in self.refusals.of(query)]

    def answered(self, user: str) -> tuple[int, int | None]:
        """How many motes have answered what a user asked, and how many are there that run it; None: that is not known yet."""
        running = [feed.query for feed in self.demand.feeds(user)] if self.demand.has(user) else []
        if not running:
            return 0, None
        return max(map(self.answers.of, running)), self.motes(running[-1])

    # ---- what motes say ----

    def hear(self, packets: Iterable[Packet]) -> None:
        """Packets of any kind, in the order they came; rows tell only that their mote is there."""
        #: Of the rows since the last other packet: motes by query.
        rows: defaultdict[int, list[int]] = defaultdict(list)
        result, series = PacketType.RESULT, PacketType.SERIES
        for packet in packets:
            if packet.type is result or packet.type is series:
                rows[packet.body.query].append(packet.body.node)
                continue
            self._hear_rows(rows)
            rows.clear()
            self._hear(packet)
        self._hear_rows(rows)

    def _hear_rows(self, rows: Mapping[int, Sequence[int]]) -> None:
        for query, motes in rows.items():
            self._common.catalog.hear(motes, time.time())
            self._common.roster.hear(motes, self.session, self.clock.stamped)
            self.demand.row_came(query, self.now())
            self.answers.hear_rows(query, motes)

    def _hear(self, packet: Packet) -> None:
        catalog = self._common.catalog
        if packet.type in (PacketType.STATUS, PacketType.COMMAND_ACK):
            catalog.hear([packet.body.node], time.time())
        if packet.type in _OF_ONE_MOTE:
            self._common.roster.hear([packet.body.node], self.session, self.clock.stamped)
        if packet.type is PacketType.STATES:
            self._common.roster.hear(motes_of(packet.body), self.session, self.clock.stamped)
        if packet.type is PacketType.PARTIAL:
            self.demand.row_came(packet.body.query, self.now())
            self.answers.hear_state(packet.body)
        if packet.type is PacketType.STATUS:
            catalog.update(packet.body, time.time(), self.root)
            self._reckon_depth(self.root)
            self._waits.clear()
        elif isinstance(packet, Stamp):
            self._tell_time(packet)
        elif packet.type is PacketType.REFUSAL:
            log.warning("%s", self.refusals.add(packet.body, self.now()))
            if packet.body.reason != RefusalReason.SLOTS:
                self.demand.refused(packet.body.query)
        elif packet.type in (PacketType.NAMESAKE, PacketType.EVENT, PacketType.FLASH):
            self._tell_catalog(packet)
        else:
            self._hear_answer(packet)

    def _hear_answer(self, packet: Packet) -> None:
        """What motes say to what they were told."""
        if packet.type is PacketType.COMMAND_ACK:
            self._common.commands.answer(packet.body.node, packet.body.token, packet.body.status)
            self._common.pings.answer(packet.body.node, packet.body.token, packet.body.status)
        elif packet.type is PacketType.ARRIVAL:
            self._common.pings.arrival(packet.body)
        elif packet.type is PacketType.FOUND:
            self._common.searches.hear(packet.body)
        elif packet.type is PacketType.STORED:
            self._common.index_asks.hear(packet.body, self.clock.now())
        elif packet.type is PacketType.STATES:
            self._common.index_asks.hear_states(packet.body, self.clock.now())
        elif packet.type is PacketType.LOG:
            log.info("mote %d: %s", packet.body.node, packet.body.text.decode("ascii", "replace"))

    def _tell_catalog(self, packet: Packet) -> None:
        catalog, body, now = self._common.catalog, packet.body, time.time()
        if packet.type is PacketType.NAMESAKE:
            catalog.tell_namesake(body.node, body.factory, body.other, now)
        elif packet.type is PacketType.EVENT:
            catalog.events.hear(body.event, now)
        else:
            catalog.flash.hear(body, now)

    def _tell_time(self, stamp: Stamp) -> None:
        self.clock.stamp(stamp.seconds, stamp.arrival)
        if stamp.all_sent or stamp.seconds - self._unsettled > BUSY_S:
            self._settled = self._unsettled = stamp.seconds
        self._knows_motes |= self.heard() >= (REPORTS_S if self._from_the_beginning else REPORTS_AT_REST_S)
        self._keep_pace()

    def _keep_pace(self) -> None:
        """Motes may run faster or slower than they were to."""
        self.demand.speed = self.clock.pace
        self._common.catalog.speed = self.clock.speed

    def _reckon_depth(self, root: int) -> None:
        levels = self._common.catalog.levels(root, time.time())
        self.demand.hops = max(levels, default=0)
        self.depth = fmean(levels) if levels else 1.0

    def greet(self, hello: Container[Any]) -> bool:
        """The root's HELLO; whether a new session begins with it."""
        # Of a gateway that has just started, too, whose root may have gone on or not: it is what time has passed.
        self._last_time = self.clock.stamped if self.clock.known else max(self._last_time, self.clock.now())
        programs = {i.query: crc32(i.program) for i in self.demand.installations()}
        last = self._last_of(hello.node)
        session = session_of(hello, last)
        new = session != self.session
        if new and last and (hello.session - last) & 0xFFFF > STARTS:
            log.warning(
                "root %d counts its sessions from %d on, after %d: it seems to have been flashed again, or replaced",
                hello.node, hello.session, last & 0xFFFF,
            )  # fmt: skip
        self.gap = None if new else self.clock.gap(hello.seconds)
        self.clock.restart(hello.seconds, hello.ticks, time.time(), goes_on=not new)
        self._heard_from = self.clock.stamped
        self.reachable = True
        self._call_roll(session, hello.seconds, new=new)
        # As the motes told last, in another session, too.
        self._reckon_depth(root_of(session))
        if new:
            # The root's time begins at 0 and no mote holds a query any more: ask anew for what is left of them.
            log.info("session %d of root %d begins", hello.session, hello.node)
            self.session = session
            self.current = {}
            self.adopt(self.demand.restart(self._last_time, self.now()))
            programs = {}
        self._outgoing = []
        self._told = {query: programs.get(query, 0) for query in hello.queries}
        if not self.query_version or _newer(hello.query_version, self.query_version):
            # Of a gateway with another data directory, or with this one before it was put back from a copy: motes pass over what is
            # not newer than what they have.
            self.query_version = hello.query_version
        return new

    def renewed(self, hello: Container[Any]) -> int | None:
        """The last session that is known of a root, where the one that it says in its HELLO is none that follows, nor goes on: its count
        of them was lost, and rows of both could not be told apart. It is asked to begin one behind that. None: all is well."""
        last = self._last_of(hello.node)
        ahead = (hello.session - last) & 0xFFFF
        if not last or 0 < ahead < 0x8000:
            return None
        if ahead == 0 and not (last == self.session and self._is_behind(hello.seconds)):
            return None
        self._send(codec.encode(PacketType.SESSION, node=hello.node, session=last & 0xFFFF))
        return last & 0xFFFF

    def _last_of(self, root: int) -> int:
        """The latest session of a root, through whatever link, that rows may be kept of; 0: none."""
        sessions = {self.session, *(stream.session for stream in self.streams.values())}
        return max((session for session in sessions if session and root_of(session) == root), default=0)

    def _call_roll(self, session: int, seconds: int, *, new: bool) -> None:
        """Which motes are to be there."""
        roster, catalog, root = self._common.roster, self._common.catalog, root_of(session)
        self._unsettled = seconds
        if new:
            self._settled = 0.0
            roster.begin(session, self.session, seconds)
        recent = [
            mote.nodeid
            for mote in catalog.all()
            if mote.root == root and catalog.unheard(mote.nodeid, time.time()) <= LATELY_S
        ]
        roster.assume(recent, session, seconds)
        self._from_the_beginning = seconds <= YOUNG_S
        # Who was known before is known; so is who comes with a session that was heard from its beginning, when all have reported.
        self._knows_motes = self._knows_motes or len(recent) > 1

    @property
    def settled_ms(self) -> int:
        """Network time up to which all that its root had has come."""
        return int(self._settled * 1000)

    def motes(self, query: int) -> int | None:
        """How many motes have been heard of lately, without those that refused a mote query; None: not all have had the time to report."""
        if not self._knows_motes:
            return None
        return self._common.roster.count(self.session, self.clock.stamped, self.refusals.motes(query))

    def heard_of(self, mote: int) -> float | None:
        """When something came of a mote last, network time in s; None: nothing has lately."""
        at = self._common.roster.heard(mote, self.session)
        return at if at is not None and self.clock.stamped - at <= LATELY_S else None

    def waits(self, query: int) -> dict[int, int]:
        """For how long, in ms, its readers wait for an epoch of a mote query, by what they are told by."""
        if query not in self._waits:
            usual = default_ms(self.demand.hops)
            asked = {self.demand.wait_ms(feed.user) for feed in self.demand.feeds_of(query)} or {None}
            self._waits[query] = {told_by(wait): usual if wait is None else wait for wait in asked}
        return self._waits[query]

    def predecessors(self, query: int) -> dict[int, int]:
        """The streams that readers of a mote query read before it, and up to which network time in ms."""
        if query not in self._predecessors:
            found: dict[int, int] = {}
            for feed in self.demand.feeds_of(query):
                for other in self.demand.feeds(feed.user):
                    stream = self.current.get(other.query)
                    if other.since_ms < feed.since_ms and other.until_ms is not None and stream is not None:
                        found[stream.number] = max(found.get(stream.number, 0), other.until_ms)
            self._predecessors[query] = found
        return self._predecessors[query]

    def _is_behind(self, seconds: int) -> bool:
        """Whether a root that says this time cannot be the one that was heard before."""
        if seconds + 1 < self.clock.stamped:
            return True
        now = self.clock.now()
        return self.clock.is_real and now - seconds > BACK_S + DRIFT * now

    # ---- what they are told ----

    def adopt(self, difference: Difference) -> None:
        """Give what is to be installed a stream each, and those of what is to be stopped an end.

        A root that was never heard has nothing to run; all is asked of it when it is.
        """
        self._waits.clear()
        self._predecessors.clear()
        if not self.session:
            return
        for query in (*difference.stop, *difference.ended):
            stream = self.current.get(query)
            if stream is not None and stream.until_ms is None:
                # What is called off before its cut-over never counts.
                begun = self.now() * 1000 >= stream.since_ms
                until_ms = (self.now() + STOPPING_S) * 1000 if begun else stream.since_ms
                self._keep(replace(stream, until_ms=until_ms))
        for installation in (*difference.install, *difference.made):
            self._begin(installation.query, installation.mote_query, self.demand.cut_ms(installation.query))

    def _begin(self, query: int, mote_query: MoteQuery, since_ms: int) -> None:
        """A stream of this session."""
        utc = self.clock.utc(since_ms)
        stream = Stream(len(self.streams) + 1, self.session, query, mote_query, since_ms)
        self._keep(replace(stream, since_utc_ms=None if utc is None else round(utc * 1000)))

    def views(self, stream: Stream) -> list[Derived]:
        """The streams that the gateway makes of one, in this session."""
        if self.current.get(stream.query) is not stream:
            return []
        return [
            Derived(made, since_ms, until_ms)
            for installation, since_ms, until_ms in self.demand.views(stream.query)
            if (made := self.current.get(installation.query)) is not None
        ]

    def _keep(self, stream: Stream) -> None:
        self.streams[stream.number] = self.current[stream.query] = stream

    def prepare(self) -> bool:
        """Make the packets that let the motes run what the demand asks; whether there are any to send.

        What a root holds it says when it is heard first: until then there are none.
        """
        if not self.clock.known:
            return False
        wanted = {i.query: (crc32(i.program), i) for i in self.demand.installations()}
        # Motes hold few queries: room first.
        for query in [q for q, program in self._told.items() if wanted.get(q, (0,))[0] != program]:
            self._stop(query)
        for query in [q for q in wanted if q not in self._told]:
            self._told[query] = wanted[query][0]
            self._install(wanted[query][1])
        return bool(self._outgoing)

    def ask_again(self) -> bool:
        """Prepare what motes refused that had not heard yet of what was to stop; whether there is any. Motes that hold it go on with it."""
        due = [query for query in self.refusals.due(self.now()) if query in self._told]
        for installation in self.demand.installations():
            if installation.query in due:
                self._send_program(installation)
        return bool(due)

    def tell(self) -> None:
        """Send what was prepared."""
        for packet in self._outgoing:
            self._send(packet)
        self._outgoing = []

    def _install(self, installation: Installation) -> None:
        self.refusals.forget(installation.query)
        self.answers.forget(installation.query)
        self._send_program(installation)

    def _send_program(self, installation: Installation) -> None:
        self._next_version()
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
        self.answers.forget(query)
        del self._told[query]
        self._outgoing.append(
            codec.encode(PacketType.QUERY_STOP, query_version=self.query_version, query=query)
        )

    def _next_version(self) -> None:
        self.query_version = (self.query_version + 1) & 0xFFFF or 1

    def raise_event(self, event: str, token: int) -> None:
        """An event as if at the root."""
        root = self._common.catalog.mote(self.root)
        values = {
            "event": event_number(event), "node": self.root, "x": round(root.xpos * 100) if root else 0,
            "y": round(root.ypos * 100) if root else 0, "seconds": self.now(), "value": -(2**31),
        }  # fmt: skip
        self._command(BROADCAST, token, CommandOp.EVENT, bytes(Event.build(values)))

    def run(self, running: Running, action: Action) -> None:
        """Send a command."""
        target = BROADCAST if running.mote is None else running.mote
        self._command(target, running.token, CommandOp.RUN, arguments(action, running.argument))

    def place(self, running: Running, x: int, y: int) -> None:
        """Tell a mote where it is, in cm."""
        assert running.mote is not None
        self._command(running.mote, running.token, CommandOp.SET_POSITION, place_arguments(x, y))

    def ping(self, pinged: pings.Pinged) -> None:
        """Have a mote send a record to another one."""
        self._command(
            pinged.mote,
            pinged.token,
            CommandOp.PING_BY if pinged.by else CommandOp.PING_TO,
            pings.arguments(pinged),
        )

    def search(self, searched: searches.Searched) -> None:
        """Have a mote search for others."""
        self._command(BROADCAST, searched.token, CommandOp.SEARCH, searches.arguments(searched))

    def ask_index(self, target: int, token: int, arguments: bytes) -> None:
        """Ask motes what they store."""
        self._command(target, token, CommandOp.INDEX_ASK, arguments)

    def drop_index(self, number: int, token: int) -> None:
        """Have motes forget the tuples of an index."""
        self._command(BROADCAST, token, CommandOp.INDEX_DROP, number.to_bytes(2, "little"))

    def _command(self, target: int, token: int, op: CommandOp, data: bytes) -> None:
        self._send(codec.encode(PacketType.COMMAND, target=target, token=token, op=op, arguments=data))

    # ---- kept over a restart ----

    def row(self) -> dict[str, Any]:
        """To be kept of the link, beside its clock, its streams and its demand."""
        return {"session": self.session, "query_version": self.query_version, **self.demand.last_ids()}

    def restore(self, known: Mapping[str, Any], plans: Mapping[str, QueryPlan]) -> None:
        """What :meth:`row` said, with the ``clock``'s last time, the numbers of ``current`` streams, and what its demand said: rows of
        ``serving`` groups and of ``queries``, and users that are ``served``, by name. ``plans`` of its users. The streams are there
        already."""
        self.session, self.query_version = known["session"], known["query_version"]
        self.clock.assume(known["clock"])
        self._last_time = self.clock.stamped
        streams = [self.streams[number] for number in known["current"]]
        self.current = {stream.query: stream for stream in streams}
        self.demand = Demand.restored(known, plans, self._common.speed, self._common.placement)


def session_of(hello: Container[Any], last: int) -> int:
    """A session of all networks: its name as the root says it, of any root but mote 0 with its address above it, and above both how often
    the names, which go round, have begun anew at a root of this address. ``last``: the root's latest session; 0: none."""
    rounds = (last >> _ROUND) + (int(hello.session) < last & 0xFFFF)
    return rounds << _ROUND | int(hello.node) << 16 | int(hello.session)


def root_of(session: int) -> int:
    """The short address of the root whose session it is."""
    return session >> 16 & 0xFFFF


def _newer(version: int, than: int) -> bool:
    """As motes compare them, which go around."""
    return 0 < (version - than) & 0xFFFF < 0x8000
