"""Indexes on emulated motes by a whole gateway: tuples are stored and asked for, and what that takes of air, energy and time."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from bench.measuring.air import OPENING, Air, counted, joules
from bench.measuring.emulated import described, started
from bench.measuring.storage_load import ATTRIBUTES, Panel, Points, Query, queries_of, tuples_of
from bench.measuring.storage_series import MOTE_BINS
from hil_tests.office import Office
from skerry.catalog.substitutes import Wanted
from skerry.index.code import LAST, motes_code
from skerry.index.declaration import Question, learned
from skerry.index.placement import field_of, place
from skerry.index.prices import Prices
from skerry.planner.cost.index_prices import FORMAT, energy
from skerry.service.queries import UserQuery
from skerry_protocol.codes import PacketType
from skerry_testbed.pytest import NetworkHandle, disc, grid

#: Two of three motes store, so that each of four parts has two of them.
BOARDS = ("iris", "cc2538", "cc2538")
SPACING_M, RANGE_M = 10, 12
#: What motes measure, in the order of the panel's attributes, with the ends of the ranges in SI.
SENSED: tuple[tuple[str, float, float], ...] = (
    ("temp", 10.0, 40.0),
    ("humidity", 0.0, 100.0),
    ("light", 0.0, 2000.0),
    ("voltage", 2.6, 3.4),
)
Form = Literal["single", "joint", "decomposed"]
FORMS: dict[Form, str] = {
    "single": "JOINT ({0}, {1}, {2}, {3})",
    "joint": "JOINT ({0}, {1}), JOINT ({2}, {3})",
    "decomposed": "{0}, {1}, {2}, {3}",
}
GROUPS: dict[Form, tuple[tuple[int, ...], ...]] = {
    "single": ((0, 1, 2, 3),),
    "joint": ((0, 1), (2, 3)),
    "decomposed": ((0,), (1,), (2,), (3,)),
}
#: Virtual s in which the idle network is looked at, those in which all motes have heard of the index, those of sampling before what
#: inserts take is measured (ways are opened, and tuples wait for that), and those after which what was sampled is stored or given up.
IDLE_S, HEARD_S, WARMING_S, SETTLED_S = 300, 120, 240, 930
WAYS, ANSWERS = frozenset({PacketType.CARRIED}), frozenset({PacketType.BUNDLE, PacketType.COMMAND})
#: Times that all of an attribute is asked for, where motes do not answer.
ASKED = 3
Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class Setting:
    """One index of a panel's tuples, on a grid of motes: what is measured is ``epochs`` sample periods, and then so many questions."""

    panel: Panel
    form: Form
    epochs: int
    questions: int
    seed: int
    columns: int = 4
    rows: int = 3
    period_s: int = 120

    @property
    def warming(self) -> int:
        """Epochs before."""
        return -(-WARMING_S // self.period_s)


@dataclass
class Stored:
    """Of an index. Bytes are those above the idle network's; ``model`` what the planner reckons."""

    #: That were sampled in all, and of these stored; and those whose inserts were measured.
    sampled: int
    stored: int
    tuples: int
    #: By inserts: what ways carried, and what opened them.
    inserts: Air
    opening: Air
    insert_j: float
    insert_radio_j: float
    insert_model: float
    opening_model: float
    #: Of all questions: floods and answers.
    questions: Air
    question_j: float
    question_radio_j: float
    question_model: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    complete: int = 0
    right: int = 0
    #: What motes have lost, as they told: rows for which there was no room, or that nobody took.
    dropped: int = 0


def shown(point: int, which: int) -> float:
    """A point of an attribute in SI."""
    _, low, high = SENSED[which]
    return round(low + (high - low) * point / LAST, 2 if SENSED[which][0] != "light" else 0)


class Site:
    """A network with its gateway."""

    def __init__(self, columns: int, rows: int, seed: int, data: Path, machine: pytest.MonkeyPatch) -> None:
        self.motes = grid(columns, rows, spacing=SPACING_M, boards=BOARDS)
        self.net: NetworkHandle = started(
            # The root tells the time, by which epochs are known.
            described("indexes", self.motes, disc(RANGE_M), seed),
            0.5,
        )
        self.office = Office(self.net, data, machine)
        motes = len(self.motes)
        self.office.advance(600, lambda: bool(self.office.gateway.site.status()["motes"] == motes))
        self.office.advance(120)

    def window(self) -> tuple[list[dict[str, float]], float]:
        """The begin of a measurement: frames count from here on."""
        self.net.frames.clear()
        return [mote.energy for mote in self.net.motes.values()], self.net.now

    def since(self, before: tuple[list[dict[str, float]], float]) -> tuple[float, float, float]:
        """J of all and of the radio, and virtual s."""
        now = [mote.energy for mote in self.net.motes.values()]
        then, at = before
        return (
            joules(now) - joules(then),
            joules(now, "radio") - joules(then, "radio"),
            self.net.now - at,
        )

    def air(self, types: frozenset[PacketType]) -> Air:
        """Of these types, since then."""
        return counted(self.net.frames, len(self.motes), types)


def run(setting: Setting) -> Stored:
    """Build, store, ask."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as machine:
        site = Site(setting.columns, setting.rows, setting.seed, Path(folder), machine)
        try:
            return _run(site, setting)
        finally:
            site.office.gateway.close()


def _run(site: Site, setting: Setting) -> Stored:
    office, net, motes = site.office, site.net, len(site.motes)
    panel, period_s = setting.panel, setting.period_s
    rng = np.random.default_rng([setting.seed, motes])
    points = tuples_of(panel.data, rng, motes * (setting.warming + setting.epochs))
    asked = queries_of(panel.attributes, panel.sizes, setting.questions, motes, rng)
    _sense(site, points[:motes])
    idle_from = site.window()
    office.advance(IDLE_S)
    idle_j, idle_radio_j, idle_s = (value for value in site.since(idle_from))
    idle = {types: site.air(types).times(1 / idle_s) for types in (WAYS, OPENING, ANSWERS)}
    index, insert_model, opening_model = _created(office, setting)
    office.advance(HEARD_S)
    # The first epoch that is counted.
    first = int(net.line.network_time()) // period_s + 1
    office.advance(first * period_s - period_s / 2 - net.line.network_time())
    begun = site.window()
    for epoch in range(setting.warming + setting.epochs):
        if epoch == setting.warming:
            begun = site.window()
        _sense(site, points[epoch * motes : (epoch + 1) * motes])
        office.advance(period_s)
    all_j, radio_j, seconds = site.since(begun)
    inserts, opening = (site.air(types) - idle[types].times(seconds) for types in (WAYS, OPENING))
    office.advance(SETTLED_S)
    rate = all_j / seconds, radio_j / seconds
    last = first + setting.warming + setting.epochs - 1
    found = Stored(
        len(points), 0, motes * setting.epochs, inserts, opening, all_j - idle_j / idle_s * seconds,
        radio_j - idle_radio_j / idle_s * seconds, insert_model, opening_model,
        Air(np.zeros(motes), np.zeros(motes)), 0.0, 0.0,
    )  # fmt: skip
    within = f"epoch BETWEEN {first} AND {last}"
    begun = site.window()
    replies = [_asked(office, found, _sql(query, "climate", within)) for query in asked]
    all_j, radio_j, seconds = site.since(begun)
    found.questions = site.air(ANSWERS) - idle[ANSWERS].times(seconds)
    found.question_j, found.question_radio_j = all_j - rate[0] * seconds, radio_j - rate[1] * seconds
    found.question_model = _question_model(index, setting.form, points, asked)
    values = [
        _rows(office, f"SELECT nodeid, epoch, {name} FROM climate WHERE {within}") for name, _, _ in SENSED
    ]
    names = [{row[:2] for row in rows} for rows in values]
    assert [len(one) for one in names] == [len(rows) for rows in values], "a tuple is stored twice"
    found.stored = len(set.intersection(*names))
    found.right = _right(values, asked, replies, within)
    found.dropped = sum(mote["dropped"] for mote in office.gateway.inventory.motes(Wanted()))
    return found


def _sense(site: Site, points: Points) -> None:
    for mote, row in zip(site.net.motes.values(), points, strict=True):
        mote.sense(**{SENSED[which][0]: shown(int(row[which]), which) for which in range(ATTRIBUTES)})


def _created(office: Office, setting: Setting) -> tuple[UserQuery, float, float]:
    """An index, and bytes of a tuple and of opening ways for it as ``explain`` reckons."""
    ranges = [f"{name} FROM {low:g} TO {high:g}" for name, low, high in SENSED]
    axes = FORMS[setting.form].format(*ranges)
    sql = f"CREATE INDEX climate ON sensors ({axes}) SAMPLE PERIOD {setting.period_s} s KEEP 1 day"
    told = office.gateway.queries.explain(sql)["index"]["upkeep"]
    each = told["tuples_a_day"] * energy(1.0)
    return office.ask(sql), told["radio"] / each, told["opening"] / each


def _what(query: Query) -> str:
    return ", ".join(
        [
            "COUNT(*)",
            *(f"{kind}({SENSED[which][0]})" for which in sorted(query.measured) for kind in ("MIN", "MAX")),
        ]
    )


def _where(query: Query, within: str) -> str:
    limits = [
        f"{SENSED[which][0]} BETWEEN {shown(low, which)} AND {shown(high, which)}"
        for which, (low, high) in sorted(query.limits.items())
    ]
    return " AND ".join([within, *limits])


def _asked(office: Office, found: Stored, sql: str) -> Rows:
    """A question's answer, whose time is taken."""
    began = office.net.now
    query = _answered(office, sql)
    found.seconds.append(office.net.now - began)
    found.complete += bool((office.gateway.queries.indexed(query) or {}).get("complete"))
    return [tuple(row.values()) for row in office.told(query)]


def _answered(office: Office, sql: str) -> UserQuery:
    query = office.ask(sql)
    # Each part takes its time.
    office.answers([query] * ATTRIBUTES)
    return query


def _rows(office: Office, sql: str) -> Rows:
    """An answer that is complete: who does not answer is asked again."""
    for _ in range(ASKED):
        query = _answered(office, sql)
        if (office.gateway.queries.indexed(query) or {}).get("complete"):
            break
    return [tuple(row.values()) for row in office.told(query)]


def _right(
    values: Sequence[Rows],
    asked: Sequence[Query],
    replies: list[Rows],
    within: str,
) -> int:
    """How many answers are DuckDB's over what is stored: of tuples of which parts are lost, what is left."""
    import duckdb  # noqa: PLC0415 (workers alone need it)

    with duckdb.connect(config={"threads": 1}) as database:
        for (name, _, _), rows in zip(SENSED, values, strict=True):
            database.execute(f"CREATE TABLE of_{name} (nodeid INTEGER, epoch INTEGER, {name} DECIMAL(9, 3))")
            if rows:
                database.executemany(f"INSERT INTO of_{name} VALUES (?, ?, ?)", rows)
        return sum(
            _plain(reply) == _plain(database.execute(_sql(query, _stored_of(query), within)).fetchall())
            for query, reply in zip(asked, replies, strict=True)
        )


def _stored_of(query: Query) -> str:
    """Tables of all attributes that a question needs."""
    first, *others = (f"of_{SENSED[which][0]}" for which in sorted({*query.limits, *query.measured}))
    return first + "".join(f" JOIN {other} USING (nodeid, epoch)" for other in others)


def _sql(query: Query, table: str, within: str) -> str:
    return f"SELECT {_what(query)} FROM {table} WHERE {_where(query, within)}"


def _plain(rows: Rows) -> Rows:
    return [tuple(None if value is None else round(float(str(value)), 3) for value in row) for row in rows]


def _question_model(created: UserQuery, form: Form, points: Points, asked: Sequence[Query]) -> list[float]:
    """Bytes of each question, as a planner that knows the tuples reckons: rows travel, caches are cold."""
    assert created.index is not None
    code = motes_code()
    positions = [(x * 10, y * 10) for x, y in created.index.storing.values()]
    parts = place(code, field_of(positions), positions, GROUPS[form])
    assert parts is not None
    histogram = learned(code, points.tolist(), ATTRIBUTES, MOTE_BINS)
    prices = Prices(code, parts, histogram, FORMAT, 100 * SPACING_M)
    return [prices.of(Question(one.limits, one.measured), states=False).bytes for one in asked]
