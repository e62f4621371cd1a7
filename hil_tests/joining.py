"""Batches of joins on 12 emulated motes of both boards: several queries at once, beside one that tells all readings, of which DuckDB says
what is right. Time is virtual, and the motes of a network run on from batch to batch."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from hil_tests.drawn_joins import PERIOD_S, ROOMS, Drawn, by_duckdb
from skerry.catalog.catalog import Catalog
from skerry.ingest.joined_rows import JoinedRows
from skerry.joins.placement.relays import Relays
from skerry.planner.model.pairing import (
    Pairing,
    S,
    T,
    delay_ms,
    host_bytes,
    hosts_of,
    pairs_clause,
    state_bytes,
)
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.mote_memory import MEMORY_BYTES, bytes_taken
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry.service.pair_places import Places, clause, places
from skerry.service.pair_ways import Way
from skerry_protocol import codec, mac
from skerry_protocol.codec import Packet, decode_values
from skerry_protocol.codes import Carries, CommandOp, PacketType
from skerry_testbed.network import Environment, Network, check
from skerry_testbed.pytest import NetworkHandle, disc, grid
from skerry_testbed.queries import rows

EPOCHS = 12
#: Network seconds until all motes have all programs, of two fragments each.
LEAD_S = 240
#: For how long queries run on behind the last epoch that is asked about: its answers climb in rounds that have rows, and what fails in one
#: goes in the next.
AFTER_S = 3 * PERIOD_S
#: Seconds between two looks at the tree, and how many there are at most.
_LOOK_S, _LOOKS = 300, 6
#: Bytes that hosts may have for the rows of one query: what is left on each mote is tried from the most on.
_ROOMS_TRIED = (480, 400, 320, 240, 180, 120)

#: By mote and epoch what it has read.
Readings = dict[tuple[int, int], dict[str, Any]]


@dataclass(frozen=True)
class Outcome:
    """Of one join. ``ours``, ``theirs``: answers of skerry and DuckDB; ``certain``: DuckDB's that hold whatever the readings were that are
    not known, as a mote had them in its queue when it started anew: one of them may have taken another's place in a window; ``hosted``:
    pairs that motes joined; ``sent``: rows that these have sent; ``strays``: rows that have come past their host."""

    asked: Drawn
    ours: Counter[tuple[Any, ...]]
    theirs: Counter[tuple[Any, ...]]
    certain: Counter[tuple[Any, ...]]
    wrong: Counter[tuple[Any, ...]]
    hosts: dict[int, tuple[int, tuple[tuple[int, int], ...]]]
    sent: int
    strays: int

    @property
    def hosted(self) -> int:
        """Pairs that motes joined."""
        return sum(len(pairs) for _, pairs in self.hosts.values())

    def told(self) -> str:
        """For people."""
        lacking = (self.certain - self.ours).total()
        return (
            f"{self.asked.sql}\n  {self.hosted} pairs at motes; {self.ours.total()} rows, {lacking} of {self.certain.total()} lack, "
            f"{self.strays} past their host"
        )


@dataclass
class Joining:
    """A network whose motes join. ``parents``: each mote's, as they said after the last batch; ``passes_on``: whether hosts pass rows on to
    others, where the planner says so; ``passed``: by whom rows of each query in the last batch came to hosts that have them from others."""

    net: NetworkHandle
    draw: random.Random
    catalog: Catalog
    parents: dict[int, int | None]
    passes_on: bool = True
    passed: list[Relays] = field(default_factory=list)

    @classmethod
    def of(cls, seed: int, reception: float = 1.0) -> Joining:
        """One that has formed; what is asked of it is drawn by the seed, too."""
        net, catalog = _started(seed % 1000, reception), Catalog()
        return cls(net, random.Random(seed), catalog, _hear(net, catalog))

    def batch(
        self, asked: Sequence[Drawn], reboots: int | None = None
    ) -> tuple[list[Outcome], Readings, bool]:
        """What came of joins that run at once, all readings that are known, and whether the tree stayed as it was: a mote that finds
        another parent may send its rows past the one that joins them. ``reboots``: a mote that starts anew while they run."""
        net = self.net
        raw = _raw()
        memory = dict.fromkeys(net.motes, bytes_taken(raw))
        taken, waits = defaultdict[Way, float](float), 0
        start = -(-(int(net.line.network_time()) + LEAD_S) // PERIOD_S) * PERIOD_S
        end = start + EPOCHS * PERIOD_S
        running: dict[int, tuple[Drawn, MoteQuery]] = {}
        self.passed = []
        least = [bytes_taken(self._at(one.sql, 0, taken)[0]) for one in asked]
        for query, one in enumerate(asked, 1):
            mote_query = self._placed(one.sql, memory, taken, sum(least[query:]))
            running[query] = one, mote_query
            # Rows of the last epochs are joined some epochs later.
            waits = max(waits, delay_ms(mote_query.clauses[-1], mote_query.period_ms) // 1000)
            net.line.install(query, encode(mote_query, start, end + waits + AFTER_S))
        telling = len(asked) + 1
        net.line.install(telling, encode(raw, start, end))
        net.frames.clear()
        began = self._lived(start, waits, reboots)
        refused = [record.body for record in net.line.of(PacketType.REFUSAL)]
        assert not refused or reboots is not None, f"motes have no room for what was asked: {refused}"
        readings = {(row["nodeid"], row["epoch"]): row for row in rows(net.line, telling, raw)}
        upto = end // PERIOD_S
        told = {query: _joined(net, query, mote_query, upto) for query, (_, mote_query) in running.items()}
        sent = {query: len(net.line.of(PacketType.JOINED, query)) for query in running}
        outcomes = []
        for query, (one, mote_query) in running.items():
            # What this query has not sampled, as its mote did not have it yet again, is none of its rows.
            never = _not_sampled(net, query, *began) if began is not None else set()
            known = {at: row for at, row in readings.items() if at not in never}
            every = {(mote, at) for mote in net.motes for at in range(start // PERIOD_S, upto)}
            [theirs] = by_duckdb([one], known)
            [certain] = by_duckdb([one], known, every - never - known.keys())
            all_told, pairs = told[query]
            ours = Counter({row: n for row, n in all_told.items() if max(row[1], row[3]) < upto})
            ours = Counter({row: n for row, n in ours.items() if {row[:2], row[2:4]} <= known.keys()})
            hosts = hosts_of(mote_query.clauses[-1])
            outcomes.append(
                Outcome(one, ours, theirs, certain, ours - theirs, hosts, sent[query], pairs.strays)
            )
        for query in (*running, telling):
            net.line.stop(query)
        before, self.parents = self.parents, _hear(net, self.catalog)
        stays = before == self.parents
        if reboots is not None:
            self._settle()
        return outcomes, readings, stays

    def _settle(self) -> None:
        """Waits until two looks find the same tree. A mote that has started anew finds its best parent by and by; the gateway places pairs
        anew then, where here they stay for a batch."""
        for _ in range(_LOOKS):
            before = self.parents
            self.net.advance(f"{_LOOK_S}s")
            self.parents = _hear(self.net, self.catalog)
            if self.parents == before:
                break

    def _placed(self, sql: str, memory: dict[int, int], taken: dict[Way, float], later: int) -> MoteQuery:
        """As many pairs at motes as all have room for beside the other queries; ``later``: bytes that those to come take at least."""
        for room in (*_ROOMS_TRIED, 0):
            mote_query, found, pairing = self._at(sql, room, taken)
            more = {mote: _bytes_at(mote, mote_query, found, pairing) for mote in memory}
            if all(memory[mote] + more[mote] <= MEMORY_BYTES - later for mote in memory):
                break
        else:
            raise AssertionError(f"{sql} has no room beside the others, of which motes have {memory} bytes")
        for mote, size in more.items():
            memory[mote] += size
        for way, rows_a_second in found.loads(pairing.way, 0, mote_query.period_ms).items():
            taken[way] += rows_a_second
        self.passed.append(found.relays)
        return mote_query

    def _at(self, sql: str, room: int, taken: dict[Way, float]) -> tuple[MoteQuery, Places, Pairing]:
        """What motes are told where hosts have so much room."""
        plan = plan_query(sql)
        assert isinstance(plan, QueryPlan)
        assert plan.pairing is not None
        motes = {mote.nodeid: mote for mote in self.catalog.all()}
        # In so small a network the base would be cheaper for most pairs.
        found = places(plan.pairing, plan.period_ms, motes, room, taken=taken, forced=True)
        told, found = clause(plan, found if self.passes_on else replace(found, relays=Relays()))
        return merge([replace(plan, clauses=(told,))]), found, plan.pairing

    def _sense(self) -> None:
        for mote in self.net.motes.values():
            mote.sense(temp=round(self.draw.uniform(0, 40), 2), light=float(self.draw.randint(0, 900)))

    def _lived(self, start: int, waits: int, reboots: int | None) -> tuple[int, int] | None:
        """All epochs, and the seconds for which rows are waited for. Which mote has started anew, and in which epoch."""
        net = self.net
        self._sense()
        # Time goes on by nanoseconds: what is left of fewer would be left for ever.
        while (left := round(start + 1 - net.line.network_time(), 3)) > 0:
            net.line.repeat()
            net.advance(min(left, 10))
        began, turn, offset = (
            None,
            self.draw.randrange(1, EPOCHS - 1),
            round(self.draw.uniform(0.5, PERIOD_S - 0.5), 1),
        )
        for epoch in range(1, EPOCHS):
            self._sense()
            if reboots is not None and epoch == turn:
                net.advance(offset)
                net.motes[reboots].reboot()
                began = reboots, int(net.line.network_time()) // PERIOD_S
                net.advance(PERIOD_S - offset)
            else:
                net.advance(PERIOD_S)
        net.advance(f"{waits + AFTER_S + PERIOD_S}s")
        return began


def _not_sampled(net: NetworkHandle, query: int, node: int, epoch: int) -> set[tuple[int, int]]:
    """Epochs of a mote after the one in which it started anew, up to its first row of a query that was on the air, or that has been
    joined: what it has not sampled, and what does not pass."""
    seen = {epoch + EPOCHS}
    for frame in net.frames:
        # Behind the MAC header the packet begins with the protocol's version and its type.
        if len(frame.psdu) < 15 or frame.psdu[10] not in (PacketType.BUNDLE, PacketType.CARRIED):
            continue
        packet = mac.decode(frame.psdu)
        if packet is not None:
            seen |= {at for at in _rows_in(codec.decode(packet.payload), query, node) if at > epoch}
    return {(node, at) for at in range(epoch + 1, min(seen))}


def _rows_in(packet: Packet, query: int, node: int) -> Iterator[int]:
    """Epochs of a mote's rows that a frame carries."""
    if packet.type is PacketType.CARRIED:
        record = bytes(packet.body.record)
        if record[0] == Carries.ROW:
            row = codec.decode_record(PacketType.RESULT, record[1:]).body
            # An empty one keeps a way open.
            if (row.query, row.node) == (query, node) and row.values[0] & (S | T):
                yield row.epoch
        return
    for record in packet.body.records:
        if record.type not in (PacketType.RESULT, PacketType.JOINED):
            continue
        body = codec.decode_record(record.type, bytes(record.body)).body
        if body.query != query:
            continue
        if record.type == PacketType.RESULT:
            yield from [body.epoch] if body.node == node else []
        else:
            yield from [at for mote, at in ((body.s, body.s_epoch), (body.t, body.t_epoch)) if mote == node]


