"""Windows of all users in one pass, against what DuckDB says each holds at the row that brought it."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.tests.generated import NAMES, Row, in_database
from gateway.tests.logs import PERIODS, STREAMS, Log, Replay, happenings, logs, plan_of, seen
from skerry.lang.errors import QueryError
from skerry.plan.model import Feed, QueryPlan
from skerry.plan.planner import plan_query
from skerry.plan.windows import LATENESS_MS
from skerry.proxy.engine import Engine
from skerry.streams.record import RECORD
from skerry_protocol.attributes import BY_NAME

LOG_COLUMNS = ["row", "stream", "sample", *NAMES]
KINDS = ("AVG", "SUM", "MIN", "MAX", "COUNT")


@dataclass
class User:
    """A user with windows, and a reader of his own that remembers its position whatever the gateway does."""

    #: (length, slide) in ms; length 0: since the query began.
    windows: list[tuple[int, int]]
    group: str | None
    where: str | None
    having: int | None
    #: A column that his rows are ordered by, and how many he wants of each window.
    order: str | None
    limit: int | None
    since_ms: int
    until_ms: int | None
    name: str = ""
    position: int = -1
    began: int = 0
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
            columns += [f"MAX(light, {window}) AS brightest{i}", f"COUNT(*, {window}) AS rows{i}"]
        group = f"GROUP BY {self.group}" if self.group else ""
        having = f"HAVING rows0 > {self.having}" if self.having is not None else ""
        having = having.replace("rows0", columns[-1].split(" AS ")[0])
        where = f"WHERE {self.where}" if self.where else ""
        order = f"ORDER BY {self.order}".format(window) if self.order else ""
        order += f" LIMIT {self.limit}" if self.order and self.limit else ""
        return plan_of(
            f"SELECT {', '.join(columns)} FROM sensors {where} {group} {having} {order} SAMPLE PERIOD 5 s"
        )

    @property
    def feeds(self) -> dict[int, Feed]:
        if self.until_ms is None:
            return {1: Feed(self.name, 1, 5000, PERIODS[1], self.since_ms)}
        return {
            1: Feed(self.name, 1, 5000, PERIODS[1], self.since_ms, self.until_ms),
            2: Feed(self.name, 2, 5000, PERIODS[2], self.until_ms, None, self.until_ms - PERIODS[1]),
        }

    def join(self, engine: Engine) -> None:
        engine.subscribe(self.name, self.plan, self.began)
        engine.set_feeds(self.name, self.feeds)

    def read(self, engine: Engine, log: Log, through: int) -> None:
        subscriber = engine.subscriber(self.name)
        assert subscriber is not None
        found = subscriber.buffer.deliveries(self.position)
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
        for number, row in self._rows(log):
            sample = row["sample"]
            assert sample is not None
            if now is None:
                now = sample
                closed = (now - 5000) // self.slide_ms * self.slide_ms
            now = max(now, sample)
            if self._counts(row) and sample < closed and sample >= now - LATENESS_MS:
                for end in range(0, closed + 1, self.slide_ms):
                    if any(begin <= sample < until for begin, until in self.spans(end)):
                        revisions[end] = revisions.get(end, 0) + 1
                        group = row[self.group] if self.group and not self.order else "all"
                        found.append((number, end, revisions[end], group))
            while closed + self.slide_ms <= now - 5000:
                closed += self.slide_ms
                found.append((number, closed, 0, "all"))
        return [
            one for one in found if all(self.since_ms <= begin < end for begin, end in self.spans(one[1]))
        ]

    def _rows(self, log: Log) -> list[tuple[int, Row]]:
        return [(i, row) for i, row in enumerate(log.rows) if row["stream"] in self.feeds]

    def _counts(self, row: Row) -> bool:
        feed = self.feeds[row["stream"]]  # type: ignore[index]
        temp = row["temp"]
        assert temp is not None
        where = {None: True, "temp > 21": temp > 2100, "temp BETWEEN 20 AND 24": 2000 <= temp <= 2400}
        since = 0 if feed.query == 1 else feed.since_ms
        sample = row["sample"]
        assert sample is not None
        alone = Feed("", 1, 5000, feed.stream_period_ms, since, feed.until_ms, feed.before_ms)
        return where[self.where] and alone.passes(sample)

    def _literal(self, group: object) -> str:
        if self.group is None or not isinstance(group, int):
            return "NULL"
        return str(Decimal(group).scaleb(-BY_NAME[self.group].digits))

    def alone(self, log: Log) -> list[tuple[object, ...]]:
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
            f"({i}, {number}, {end}, {revision}, {group == 'all'}, {self._literal(group)}, "
            f"{', '.join(f'{begin}, {until}' for begin, until in self.spans(end))})"
            for i, (number, end, revision, group) in enumerate(brought)
        )
        bounds = ", ".join(f"b{i}, e{i}" for i in range(len(self.windows)))
        within = [f"(s.sample >= w.b{i} AND s.sample < w.e{i})" for i in range(len(self.windows))]
        aggregates = [
            f"{aggregate} FILTER ({inside}) AS a{i}_{k}"
            for i, inside in enumerate(within)
            for k, aggregate in enumerate(
                ["SUM(temp)", "MIN(temp)", "MAX(temp)", "COUNT(temp)", "MAX(light)", "COUNT(*)"]
            )
        ]
        group = f"s.{self.group}" if self.group else "0"
        having = f"HAVING a{len(within) - 1}_5 > {self.having}" if self.having is not None else ""
        order = _ORDERS[self.order].format(len(within) - 1) if self.order else "number"
        limit = self.limit if self.order and self.limit else 1000
        select = f"""
            SELECT w.number, (w.finish - 1) // 5000 AS epoch, w.revision, {f"{group} AS mine, " if self.group else ""}
                {", ".join(aggregates)}
            FROM (VALUES {values}) AS w(i, number, finish, revision, whole, mine, {bounds}) JOIN sensors s
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


