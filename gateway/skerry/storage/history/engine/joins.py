"""A query's rows of the past joined with tables, as SQL: each row meets the reading of a table that is noted for its number.

Of table number n of a query the relation ``table<n>`` has the columns that the query reads (:func:`leaf_name`), each row's place in its
reading, and from which row of the log on, and until which, that is met. What the stream was before each of its rows is made of the relation
``earlier<n>``, which is as the past but begins earlier.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from skerry.expressions import build
from skerry.expressions.expression import Expr
from skerry.planner.model.joined_tables import EPOCH, TIME, Probe, reads_stream, tables_in
from skerry.planner.model.plans import QueryPlan
from skerry.storage.history.engine.expressions import (
    NETWORK_MS,
    ROW,
    SESSION,
    TIME_US,
    Node,
    Relation,
    Term,
    both,
    choose,
    column,
    floored,
    integer,
    leaf_name,
    relation,
    rows_utc_ms,
)
from skerry_protocol.attributes import BY_NAME

#: Columns of a table's relation beside its own.
PLACE, FIRST, UNTIL = "place", "first", "until"
_KEY, _OUTER = "key", "outer"
#: Of a stream and its own past: whether they are compared by the time of one session or by UTC, the session, and a stretch of that time.
_BY_UTC, _OF, _STRETCH = "by_utc", "of", "stretch"
_THEN = {name: f"then_{name}" for name in (ROW, SESSION, NETWORK_MS, "utc_ms")}
_NODEID = BY_NAME["nodeid"].name


def table_name(number: int) -> str:
    """The relation of a query's table."""
    return f"table{number}"


def earlier_name(number: int) -> str:
    """The relation of the rows that a query's table of its own past is made of."""
    return f"earlier{number}"


def place_name(number: int) -> str:
    """The column that has where in a table each pair's row stands."""
    return f"{PLACE}{number}"


def places_of(plan: QueryPlan) -> list[str]:
    """Columns that put the pairs of one row in order."""
    return [place_name(number) for number in range(len(plan.probes))]


def leaves_of(plan: QueryPlan, probe: Probe) -> dict[str, Expr]:
    """What a query reads of a table, by the columns' names."""
    leaves = (node for expr in plan.joined_exprs() for node in expr.walk() if node.final[:1] == ("table",))
    return {leaf_name(leaf): leaf for leaf in leaves if leaf.final[1] == probe.table.called}


def attributes_of(plan: QueryPlan, probe: Probe) -> list[int]:
    """Of a table of the stream's own past: the attributes that a query reads of it."""
    names = {str(leaf.final[2]) for leaf in leaves_of(plan, probe).values()}
    return sorted(BY_NAME[name].number for name in names - {EPOCH, TIME})


def joined(rows: Relation, plan: QueryPlan, columns: Sequence[str], speed: float) -> Relation:
    """Rows of a plan, which have ``columns``, with all of its tables. ``speed``: s of network time in one of UTC's."""
    carried = list(dict.fromkeys([ROW, SESSION, NETWORK_MS, TIME_US, *columns]))
    for number, probe in enumerate(plan.probes):
        leaves = leaves_of(plan, probe)
        found = [*leaves, place_name(number)]
        outer = rows.let(rows.number(probe.outer))
        left = [*((name, column(name)) for name in carried), (_OUTER, outer.node)]
        of_past = probe.table.past_ms is not None
        query = (
            _with_past(rows, left, plan, number, speed) if of_past else _with_table(rows, left, plan, number)
        )
        chosen = [exp.alias_(_of(name, "s"), name, quoted=True) for name in carried]
        chosen += [exp.alias_(_of(name, "t"), name, quoted=True) for name in found]
        query = query.select(*chosen, append=False, copy=False)
        rows = Relation(plan.period_ms, query.subquery("pairs", copy=False))
        for part in probe.then:
            if not _of_table_only(probe, part):
                rows.where(rows.truth(part))
        carried += found
    return rows


def _with_table(rows: Relation, left: list[tuple[str, Node]], plan: QueryPlan, number: int) -> exp.Select:
    probe = plan.probes[number]
    table = Relation(plan.period_ms, relation(table_name(number)))
    key = table.let(table.number(probe.inner))
    for part in probe.then:
        if _of_table_only(probe, part):
            table.where(table.truth(part))
    mine = [(name, column(name)) for name in (*leaves_of(plan, probe), FIRST, UNTIL)]
    right = table.select([*mine, (place_name(number), column(PLACE)), (_KEY, key.node)])
    return _join(
        rows.select(left),
        right,
        [
            both(exp.EQ, _of(_OUTER, "s"), _of(_KEY, "t")),
            both(exp.GTE, _of(ROW, "s"), _of(FIRST, "t")),
            both(exp.LT, _of(ROW, "s"), _of(UNTIL, "t")),
        ],
    )