def _raw() -> MoteQuery:
    plan = plan_query(f"SELECT temp, light FROM sensors SAMPLE PERIOD {PERIOD_S} s")
    assert isinstance(plan, QueryPlan)
    return merge([plan])


def _bytes_at(mote: int, query: MoteQuery, found: Places, pairing: Pairing) -> int:
    """That one mote has of a query: what it joins itself, and where it sends rows by ways all that any mote has for that."""
    told = pairs_clause(query)
    assert told is not None
    whole = bytes_taken(query)
    if any(mote == sender for sender, _ in found.ways(pairing.way, 0)):
        return whole
    rows_here, _ = hosts_of(told).get(mote, (0, ()))
    return whole - state_bytes(told) + host_bytes(rows_here, pairing.width)


def _started(seed: int, reception: float = 1.0) -> NetworkHandle:
    """12 motes, 4 m by 3, of which each hears its neighbours."""
    motes = [
        structs.replace(mote, room=ROOMS[mote.id])
        for mote in grid(4, 3, spacing=10, boards=("iris", "cc2538", "iris"))
    ]
    net = NetworkHandle(
        check(
            Network(name="pairs", seed=seed, mote=motes, radio=disc(12, reception), environment=Environment())
        )
    )
    net.advance("2.5s")
    net.line.connect()
    net.advance("150s")
    return net


