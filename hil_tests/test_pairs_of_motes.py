"""Motes of both boards join their rows, above both of a pair or at a mote to which ways lead: what comes of that is what DuckDB joins over
their readings."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa
from msgspec import structs

from skerry.catalog.catalog import Catalog
from skerry.ingest.joined_rows import JoinedRows
from skerry.planner.model.pairing import delay_ms, hosts_of
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.mote_memory import bytes_taken
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry.service.pair_places import ROOM, Places, Way, clause, places
from skerry_protocol.codec import decode_values
from skerry_protocol.codes import CommandOp, PacketType
from skerry_testbed.network import Environment, Network, check
from skerry_testbed.pytest import NetworkHandle, disc, grid
from skerry_testbed.queries import rows

PERIOD_S = 10
EPOCHS = 7
#: Network seconds until all motes have all programs, of two fragments each.
LEAD_S = 240
#: Where the queries of each batch are joined: what they share of ways and room differs.
BATCHES = (
    ("THROUGH BASE", "BY HASH"),
    ("IN NETWORK", "AT ANCESTOR"),
    ("BY HASH", "AT BASE"),
    ("IN NETWORK", "THROUGH BASE"),
)
#: Bytes of a join's program, about.
PROGRAM = 120
ROOMS = (1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 2, 3)


@dataclass(frozen=True)
class Drawn:
    """A join as skerry and DuckDB say it."""

    pair: str
    s: str
    t: str
    both: str
    rows: int
    epochs: int
    strategy: str

    @property
    def sql(self) -> str:
        parts = [self.pair, self.s, self.t, self.both]
        window = f"{self.rows} ROWS" if self.rows else f"{self.epochs * PERIOD_S} s"
        where = " AND ".join(part for part in parts if part)
        return (
            "SELECT s.nodeid, t.nodeid, s.temp, t.light FROM sensors AS s, sensors AS t "
            f"WINDOW {window} WHERE {where} SAMPLE PERIOD {PERIOD_S} s JOIN {self.strategy}"
        )

    def by_duckdb(self, database: duckdb.DuckDBPyConnection) -> Counter[tuple[Any, ...]]:
        rank = "row_number() OVER (PARTITION BY nodeid ORDER BY epoch)"

        def those(role: str, condition: str) -> str:
            return f"{role} AS (SELECT *, {rank} AS rank FROM readings AS {role} WHERE {condition or 'true'})"

        def among(earlier: str, later: str) -> str:
            if not self.rows:
                return f"{later}.epoch - {earlier}.epoch <= {self.epochs}"
            upto = f"SELECT count(*) FROM {earlier} AS x WHERE x.nodeid = {earlier}.nodeid AND x.epoch <= {later}.epoch"
            return f"({upto}) - {earlier}.rank < {self.rows}"

        within = f"CASE WHEN s.epoch <= t.epoch THEN {among('s', 't')} ELSE {among('t', 's')} END"
        where = " AND ".join(part for part in (self.pair, self.both, within) if part)
        select = "SELECT s.nodeid, s.epoch, t.nodeid, t.epoch, s.temp, t.light FROM s, t"
        sql = f"WITH {those('s', self.s)}, {those('t', self.t)} {select} WHERE {where}"
        return Counter(database.execute(sql).fetchall())


def drawn(draw: random.Random, strategy: str) -> Drawn:
    in_rows = draw.random() < 0.6
    equal = ["s.room = t.room AND s.nodeid < t.nodeid", "s.room = t.room", "s.nodeid = t.nodeid + 1"]
    return Drawn(
        draw.choice(equal if strategy == "BY HASH" else [*equal, "t.room = 2 AND s.room < t.room"]),
        draw.choice(["", "s.light > 300", "s.temp > 10"]),
        draw.choice(["", "t.light > 300", "t.temp < 25"]),
        draw.choice(["", "s.temp - t.temp > 2", "s.light < t.light", "abs(s.temp - t.temp) < 8"]),
        draw.randint(1, 3) if in_rows else 0,
        0 if in_rows else draw.randint(0, 2),
        strategy,
    )


def started(seed: int) -> NetworkHandle:
    motes = [
        structs.replace(mote, room=ROOMS[mote.id])
        for mote in grid(4, 3, spacing=10, boards=("iris", "cc2538", "iris"))
    ]
    net = NetworkHandle(
        check(Network(name="pairs", seed=seed, mote=motes, radio=disc(12), environment=Environment()))
    )
    net.advance("2.5s")
    net.line.connect()
    net.advance("150s")
    return net


def hear(net: NetworkHandle, catalog: Catalog) -> dict[int, int | None]:
    """Each mote's parent, as they say when they are asked now. The stops of a batch's queries go round before that, one by one."""
    told: set[int] = set()
    for asked in range(30):
        net.line.command(0xFFFF, CommandOp.PING, token=asked + 1)
        net.advance("20s")
        for record in net.line.of(PacketType.STATUS):
            catalog.update(record.body, 0.0, 0)
            told.add(record.body.node)
        net.line.records.clear()
        if len(told) == len(net.motes):
            break
    assert len(told) == len(net.motes), f"only {sorted(told)} have told where they are"
    return {mote.nodeid: mote.parent for mote in catalog.all()}


def placed(sql: str, catalog: Catalog, room: int, taken: set[Way]) -> tuple[MoteQuery, Places]:
    """``taken``: ways of the queries beside it, and then of it, too."""
    plan = plan_query(sql)
    assert isinstance(plan, QueryPlan)
    assert plan.pairing is not None
    motes = {mote.nodeid: mote for mote in catalog.all()}
    # In so small a network the base would be cheaper for most pairs.
    told, found = clause(plan, places(plan.pairing, plan.period_ms, motes, room, taken=taken, forced=True))
    taken |= found.ways(plan.pairing.way, 0)
    return merge([replace(plan, clauses=(told,))]), found


def sense(net: NetworkHandle, draw: random.Random) -> None:
    for mote in net.motes.values():
        mote.sense(temp=round(draw.uniform(0, 40), 2), light=float(draw.randint(0, 900)))


def lived(
    net: NetworkHandle, draw: random.Random, raw: MoteQuery, start: int, waits: int
) -> dict[tuple[int, int], dict[str, Any]]:
    """All epochs, and the seconds for which rows are waited for; what motes have read."""
    sense(net, draw)
    net.advance(start + 1 - net.line.network_time())
    for _ in range(EPOCHS - 1):
        sense(net, draw)
        net.advance(PERIOD_S)
    net.advance(f"{waits + 2 * PERIOD_S}s")
    return {(row["nodeid"], row["epoch"]): row for row in rows(net.line, 1, raw)}


def joined(
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


def by_duckdb(
    asked: list[Drawn], readings: dict[tuple[int, int], dict[str, Any]]
) -> list[Counter[tuple[Any, ...]]]:
    """The answers to each, of what motes have read, in their integers."""
    table = [
        {"nodeid": n, "epoch": e, "temp": row["temp"], "light": row["light"], "room": ROOMS[n]}
        for (n, e), row in readings.items()
    ]
    with duckdb.connect(config={"threads": 1}) as database:
        database.register("readings", pa.Table.from_pylist(table))
        return [
            Counter(
                {
                    (*row[:4], round(row[4] * 100), round(row[5])): n
                    for row, n in one.by_duckdb(database).items()
                }
            )
            for one in asked
        ]


def test_joins_at_motes_are_duckdbs(drawn_seed: int) -> None:
    draw = random.Random(drawn_seed)
    net = started(drawn_seed % 1000)
    met = settled = whole = came = equal = strays = joins = 0
    hosted: Counter[str] = Counter()
    catalog = Catalog()
    for strategies in BATCHES:
        parents = hear(net, catalog)
        raw_plan = plan_query(f"SELECT temp, light FROM sensors SAMPLE PERIOD {PERIOD_S} s")
        assert isinstance(raw_plan, QueryPlan)
        raw = merge([raw_plan])
        start = -(-(int(net.line.network_time()) + LEAD_S) // PERIOD_S) * PERIOD_S
        end = start + EPOCHS * PERIOD_S
        net.line.install(1, encode(raw, start, end))
        running: dict[int, tuple[Drawn, MoteQuery]] = {}
        left, taken, waits = ROOM - bytes_taken(raw), set[Way](), 0
        for query, strategy in enumerate(strategies, 2):
            one = drawn(draw, strategy)
            room = max(0, left // (2 + len(strategies) - query) - PROGRAM)
            mote_query, found = placed(one.sql, catalog, room, taken)
            left -= bytes_taken(mote_query)
            hosted[strategy] += sum(map(len, found.hosts.values()))
            print(one.sql, dict(found.hosts), set(found.base.values()), sep="\n  ")
            running[query] = one, mote_query
            # Rows of the last epochs are joined some epochs later.
            waits = max(waits, delay_ms(mote_query.clauses[-1], mote_query.period_ms) // 1000)
            net.line.install(query, encode(mote_query, start, end + waits))
        readings = lived(net, draw, raw, start, waits)
        epochs = range(start // PERIOD_S, end // PERIOD_S)
        assert sorted(readings) == [(node, epoch) for node in net.motes for epoch in epochs], (
            "links lose nothing"
        )
        told_of = {
            query: (
                mote_query,
                *joined(net, query, mote_query, epochs.stop),
                len(net.line.of(PacketType.JOINED, query)),
            )
            for query, (_, mote_query) in running.items()
        }
        # A mote that has found another parent may send its rows past the one that joins them.
        stays = hear(net, catalog) == parents
        settled, joins = settled + len(running) * stays, joins + len(running)
        for (one, _), theirs, (mote_query, told, pairs, sent) in zip(
            running.values(),
            by_duckdb([one for one, _ in running.values()], readings),
            told_of.values(),
            strict=True,
        ):
            ours = Counter({row: times for row, times in told.items() if max(row[1], row[3]) < epochs.stop})
            assert not ours - theirs, (drawn_seed, one.sql, ours - theirs, hosts_of(mote_query.clauses[-1]))
            if stays:
                whole, came = whole + theirs.total(), came + ours.total()
                equal += ours == theirs
            print(one.strategy, ours.total(), "of", theirs.total(), f"rows, {pairs.strays} past their host")
            strays, met = strays + pairs.strays, met + sent
        for query in (1, *running):
            net.line.stop(query)
    print(
        f"{joins} joins, {settled} in a tree that stayed: {dict(hosted)} pairs at motes, which sent {met} rows"
    )
    print(f"{came} of DuckDB's {whole} rows, {equal} joins equal, {strays} rows past their host")
    assert all(hosted[one] > 2 for one in ("IN NETWORK", "AT ANCESTOR", "THROUGH BASE", "BY HASH")), hosted
    assert (equal, came) == (settled, whole), drawn_seed
    assert met > 50
    assert settled >= joins / 2