#: ORDER BY of a query → the same for DuckDB, which puts NULL last, too.
_ORDERS = {
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
several = st.sampled_from(
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
    one_window | several,
    st.sampled_from([None, None, "nodeid", "level"]),
    st.sampled_from([None, "temp > 21", "temp BETWEEN 20 AND 24"]),
    st.sampled_from([None, None, 1]),
    st.sampled_from([None, None, *_ORDERS]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([0, 0, 7000, 30_000]),
    st.sampled_from([None, None, 20_000, 21_500]),
)


@settings(max_examples=30)
@given(logs(), st.lists(users, min_size=1, max_size=6), happenings("go", "read", most=15))
def test_windows_hold_what_duckdb_finds_in_them(
    log: Log, present: list[User], happening: list[tuple[str, int]]
) -> None:
    for i, user in enumerate(present):
        user.name = str(i)

    def join(engine: Engine) -> None:
        for user in present:
            user.join(engine)

    replay = Replay(log, lambda: Engine(STREAMS.get, log.block), join)
    for kind, number in [*happening, ("rows", len(log.rows))]:
        match kind:
            case "go" if len(present) > 1:
                replay.engine.unsubscribe(present.pop(number % len(present)).name)
            case "read":
                present[number % len(present)].read(replay.engine, log, replay.end)
            case _:
                replay.step(kind, number)
    for user in present:
        user.read(replay.engine, log, replay.end)
        in_order = list if user.order else ordered
        assert in_order(user.got) == in_order(user.alone(log))


def test_users_who_come_at_different_times_share_panes() -> None:
    log = steady(60)
    engine = Engine(STREAMS.get, log.block)
    early = User([(30_000, 10_000)], None, None, None, None, None, 0, None, name="early")
    early.join(engine)
    engine.process(log.block(0, 20))
    late = User([(60_000, 10_000)], None, None, None, None, None, 101_000, None, name="late", began=20)
    late.join(engine)
    assert len(engine._windows._shared) == 1
    engine.process(log.block(20, 60))
    for user in (early, late):
        user.read(engine, log, 60)
        assert ordered(user.got) == ordered(user.alone(log))
        assert user.got


def test_panes_go_on_when_the_motes_query_changes() -> None:
    log = steady(60)
    engine = Engine(STREAMS.get, log.block)
    users = [User([(0, 10_000)], None, None, None, None, None, 0, None, name=str(i)) for i in range(2)]
    for user in users:
        user.join(engine)
    engine.process(log.block(0, 30))
    for user in users:
        user.until_ms = 200_000
        engine.set_feeds(user.name, user.feeds)
    assert len(engine._windows._shared) == 1
    engine.process(log.block(30, 60))
    for user in users:
        user.read(engine, log, 60)
        assert ordered(user.got) == ordered(user.alone(log))
        assert len(user.got) > 20


def steady(count: int) -> Log:
    records = np.zeros(count, RECORD)
    records["stream"], records["epoch"] = 1, np.arange(count)
    temp = [column.name for column in STREAMS[1].mote_query.columns].index("temp")
    records["value"][:, temp] = 2000 + np.arange(count)
    rows: list[Row] = [
        {**dict.fromkeys(NAMES, 0), "row": i, "stream": 1, "sample": 5000 * i, "temp": 2000 + i, "nodeid": 0}
        for i in range(count)
    ]
    return Log(records, rows)


def test_a_reader_who_stops_amid_the_groups_of_a_window_gets_it_again() -> None:
    log = steady(40)
    log.records["node"] = range(40)
    engine = Engine(STREAMS.get, log.block)
    User([(50_000, 50_000)], "nodeid", None, None, None, None, 0, None, name="u").join(engine)
    engine.process(log.block(0, 40))
    buffer = engine.subscriber("u").buffer  # type: ignore[union-attr]
    rows = buffer.after(-1) or []
    assert [position for position, _ in rows] == [10] * 9 + [11] + [20] * 9 + [21] + [30] * 9 + [31]
    for read in (1, 5, 9, 10, 11):
        again = buffer.after(rows[read - 1][0]) or []
        assert again == (rows if read < 10 else rows[10:])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("AVG(temp, 5 min), MAX(temp)", "has a window, and an aggregate without it"),
        ("AVG(temp, 5 min), temp", "'temp' has one value for each mote"),
        ("AVG(temp, 5 s, 9 s)", "the longest slide is the length, 5 s"),
        ("AVG(temp, 5500 ms)", "write a multiple of the sample period of 1 s"),
        ("AVG(temp, start)", "a row for each slide"),
        ("AVG(temp, 5 min), AVG(temp, 7 min, 2 min)", "for each 2 min and 5 min have no rows in common"),
        ("AVG(temp, 9973 s), AVG(temp, 9967 s, 9973 s)", "the longest slide is the length"),
        (
            "AVG(temp, 7 day), AVG(temp, 1 min)",
            "together these windows are cut into 10,080 pieces",
        ),
        ("COUNT(*, 5)", "behind * there is room for a window only"),
        ("AVG(*, 5 min)", "only COUNT takes *"),
        ("AVG(revision, 5 min)", "unknown attribute 'revision'"),
        ("AVG(temp, 7 day, 1 s)", "604,800 pieces"),
        ("AVG(temp, 5 min, 1)", "length and slide are times"),
        ("AVG(temp, 5 min, 1 min, 1 s)", "a window has a length and a slide"),
        ("COUNT(DISTINCT temp, 5 min)", "DISTINCT has no meaning in a window"),
        ("WINAVG(3, temp), AVG(temp, 5 min)", "has a window, and an aggregate without it"),
        ("SUM(temp * 100000000, 5 min)", "too large to be summed up"),
    ],
)
def test_windows_that_have_no_meaning_are_refused(columns: str, message: str) -> None:
    with pytest.raises(QueryError) as refused:
        plan_query(f"SELECT {columns} FROM sensors SAMPLE PERIOD 1 s")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("ORDER BY temp SAMPLE PERIOD 1 s", "an endless stream has no last row"),
        ("LIMIT 3 SAMPLE PERIOD 1 s", "LIMIT without ORDER BY would keep any rows"),
        ("ORDER BY COUNT(*, 5 s), light SAMPLE PERIOD 1 s", "'light' has one value for each mote"),
        ("ORDER BY 1.5 SAMPLE PERIOD 1 s", "the columns are 1 to 1"),
        ("ORDER BY 2 SAMPLE PERIOD 1 s", "the columns are 1 to 1"),
        ("ORDER BY COUNT(*, 5 s) LIMIT 0 SAMPLE PERIOD 1 s", "write a whole number from 1"),
        ("ORDER BY COUNT(*, 5 s) LIMIT 1.5 SAMPLE PERIOD 1 s", "write a whole number from 1"),
        ("ORDER BY COUNT(*, 5 s) ORDER BY 1 SAMPLE PERIOD 1 s", "ORDER BY is said twice"),
    ],
)
def test_orders_that_have_no_meaning_are_refused(clauses: str, message: str) -> None:
    with pytest.raises(QueryError) as refused:
        plan_query(f"SELECT nodeid FROM sensors GROUP BY nodeid {clauses}")
    assert message in str(refused.value)


def test_groups_that_would_take_too_much_memory_are_refused() -> None:
    for group, slide in (("nodeid", "1 s"), ("light", "1 min"), ("light >> 8", "10 s")):
        plan_of(f"SELECT COUNT(light, 5 min, {slide}) FROM sensors GROUP BY {group} SAMPLE PERIOD 1 s")
    with pytest.raises(QueryError, match="there may be 65,536 groups"):
        plan_query("SELECT COUNT(light, 5 min, 1 s) FROM sensors GROUP BY light SAMPLE PERIOD 1 s")


@pytest.mark.parametrize(
    "clause",
    [
        "ONCE",
        "LIFETIME 30 days",
        "HISTORY 7 day SAMPLE PERIOD 1 s",
        "SIGNAL hot SAMPLE PERIOD 1 s",
        "INTO STORAGE POINT p SAMPLE PERIOD 1 s",
    ],
)
def test_windows_are_of_queries_that_run(clause: str) -> None:
    with pytest.raises(QueryError):
        plan_query(f"SELECT AVG(temp, 5 min) FROM sensors {clause}")