def _hear(net: NetworkHandle, catalog: Catalog) -> dict[int, int | None]:
    """Each mote's parent, as they say when they are asked now. The stops of a batch's queries go round before that, one by one."""
    told: set[int] = set()
    for asked in range(30):
        net.line.command(0xFFFF, CommandOp.PING, token=asked + 1)
        net.advance("20s")
        net.line.repeat()
        for record in net.line.of(PacketType.STATUS):
            catalog.update(record.body, 0.0, 0)
            told.add(record.body.node)
        net.line.records.clear()
        if len(told) == len(net.motes):
            break
    assert len(told) == len(net.motes), f"only {sorted(told)} have told where they are"
    return {mote.nodeid: mote.parent for mote in catalog.all()}


def _joined(
    net: NetworkHandle, query: int, mote_query: MoteQuery, upto: int
) -> tuple[Counter[tuple[Any, ...]], JoinedRows]:
    """What users see of it: what motes have joined, and what the gateway has of the rest, each once."""
    pairs = JoinedRows(mote_query)
    found = [row for record in net.line.of(PacketType.JOINED, query) for row in pairs.joined(record.body)]
    for record in net.line.of(PacketType.RESULT, query):
        pairs.take(record.body)
    found += pairs.due(query, (upto + 100) * PERIOD_S * 1000)[1]
    names = [column.name for column in mote_query.columns]
    told = set()
    for row in found:
        values, _, _ = decode_values(row.values, pairs.layout)
        read = {name: None if row.nulls >> i & 1 else values[i] for i, name in enumerate(names)}
        told.add(
            (
                row.node,
                row.epoch - read["behind0"],
                read["other"],
                row.epoch - read["behind1"],
                *(read[name] for name in names[4:]),
            )
        )
    return Counter(told), pairs