def _with_past(
    rows: Relation, left: list[tuple[str, Node]], plan: QueryPlan, number: int, speed: float
) -> exp.Select:
    """Pairs of a row and one that had come before it, and was sampled before it, at most so long ago: by the time of their session, or,
    of different sessions, by UTC. Both are cut into stretches of that length, of which each row meets its own and the one before."""
    probe = plan.probes[number]
    span_ms = probe.table.past_ms
    assert span_ms is not None
    reach_ms = round(span_ms / speed)
    leaves = leaves_of(plan, probe)
    # Epochs of different sessions are not compared.
    ways = [False] if any(leaf.final[2] == EPOCH for leaf in leaves.values()) else [False, True]
    utc = ("utc_ms", rows_utc_ms())
    base = rows.select([*left, utc]).subquery("b", copy=False)
    names = [name for name, _ in left] + ["utc_ms"]
    first = _by_stretches(base, names, {name: name for name in _THEN}, ways, 1, (span_ms, reach_ms))
    past = Relation(plan.period_ms, relation(earlier_name(number)))
    assert plan.history is not None
    if not plan.history.recorded:
        past.where(Term(_came_first(number, plan.period_ms)))
    key_names = {TIME: rows_utc_ms()}
    read = [
        (
            name,
            key_names.get(str(leaf.final[2]))
            or past.number(build.attribute(BY_NAME[str(leaf.final[2])])).node,
        )
        for name, leaf in leaves.items()
    ]
    kept = [(_THEN[name], rows_utc_ms() if name == "utc_ms" else column(name)) for name in _THEN]
    made = past.select([*read, *kept])
    table = Relation(plan.period_ms, made.subquery("past", copy=False))
    key = table.let(table.number(probe.inner))
    for part in probe.then:
        if _of_table_only(probe, part):
            table.where(table.truth(part))
    all_names = [*leaves, *_THEN.values()]
    keyed = table.select([*((name, column(name)) for name in all_names), (_KEY, key.node)])
    second = _by_stretches(
        keyed.subquery("b", copy=False), [*all_names, _KEY], _THEN, ways, 2, (span_ms, reach_ms)
    )
    second = exp.select("*", exp.alias_(column(_THEN[ROW]), place_name(number), quoted=True)).from_(
        second.subquery("e", copy=False)
    )
    of_session = both(exp.Sub, _of(NETWORK_MS, "s"), _of(_THEN[NETWORK_MS], "t"))
    of_utc = both(exp.Sub, _of("utc_ms", "s"), _of(_THEN["utc_ms"], "t"))
    other = both(exp.NEQ, _of(SESSION, "s"), _of(_THEN[SESSION], "t"))
    ago = choose(both(exp.EQ, _of(_BY_UTC, "s"), integer(1)), of_utc, of_session)
    most = choose(both(exp.EQ, _of(_BY_UTC, "s"), integer(1)), integer(reach_ms), integer(span_ms))
    return _join(
        first,
        second,
        [
            both(exp.EQ, _of(_OUTER, "s"), _of(_KEY, "t")),
            *(both(exp.EQ, _of(name, "s"), _of(name, "t")) for name in (_BY_UTC, _OF, _STRETCH)),
            both(exp.LT, _of(_THEN[ROW], "t"), _of(ROW, "s")),
            both(exp.GT, ago, integer(0)),
            both(exp.LTE, ago.copy(), most),
            exp.Or(this=both(exp.EQ, _of(_BY_UTC, "s"), integer(0)), expression=other),
        ],
    )


def _by_stretches(
    base: exp.Expr,
    names: Sequence[str],
    when: dict[str, str],
    ways: Sequence[bool],
    copies: int,
    lengths: tuple[int, int],
) -> exp.Select:
    """Rows once for each way of comparing times, and each of so many stretches from their own on."""
    wanted = [
        exp.Tuple(expressions=[integer(int(by_utc)), integer(copy)])
        for by_utc in ways
        for copy in range(copies)
    ]
    values = exp.Values(
        expressions=wanted,
        alias=exp.TableAlias(
            this=exp.to_identifier("w"), columns=[exp.to_identifier("u"), exp.to_identifier("c")]
        ),
    )
    by_utc = both(exp.EQ, exp.column("u", table="w"), integer(1))
    span_ms, reach_ms = lengths
    of_session, of_utc = (
        both(exp.Add, floored(_of(when[name], "b"), max(length, 1)), exp.column("c", table="w"))
        for name, length in ((NETWORK_MS, span_ms), ("utc_ms", reach_ms))
    )
    return (
        exp.select(
            *(exp.alias_(_of(name, "b"), name, quoted=True) for name in names),
            exp.alias_(exp.column("u", table="w"), _BY_UTC, quoted=True),
            exp.alias_(choose(by_utc, integer(0), _of(when[SESSION], "b")), _OF, quoted=True),
            exp.alias_(choose(by_utc.copy(), of_utc, of_session), _STRETCH, quoted=True),
        )
        .from_(base)
        .join(values, join_type="cross")
    )


def _came_first(number: int, period_ms: int) -> Node:
    """Whether a row of the stream's past has come first of a mote's in its epoch."""
    firsts = exp.select(exp.Min(this=column(ROW))).from_(relation(earlier_name(number)))
    keys = [column(SESSION), column(_NODEID), floored(column(NETWORK_MS), period_ms)]
    return exp.In(this=column(ROW), query=firsts.group_by(*keys, copy=False).subquery(copy=False))


def _join(left: exp.Select, right: exp.Select, conditions: Sequence[Node]) -> exp.Select:
    return (
        exp.select("*")
        .from_(left.subquery("s", copy=False))
        .join(right.subquery("t", copy=False), on=list(conditions), join_type="inner")
    )


def _of(name: str, table: str) -> Node:
    return exp.column(name, table=table, quoted=True)


def _of_table_only(probe: Probe, part: Expr) -> bool:
    return tables_in(part) == {probe.table.called} and not reads_stream(part)
