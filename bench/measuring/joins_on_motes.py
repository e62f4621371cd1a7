"""Joins of pairs on emulated motes: one formation of a network serves all strategies in turn, and each one's air, energy, answers and
their latency are measured, beside what the model says of the same rows.

Queries 1 and 2 of Aspen's table 2 (Mihaylov et al., VLDB 2010), with attributes that motes have: room and floor are its x and y, group its
rid and cid. Light and humidity say whether a row passes as s and as t, temp is what is compared, so that all is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from msgspec import structs

from bench.measuring.air import Air, counted, joules
from bench.measuring.emulated import described, started
from bench.measuring.join_meter import Load, Metered, Readings
from bench.measuring.join_network import Field, Topology
from bench.measuring.join_queries import statics
from hil_tests.lab import links, positions
from skerry.catalog.catalog import Catalog
from skerry.ingest.joined_rows import JoinedRows
from skerry.joins.placement.estimates import Estimates, Pair, Rates
from skerry.joins.placement.plans import Plan, gathered
from skerry.joins.placement.relays import Relays
from skerry.joins.placement.trees import Tree
from skerry.planner.cost.join_prices import prices
from skerry.planner.model.pairing import delay_ms
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry.service.pair_costs import plan_of
from skerry.service.pair_places import ROOM, clause, places
from skerry_protocol.codec import decode_values
from skerry_protocol.codes import CommandOp, PacketType, PairsWay
from skerry_testbed.network import Mote, Radio
from skerry_testbed.pytest import NetworkHandle, disc, grid
from skerry_testbed.queries import rows

NAIVE = "NAIVE"
STRATEGIES = (NAIVE, "AT BASE", "AT ANCESTOR", "THROUGH BASE", "BY HASH", "IN NETWORK")
PERIOD_S = 10
#: Virtual s until the tree stands; from the question to its first epoch: motes have the program, of two fragments, and ways are open.
SETTLE_S, LEAD_S = 200, 180
#: Epochs that are sampled before energy is measured: windows fill, and hosts wait for rows.
FILLING = 6
BOARDS = ("iris", "cc2538", "iris")
#: Of a large network: by an IRIS five ways lead, and four hosts are found below one.
LARGE_ROOT = "cc2538"
Query = Literal["query 1", "query 2"]
WINDOWS: dict[Query, int] = {"query 1": 3, "query 2": 1}
#: Bounds of the numbers of s and of t in query 1, as shares of all.
_S_BELOW, _T_ABOVE = 0.25, 0.5
#: A network of fewer motes than the paper's has fewer values to draw, so that as many partners are found.
PAPER_MOTES, PAPER_VALUES = 100, 11
_GRID = 4

#: s's mote and epoch, t's mote and epoch.
Answer = tuple[int, int, int, int]


@dataclass(frozen=True)
class Cell:
    """How many rows pass as s and as t, and how many that meet match."""

    s: float
    t: float
    pair: float


@dataclass
class Measured:
    """Of one strategy in one cell; ``model``: bytes of the same rows by the model, and ``model_radio``: J as ``skerry explain`` reckons."""

    air: Air
    radio_j: float
    all_j: float
    answers: int
    of: int
    wrong: int
    latencies: list[float]
    model: Load
    model_radio: float
    hosted: int
    pairs: int
    stayed: bool
    #: Answers that came by hosts, as records.
    by_hosts: int = 0


def layout(topology: Literal["grid12", "lab", "7"], seed: int) -> tuple[list[Mote], Radio]:
    """Motes 0, 1, …, the first of them the root, and who hears whom."""
    if topology == "grid12":
        return grid(4, 3, spacing=10, boards=BOARDS), disc(12)
    rng = np.random.default_rng(seed)
    known: Topology = topology
    drawn = Field.drawn(known, PAPER_MOTES, rng)
    motes = [
        Mote(
            id=mote,
            x=float(x),
            y=float(y),
            board=BOARDS[mote % len(BOARDS)] if mote else LARGE_ROOT,
            root=mote == 0,
        )
        for mote, (x, y) in enumerate(drawn.places)
    ]
    if topology == "lab":
        return motes, _lab(drawn)
    heard = [(a, b, 1.0) for a, own in drawn.neighbours.items() for b in sorted(own)]
    return motes, Radio(model="matrix", links=heard)


def _lab(drawn: Field) -> Radio:
    """The lab's links, as they were measured, between those of its motes that are reached."""
    stood, measured = positions(), links()
    numbers = {mote: number for number, mote in enumerate(_found(stood, drawn))}
    return Radio(
        model="matrix",
        links=[
            (numbers[a], numbers[b], p) for (a, b), p in measured.items() if a in numbers and b in numbers
        ],
    )


