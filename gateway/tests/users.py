"""Generated users of the streams of :mod:`gateway.tests.logs`: what they read, and what DuckDB answers each of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from gateway.tests.generated import NAMES, conditions, exact_numbers, in_database
from gateway.tests.logs import PERIODS, Log, plan_of, seen
from skerry.delivery.engine import Engine
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.planner import plan_query
from skerry.sql.errors import QueryError


def plannable(condition: str) -> str:
    """The condition, or another one where it mixes units or is too large for a mote."""
    try:
        plan_query(f"SELECT nodeid FROM sensors WHERE {condition} SAMPLE PERIOD 5 s")
    except QueryError:
        return "temp > 21"
    return condition


bounds = st.integers(18, 26)
ranges = st.one_of(
    st.builds("temp BETWEEN {} AND {}".format, bounds, bounds),
    st.builds("temp = {}.5".format, bounds),
    st.builds("nodeid = {}".format, st.integers(0, 9)),
    st.builds("temp > {} AND humidity < 50 AND temp <= 25.5".format, bounds),
)
wheres = st.one_of(
    st.none(),
    ranges,
    conditions(exact_numbers).map(plannable),
    st.builds("{} AND {}".format, ranges, conditions(exact_numbers).map(plannable)).map(plannable),
)
COLUMNS = (
    "nodeid, temp",
    "epoch, light, temp * 3 AS x",
    "humidity, temp > 20 AS warm, nodeid",
    "level, xpos",
)


@dataclass
class User:
    """A user with a reader of his own, that remembers its position whatever the gateway does."""

    name: str
    columns: str
    where: str | None
    period_ms: int
    since_ms: int
    until_ms: int | None
    position: int = 0
    got: list[tuple[object, ...]] = field(default_factory=list)
    began: int = 0

    @property
    def plan(self) -> QueryPlan:
        where = f"WHERE {self.where}" if self.where else ""
        return plan_of(f"SELECT {self.columns} FROM sensors {where} SAMPLE PERIOD {self.period_ms} ms")

    @property
    def feeds(self) -> dict[int, Feed]:
        """The first stream until a time, then the second, or the first for ever."""
        if self.until_ms is None:
            return {1: Feed(self.name, 1, self.period_ms, PERIODS[1], self.since_ms)}
        return {
            1: Feed(self.name, 1, self.period_ms, PERIODS[1], self.since_ms, self.until_ms),
            2: Feed(
                self.name, 2, self.period_ms, PERIODS[2], self.until_ms, None, self.until_ms - PERIODS[1]
            ),
        }

    def join(self, engine: Engine) -> None:
        engine.subscribe(self.name, self.plan)
        engine.set_feeds(self.name, self.feeds)

    def read(self, engine: Engine, log: Log, through: int) -> None:
        """As :class:`skerry.service.reader.Reader`: from memory, or from files of blocks what is no longer there of the rows before
        ``through``, or from the log."""
        while True:
            before = self.position
            rows = self._portion(engine, log, through)
            self.got += [(number, *values.values()) for number, values in rows]
            if self.position >= through - 1 or self.position == before:
                return

    def _portion(self, engine: Engine, log: Log, through: int) -> list[tuple[int, dict[str, object]]]:
        subscriber = engine.subscriber(self.name)
        assert subscriber is not None
        start = max(self.position + 1, self.began)
        found = subscriber.buffer.deliveries(self.position) or engine.published(
            self.name, start - 1, 1, through
        )
        if found is not None:
            parts, self.position = found
            return [row for part in parts for row in part.values()]
        self.position = max(self.position, through - 1)
        return engine.replay(self.name, log.block(start, through), start - 1)

    def duckdb_rows(self, log: Log, end: int) -> list[tuple[object, ...]]:
        """What DuckDB answers to his query over the log."""
        passing = []
        for number, feed in self.feeds.items():
            previous = f"sample - {feed.stream_period_ms}"
            if feed.before_ms is not None:
                previous = f"CASE WHEN {previous} < {feed.since_ms} THEN {feed.before_ms} ELSE {previous} END"
            until = "TRUE" if feed.until_ms is None else f"sample < {feed.until_ms}"
            first = f"floor(sample / {feed.period_ms}) <> floor(({previous}) / {feed.period_ms})"
            passing.append(f"(stream = {number} AND sample >= {feed.since_ms} AND {until} AND {first})")
        own = f"SELECT *, sample // {self.period_ms} AS epoch FROM sensors WHERE {' OR '.join(passing)}"
        select = (
            f"SELECT row, {self.columns} FROM ({own}) WHERE row >= {self.began} AND row < {end} "
            f"AND ({self.where or 'TRUE'}) ORDER BY row"
        )
        found = in_database(select, log.rows, ["row", "stream", "sample", *NAMES])
        return [tuple(seen(value) for value in row) for row in found]


users = st.builds(
    User,
    st.just(""),
    st.sampled_from(COLUMNS),
    wheres,
    st.sampled_from([5000, 10_000, 30_000]),
    st.sampled_from([0, 10_000, 40_000]),
    st.sampled_from([None, 20_000, 21_500, 43_000]),
)
