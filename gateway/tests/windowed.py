"""Users with windows for tests, and what DuckDB says each of their windows holds at the row that brought it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal

import pyarrow as pa
from hypothesis import strategies as st

from gateway.tests.generated import NAMES, Row, database, in_database
from gateway.tests.logs import PERIODS, Log, plan_of, seen
from skerry.delivery.engine import Engine
from skerry.planner.model.frames import LATENESS_MS
from skerry.planner.model.joined_tables import TableSchema
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.model.waits import grace_ms
from skerry.tables.columns import column_of
from skerry.tables.join import Joiner
from skerry.tables.store import Table
from skerry_protocol.attributes import BY_NAME

#: How far behind a window's end the row is sampled that brings it.
GRACE_MS = grace_ms(5000, None)
LOG_COLUMNS = ["row", "stream", "sample", *NAMES]
KINDS = ("AVG", "SUM", "MIN", "MAX", "COUNT")
#: A table that streams are joined with: some motes are in two places, some in none.
PLACES: list[dict[str, object]] = [
    {"node": 0, "floor": 1, "name": "hall", "height": 2.5},
    {"node": 1, "floor": 1, "name": "hall", "height": 3.0},
    {"node": 2, "floor": None, "name": "attic", "height": 1.25},
    {"node": 2, "floor": 2, "name": "stairs", "height": 4.0},
    {"node": 3, "floor": 2, "name": None, "height": 900000000000.5},
    {"node": 4, "floor": 1, "name": "attic", "height": None},
    {"node": 5, "floor": 3, "name": "attic", "height": 0.25},
]
PLACES_TABLE = pa.Table.from_pylist(PLACES)
SCHEMAS = {
    "places": TableSchema(
        "places", tuple(column_of(n, PLACES_TABLE[n]).described for n in PLACES_TABLE.column_names)
    )
}
database.register("places", PLACES_TABLE)
database.execute("CREATE VIEW p AS SELECT * REPLACE (height::DECIMAL(18, 2) AS height) FROM places")


@dataclass
class User:
    """A user with windows, and a reader of his own that remembers its position whatever the gateway does."""

    #: (length, slide) in ms; length 0: since the query began.
    windows: list[tuple[int, int]]
    group: str | None
    where: str | None
    having: str | None
    #: A column that his rows are ordered by, and how many he wants of each window.
    order: str | None
    limit: int | None
    since_ms: int
    until_ms: int | None
    name: str = ""
    position: int = -1
    began: int = 0
    #: Whether rows are joined with the places of :data:`PLACES`.
    joined: bool = False
    #: What stands behind FROM … WHERE ….
    clauses: str = ""
    #: Rows before this one are of the past: all are there, so that a window waits for those that came late; and whether none follow.
    past: int = 0
    only: bool = False
    got: list[tuple[object, ...]] = field(default_factory=list)

    @property
    def slide_ms(self) -> int:
        return min(slide for _, slide in self.windows)

    @property
    def plan(self) -> QueryPlan:
        columns = ["epoch", "revision", *([self.group] if self.group else [])]
        for i, (length, slide) in enumerate(self.windows):
            window = f"{length or 'start'} {'ms' if length else ''}, {slide} ms"
            columns += [f"{kind}(temp, {window})" for kind in KINDS]
            brightest = "SUM(p.height" if self.joined else "MAX(light"
            columns += [f"{brightest}, {window}) AS brightest{i}", f"COUNT(*, {window}) AS rows{i}"]
        group = f"GROUP BY {self.group}" if self.group else ""
        having = f"HAVING {self.having.format(window)}" if self.having is not None else ""
        source, where = "sensors", f"WHERE {self.where}" if self.where else ""
        if self.joined:
            source = "sensors AS s, places AS p"
            where = f"WHERE p.node = s.nodeid AND p.height <> 3 {f'AND ({self.where})' if self.where else ''}"
        order = f"ORDER BY {self.order}".format(window) if self.order else ""
        order += f" LIMIT {self.limit}" if self.order and self.limit else ""
        return plan_of(
            f"SELECT {', '.join(columns)} FROM {source} {where} {group} {having} {order} {self.clauses} SAMPLE PERIOD 5 s",
            SCHEMAS,
        )

    @property
    def feeds(self) -> dict[int, Feed]:
        if self.until_ms is None:
            return {1: Feed(self.name, 1, 5000, PERIODS[1], self.since_ms)}
        return {
            1: Feed(self.name, 1, 5000, PERIODS[1], self.since_ms, self.until_ms),
            2: Feed(self.name, 2, 5000, PERIODS[2], self.until_ms, None, self.until_ms - PERIODS[1]),
        }

    def join(self, engine: Engine, tables: Callable[[str], Table] | None = None) -> None:
        joiner = Joiner(self.plan, tables) if tables is not None else None
        engine.subscribe(self.name, self.plan, self.began, joiner)
        engine.set_feeds(self.name, self.feeds)

    def read(self, engine: Engine, log: Log, through: int) -> None:
        subscriber = engine.subscriber(self.name)
        assert subscriber is not None
        found = subscriber.buffer.deliveries(self.position, through=through)
        if found is not None:
            parts, self.position = found
        else:
            start, end = max(self.position + 1, self.began), through
            parts = engine.replay_arrow(self.name, log.block(start, end), self.position)
            self.position = max(self.position, end - 1)
        for part in parts:
            rows = zip(part.numbers.tolist(), part.columns.to_pylist(), strict=True)
            self.got += [(number, *values.values()) for number, values in rows]

    # ---- the same, the slow way ----

    def spans(self, end: int) -> list[tuple[int, int]]:
        """Begin and end of each window of the row with this end."""
        first = -(-self.since_ms // self.slide_ms) * self.slide_ms
        ends = [end // slide * slide for _, slide in self.windows]
        return [
            (e - length if length else first, e) for (length, _), e in zip(self.windows, ends, strict=True)
        ]

    def brought(self, log: Log) -> list[tuple[int, int, int, object]]:
        """(row that brings it, end, revision, of which group alone) of all windows, by the rules in the docs."""
        found: list[tuple[int, int, int, object]] = []
        now, closed = None, 0
        revisions: dict[int, int] = {}

        def over_with_the_past(now: int | None, closed: int) -> int:
            # Once all rows of the past are there, windows are over that end the usual grace before the last of them.
            ends = range(closed + self.slide_ms, (now or 0) - GRACE_MS + 1, self.slide_ms)
            found.extend((self.past - 1, end, 0, "all") for end in ends)
            return ends[-1] if ends else closed

        past_over = self.past == 0 or self.only
        for number, row in self._rows(log):
            if number >= self.past and not past_over:
                closed = over_with_the_past(now, closed)
                past_over = True
            sample, grace = row["sample"], LATENESS_MS if number < self.past else GRACE_MS
            assert sample is not None
            if now is None:
                now = sample
                closed = (now - grace) // self.slide_ms * self.slide_ms
            now = max(now, sample)
            groups = self._groups(row)
            if groups and sample < closed and sample >= now - LATENESS_MS:
                for end in range(0, closed + 1, self.slide_ms):
                    if any(begin <= sample < until for begin, until in self.spans(end)):
                        revisions[end] = revisions.get(end, 0) + 1
                        for group in ["all"] if self.order else groups:
                            found.append((number, end, revisions[end], group))
            while closed + self.slide_ms <= now - grace:
                closed += self.slide_ms
                found.append((number, closed, 0, "all"))
        if not past_over:
            over_with_the_past(now, closed)
        if self.only and now is not None:
            ends = range(closed + self.slide_ms, now - 5000 + 1, self.slide_ms)
            found += [(len(log.rows) - 1, end, 0, "all") for end in ends]
        return [
            one for one in found if all(self.since_ms <= begin < end for begin, end in self.spans(one[1]))
        ]

    def _rows(self, log: Log) -> list[tuple[int, Row]]:
        return [(i, row) for i, row in enumerate(log.rows) if row["stream"] in self.feeds]

    def _groups(self, row: Row) -> list[object]:
        """The groups that a row belongs to, of a join several; [] where it is in none."""
        if not self._counts(row):
            return []
        if not self.joined:
            return [row[self.group] if self.group else "all"]
        mine = [
            place for place in PLACES if place["node"] == row["nodeid"] and place["height"] not in (None, 3)
        ]
        named = [
            None
            if not self.group
            else place[self.group[2:]]
            if self.group in ("p.floor", "p.name")
            else row[self.group]
            for place in mine
        ]
        return list(dict.fromkeys(named))

    def _counts(self, row: Row) -> bool:
        feed = self.feeds[row["stream"]]  # type: ignore[index]
        temp = row["temp"]
        assert temp is not None
        where = {
            None: True, "temp > 21": temp > 2100, "temp BETWEEN 20 AND 24": 2000 <= temp <= 2400,
            "nodeid = 2 OR NOT (temp <= 23 OR temp IS NULL)": row["nodeid"] == 2 or temp > 2300,
        }  # fmt: skip
        since = 0 if feed.query == 1 else feed.since_ms
        sample = row["sample"]
        assert sample is not None
        alone = Feed("", 1, 5000, feed.stream_period_ms, since, feed.until_ms, feed.before_ms)
        return where[self.where] and alone.passes(sample)

    def _literal(self, group: object) -> str:
        if self.group is None or not isinstance(group, int | str) or group == "all":
            return "NULL"
        if self.group.startswith("p."):
            return repr(group)
        return str(Decimal(group).scaleb(-BY_NAME[self.group].digits))

    def duckdb_rows(self, log: Log) -> list[tuple[object, ...]]:
        """What DuckDB finds in those windows, of rows up to the one that brought it."""
        now, counted = 0, []
        for number, row in self._rows(log):
            sample = row["sample"]
            assert sample is not None
            now = max(now, sample)
            if self._counts(row) and sample >= now - LATENESS_MS:
                counted.append({**row, "row": number})
        brought = self.brought(log)
        if not brought or not counted:
            return []
        values = ", ".join(
            f"({i}, {number}, {end}, {revision}, {group == 'all' or not self.group}, {self._literal(group)}, "
            f"{', '.join(f'{begin}, {until}' for begin, until in self.spans(end))})"
            for i, (number, end, revision, group) in enumerate(brought)
        )
        bounds = ", ".join(f"b{i}, e{i}" for i in range(len(self.windows)))
        within = [f"(s.sample >= w.b{i} AND s.sample < w.e{i})" for i in range(len(self.windows))]
        brightest = "SUM(p.height)" if self.joined else "MAX(light)"
        aggregates = [
            f"{aggregate} FILTER ({inside}) AS a{i}_{k}"
            for i, inside in enumerate(within)
            for k, aggregate in enumerate(
                ["SUM(temp)", "MIN(temp)", "MAX(temp)", "COUNT(temp)", brightest, "COUNT(*)"]
            )
        ]
        group = (
            "0" if not self.group else self.group if self.joined and "." in self.group else f"s.{self.group}"
        )
        source = "JOIN p ON p.node = s.nodeid AND p.height <> 3" if self.joined else ""
        having = (
            f"HAVING {(havings | named_havings)[self.having].format(len(within) - 1)}"
            if self.having is not None
            else ""
        )
        order = orders[self.order].format(len(within) - 1) if self.order else "number"
        limit = self.limit if self.order and self.limit else 1000
        select = f"""
            SELECT w.number, (w.finish - 1) // 5000 AS epoch, w.revision, {f"{group} AS mine, " if self.group else ""}
                {", ".join(aggregates)}
            FROM (VALUES {values}) AS w(i, number, finish, revision, whole, mine, {bounds}) JOIN (sensors s {source})
                ON s.row <= w.number AND ({" OR ".join(within)})
                    AND (w.whole OR {group} IS NOT DISTINCT FROM {"w.mine" if self.group else "0"})
            GROUP BY w.i, w.number, w.finish, w.revision {f", {group}" if self.group else ""} {having}
            QUALIFY row_number() OVER (PARTITION BY w.i ORDER BY {order} {f", {group}" if self.group else ""}) <= {limit}
            ORDER BY w.number, w.finish, {order} {f", {group}" if self.group else ""}
        """
        found = []
        for row in in_database(select, counted, LOG_COLUMNS):
            head = 4 if self.group else 3
            shown: list[object] = list(row[:head])
            for i in range(len(self.windows)):
                total, least, most, count, brightest, rows = row[head + 6 * i : head + 6 * i + 6]
                mean = None
                if isinstance(total, Decimal) and isinstance(count, int):
                    # A mean of values of two decimal places is rounded at its fifth, half away from zero.
                    mean = (total / count).quantize(Decimal("0.00001"), ROUND_HALF_UP)
                shown += [mean, total, least, most, count, brightest, rows]
            found.append(tuple(map(seen, shown)))
        return found


#: HAVING of a query, of its last window → the same for DuckDB.
havings = {
    "COUNT(*, {0}) > 1": "a{0}_5 > 1",
    "COUNT(*, {0}) > 1 AND NOT MAX(temp, {0}) < 23": "a{0}_5 > 1 AND NOT a{0}_2 < 23",
    "MAX(temp, {0}) - MIN(temp, {0}) > 1 OR COUNT(temp, {0}) < 2": "a{0}_2 - a{0}_1 > 1 OR a{0}_3 < 2",
    "SUM(temp, {0}) NOT BETWEEN 40 AND 70 OR MIN(temp, {0}) IS NULL": "a{0}_0 NOT BETWEEN 40 AND 70 OR a{0}_1 IS NULL",
}
#: The same of one that is grouped by texts.
named_havings = {
    "p.name NOT IN ('hall', 'stairs') OR p.name LIKE '%r%' AND COUNT(*, {0}) > 1":
        "p.name NOT IN ('hall', 'stairs') OR p.name LIKE '%r%' AND a{0}_5 > 1",
}  # fmt: skip
#: ORDER BY of a query → the same for DuckDB, which puts NULL last, too.
orders = {
    "rows0 DESC": "a0_5 DESC",
    "brightest0, rows0 DESC": "a0_4, a0_5 DESC",
    "revision, 1, MAX(temp, {}) DESC": "w.revision, a{}_2 DESC",
}


def ordered(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Groups of a window come in any order."""
    return sorted(rows, key=lambda row: [(value is not None, value or 0) for value in row])


one_window = st.sampled_from(
    [(5000, 5000), (30_000, 30_000), (30_000, 10_000), (60_000, 5000), (25_000, 10_000), (0, 30_000)]
).map(lambda window: [window])
several_windows = st.sampled_from(
    [
        [(10_000, 10_000), (60_000, 60_000)],
        [(40_000, 20_000), (5000, 5000)],
        [(20_000, 20_000), (25_000, 10_000), (0, 30_000)],
        [(0, 10_000), (0, 20_000)],
    ]
)
users = st.builds(
    lambda windows, group, where, having, order, limit, since, lasts: User(
        windows, group, where, having, order, limit, since, None if lasts is None else since + lasts
    ),
    one_window | several_windows,
    st.sampled_from([None, None, "nodeid", "level"]),
    st.sampled_from(
        [None, "temp > 21", "temp BETWEEN 20 AND 24", "nodeid = 2 OR NOT (temp <= 23 OR temp IS NULL)"]
    ),
    st.sampled_from([None, None, *havings]),
    st.sampled_from([None, None, *orders]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([0, 0, 7000, 30_000]),
    st.sampled_from([None, None, 20_000, 21_500]),
)