def _found(stood: dict[int, tuple[float, float]], drawn: Field) -> Iterator[int]:
    """The lab's numbers of the motes of a field, in their order."""
    left = iter(sorted(stood))
    for place in drawn.places:
        yield next(mote for mote in left if stood[mote] == tuple(place))


def attributed(motes: list[Mote], rng: np.random.Generator) -> list[Mote]:
    """With x as room, y + 1 as floor, and 4 rid + cid + 1 as group: what is 0 motes do not know."""
    places = np.array([(mote.x, mote.y) for mote in motes])
    field = Field.of(places, np.ones((len(motes), len(motes)), bool) & ~np.eye(len(motes), dtype=bool))
    assert field is not None
    found = statics(field, rng)
    if len(motes) < PAPER_MOTES:
        values = max(2, round(PAPER_VALUES * len(motes) / PAPER_MOTES))
        found["y"] = rng.integers(0, values, len(motes))
        found["x"] = rng.integers(5, 5 + values, len(motes))
    return [
        structs.replace(
            mote,
            room=int(found["x"][at]),
            floor=int(found["y"][at]) + 1,
            group=int(_GRID * found["rid"][at] + found["cid"][at]) + 1,
        )
        for at, mote in enumerate(motes)
    ]


@dataclass(frozen=True)
class Question:
    """One of the paper's over so many motes."""

    name: Query
    motes: int

    @property
    def window(self) -> int:
        """In rows."""
        return WINDOWS[self.name]

    def static(self, role: Literal["s", "t"], dot: str = "") -> str:
        """Which motes are s, or t."""
        if self.name == "query 1":
            low, high = round(_S_BELOW * self.motes), round(_T_ABOVE * self.motes)
            bound = f"{dot}nodeid < {low}" if role == "s" else f"{dot}nodeid > {high}"
        else:
            edge = _GRID * (_GRID - 1)
            bound = f"{dot}group <= {_GRID}" if role == "s" else f"{dot}group > {edge}"
        return f"{bound} AND {dot}nodeid > 0"

    @property
    def between(self) -> str:
        """Which of them are a pair."""
        if self.name == "query 1":
            return "s.room = t.floor + 4"
        return f"s.group + {_GRID * (_GRID - 1)} = t.group AND s.nodeid % 4 = t.nodeid % 4"

    def sql(self, strategy: str, cell: Cell) -> str:
        """As users say it."""
        where = [
            self.static("s", "s."), self.static("t", "t."), self.between, "s.light < 500", "t.humidity < 50",
            "abs(s.temp - t.temp) < 0.5",
        ]  # fmt: skip
        return (
            f"SELECT s.nodeid, t.nodeid, s.temp, t.temp FROM sensors AS s, sensors AS t WINDOW {self.window} ROWS "
            f"WHERE {' AND '.join(where)} SAMPLE PERIOD {PERIOD_S} s JOIN {strategy} "
            f"ESTIMATE s {100 * cell.s:.0f} %, t {100 * cell.t:.0f} %, pair {100 * cell.pair:.0f} % COST BYTES"
        )

    @property
    def naive(self) -> str:
        """What all motes send that may be s or t."""
        parts = (
            f"({self.static('s')} AND light < 500)",
            f"({self.static('t')} AND humidity < 50)",
        )
        return f"SELECT nodeid, temp FROM sensors WHERE {' OR '.join(parts)} SAMPLE PERIOD {PERIOD_S} s"


@dataclass
class Bench:
    """A network that has formed; ``idle``: its air and energy in a second without a query; ``passes_on``: whether hosts pass rows on."""

    net: NetworkHandle
    motes: list[Mote]
    passes_on: bool = True
    catalog: Catalog = field(default_factory=Catalog)
    idle: Air | None = None
    idle_radio_w: float = 0.0
    idle_all_w: float = 0.0
    asked: int = 0

    @classmethod
    def formed(
        cls, topology: Literal["grid12", "lab", "7"], seed: int, idle_s: int, *, passes_on: bool = True
    ) -> Bench:
        """A new one, looked at while it is idle."""
        motes, radio = layout(topology, seed)
        motes = attributed(motes, np.random.default_rng([seed, len(motes)]))
        found = cls(started(described(f"joins {topology}", motes, radio, seed), SETTLE_S), motes, passes_on)
        found.parents()
        found.net.advance(60)
        found.net.frames.clear()
        before = found._energies()
        found.net.advance(idle_s)
        radio_j, all_j = found._since(before)
        found.idle = counted(found.net.frames, len(motes)).times(1 / idle_s)
        found.idle_radio_w, found.idle_all_w = radio_j / idle_s, all_j / idle_s
        return found

    def _energies(self) -> list[dict[str, float]]:
        """Of all but the root, which has a cable."""
        return [mote.energy for number, mote in self.net.motes.items() if number]

    def _since(self, before: list[dict[str, float]]) -> tuple[float, float]:
        now = self._energies()
        return joules(now, "radio") - joules(before, "radio"), joules(now) - joules(before)

    def parents(self) -> dict[int, int | None]:
        """As motes say when they are asked."""
        told: set[int] = set()
        for _ in range(60):
            self.asked = self.asked % 250 + 1
            self.net.line.command(0xFFFF, CommandOp.PING, token=self.asked)
            self.net.advance(20)
            for record in self.net.line.of(PacketType.STATUS):
                self.catalog.update(record.body, 0.0, 0)
                told.add(record.body.node)
            self.net.line.records.clear()
            if len(told) == len(self.net.motes):
                return {mote.nodeid: mote.parent for mote in self.catalog.all()}
        raise RuntimeError(f"only {len(told)} of {len(self.net.motes)} motes have told where they are")

    def tree(self) -> Tree:
        """As the gateway knows it."""
        return Tree(0, {mote.nodeid: mote.parent for mote in self.catalog.all() if mote.parent is not None})

    def pairs(self, question: Question) -> list[Pair]:
        """By what never changes on motes."""
        of = {mote.id: mote for mote in self.motes}
        s, t = (sorted(mote for mote in of if self._may(question, role, of[mote])) for role in "st")
        if question.name == "query 1":
            return [(a, b) for a in s for b in t if of[a].room == of[b].floor + 4]
        top = _GRID * (_GRID - 1)
        return [(a, b) for a in s for b in t if of[a].group + top == of[b].group and a % 4 == b % 4]

    def _may(self, question: Question, role: str, mote: Mote) -> bool:
        if mote.id == 0:
            return False
        if question.name == "query 1":
            return (
                mote.id < round(_S_BELOW * len(self.motes))
                if role == "s"
                else mote.id > round(_T_ABOVE * len(self.motes))
            )
        return mote.group <= _GRID if role == "s" else mote.group > _GRID * (_GRID - 1)

    def passing(self, question: Question) -> dict[int, frozenset[str]]:
        """What each mote may be."""
        found = {
            mote.id: frozenset(role for role in "st" if self._may(question, role, mote))
            for mote in self.motes
        }
        return {mote: roles for mote, roles in found.items() if roles}

    def run(
        self, question: Question, strategy: str, cell: Cell, epochs: int, rng: np.random.Generator
    ) -> Measured:
        """One strategy over drawn readings."""
        net, before_tree = self.net, self.parents()
        tree, wanted = self.tree(), self.pairs(question)
        if strategy == NAIVE:
            planned = plan_query(question.naive)
            assert isinstance(planned, QueryPlan)
            mote_query, waits, hosted = merge([planned]), 0, dict[Pair, int]()
            plan = gathered("naive", self.passing(question), wanted, tree)
        else:
            mote_query, at = self._placed(question.sql(strategy, cell))
            waits = delay_ms(mote_query.clauses[-1], mote_query.period_ms) // 1000
            hosted = {pair: host for pair, host in at[0].items() if host != tree.root}
            assert sorted(at[0]) == sorted(wanted), (strategy, sorted(at[0]), wanted)
            plan = plan_of(at[1], at[0], tree, at[2])
        readings = Readings.drawn(len(self.motes), epochs, cell.s, cell.t, cell.pair, rng)
        start = -(-(int(net.line.network_time()) + LEAD_S) // PERIOD_S) * PERIOD_S
        net.line.install(1, encode(mote_query, start, start + epochs * PERIOD_S + waits))
        self._silence()
        energy = self._lived(readings, start, epochs, waits)
        assert self.idle is not None
        air = counted(net.frames, len(self.motes)) - self.idle.times(net.line.network_time() - start)
        expected = _answers(readings, wanted, question.window, start // PERIOD_S)
        when = self._arrived(mote_query, expected) if strategy == NAIVE else self._joined(mote_query)
        by_hosts = len(net.line.of(PacketType.JOINED, 1))
        net.line.stop(1)
        ours = {one for one in when if max(one[1], one[3]) < start // PERIOD_S + epochs}
        offset = net.now - net.line.network_time()
        late = [when[one] - offset - max(one[1], one[3]) * PERIOD_S for one in ours]
        stayed = self.parents() == before_tree
        counts = epochs - FILLING
        return Measured(
            air=air, radio_j=energy[0] / counts, all_j=energy[1] / counts, answers=len(ours & expected), of=len(expected),
            wrong=len(ours - expected), latencies=sorted(late),
            model=Metered(len(self.motes), readings, question.window, PERIOD_S).load(plan),
            model_radio=self._expected(plan, question, cell, tree), hosted=len(hosted), pairs=len(wanted), stayed=stayed,
            by_hosts=by_hosts,
        )  # fmt: skip

    def _placed(self, sql: str) -> tuple[MoteQuery, tuple[dict[Pair, int], PairsWay, Relays]]:
        plan = plan_query(sql)
        assert isinstance(plan, QueryPlan)
        assert plan.pairing is not None
        known = {mote.nodeid: mote for mote in self.catalog.all()}
        # Which pairs the base is cheaper for is what is measured here.
        placed = places(plan.pairing, plan.period_ms, known, ROOM, forced=True)
        told, found = clause(plan, placed if self.passes_on else replace(placed, relays=Relays()))
        at = dict.fromkeys(found.base, 0)
        at |= found.at
        return merge([replace(plan, clauses=(told,))]), (at, plan.pairing.way, found.relays)

    def _silence(self) -> None:
        """No row passes."""
        for mote in self.net.motes.values():
            mote.sense(light=900.0, humidity=80.0, temp=10.0)

    def _lived(self, readings: Readings, start: int, epochs: int, waits: int) -> tuple[float, float]:
        """All epochs, and until all answers are there; J above an idle network's, of the epochs that are not the first ones."""
        net, before = self.net, list[dict[str, float]]()
        net.advance(start - PERIOD_S / 2 - net.line.network_time())
        net.frames.clear()
        net.line.records.clear()
        for epoch in range(epochs):
            if epoch == FILLING:
                before = self._energies()
            for mote in net.motes.values():
                mote.sense(
                    light=100.0 if readings.passes["s"][mote.id, epoch] else 900.0,
                    humidity=20.0 if readings.passes["t"][mote.id, epoch] else 80.0,
                    temp=float(readings.values[mote.id, epoch]),
                )
            net.advance(PERIOD_S)
        radio_j, all_j = self._since(before)
        seconds = (epochs - FILLING) * PERIOD_S
        self._silence()
        net.advance(waits + 2 * PERIOD_S)
        return radio_j - self.idle_radio_w * seconds, all_j - self.idle_all_w * seconds

    def _joined(self, mote_query: MoteQuery) -> dict[Answer, float]:
        """When the gateway has each answer, s of virtual time: what motes have joined, and what it joins of the rest."""
        net, pairs, found = self.net, JoinedRows(mote_query), dict[Answer, float]()
        records = sorted(
            [*net.line.of(PacketType.JOINED, 1), *net.line.of(PacketType.RESULT, 1)],
            key=lambda record: record.at,
        )
        offset, at = net.now - net.line.network_time(), 0
        names = [column.name for column in mote_query.columns]

        def told(results: list[object], when: float) -> None:
            for row in results:
                values, _, _ = decode_values(row.values, pairs.layout)  # type: ignore[attr-defined]
                read = dict(zip(names, values, strict=True))
                node, epoch = row.node, row.epoch  # type: ignore[attr-defined]
                answer = node, epoch - read["behind0"], read["other"], epoch - read["behind1"]
                found.setdefault(answer, when)

        last = net.now + 40 * PERIOD_S
        now = records[0].at if records else last
        while now < last:
            while at < len(records) and records[at].at <= now:
                record = records[at]
                at += 1
                if record.type is PacketType.JOINED:
                    told(list(pairs.joined(record.body)), record.at)
                else:
                    pairs.take(record.body)
            told(list(pairs.due(1, round((now - offset) * 1000))[1]), now)
            now += 1.0
        return found

    def _arrived(self, mote_query: MoteQuery, expected: set[Answer]) -> dict[Answer, float]:
        """When the later of both rows is at the gateway."""
        when: dict[tuple[int, int], float] = {}
        for row in rows(self.net.line, 1, mote_query):
            when.setdefault((row["nodeid"], row["epoch"]), row["at"])
        return {
            one: max(when[one[:2]], when[one[2:]]) for one in expected if one[:2] in when and one[2:] in when
        }

    def _expected(self, plan: Plan, question: Question, cell: Cell, tree: Tree) -> float:
        """J of a sample period as ``skerry explain`` reckons."""
        rates = Rates(Estimates(cell.s, cell.t, cell.pair, question.window))
        return plan.cost(rates, prices("energy", 1, 2, PERIOD_S), tree)


def _answers(readings: Readings, pairs: list[Pair], window: int, first: int) -> set[Answer]:
    """What DuckDB joins of the rows that motes were made to sample; epochs count from ``first`` on."""
    import duckdb  # noqa: PLC0415 (workers alone need it)
    import pyarrow as pa  # noqa: PLC0415

    table = [
        {"nodeid": mote, "epoch": first + epoch, "value": int(readings.values[mote, epoch]),
         "s": bool(readings.passes["s"][mote, epoch]), "t": bool(readings.passes["t"][mote, epoch])}
        for mote in {mote for pair in pairs for mote in pair}
        for epoch in range(readings.epochs)
    ]  # fmt: skip
    if not table:
        return set()
    rank = "row_number() OVER (PARTITION BY nodeid ORDER BY epoch)"

    def among(earlier: str, later: str) -> str:
        upto = f"SELECT count(*) FROM {earlier} AS x WHERE x.nodeid = {earlier}.nodeid AND x.epoch <= {later}.epoch"
        return f"({upto}) - {earlier}.rank < {window}"

    sql = (
        f"WITH s AS (SELECT *, {rank} AS rank FROM readings WHERE s), t AS (SELECT *, {rank} AS rank FROM readings WHERE t) "
        "SELECT s.nodeid, s.epoch, t.nodeid, t.epoch FROM s, t, pairs WHERE s.nodeid = pairs.a AND t.nodeid = pairs.b "
        f"AND s.value = t.value AND CASE WHEN s.epoch <= t.epoch THEN {among('s', 't')} ELSE {among('t', 's')} END"
    )
    with duckdb.connect(config={"threads": 1}) as database:
        database.register("readings", pa.Table.from_pylist(table))
        database.register("pairs", pa.Table.from_pylist([{"a": a, "b": b} for a, b in pairs]))
        return set(database.execute(sql).fetchall())
