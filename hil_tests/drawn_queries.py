"""Queries for hypothesis to draw, and how DuckDB would say them.

Each is asked once a PERIOD_S. DuckDB's table ``sensors`` has a row of NAMES and ``epoch`` for each mote and epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from gateway.tests.generated import conditions
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry.sql.errors import QueryError

#: Constants too, so that what is NULL or not does not depend on sensors alone.
NAMES = ["nodeid", "level", "temp", "humidity", "light", "voltage", "accel_x", "xpos", "ypos"]
SENSED = ["temp", "humidity", "light"]
PERIOD_S = 2

small = st.sampled_from(["temp", "humidity", "light", "level", "nodeid", "voltage"])
terms = st.one_of(
    small,
    st.builds("{} {} {}".format, small, st.sampled_from("+-"), st.integers(-20, 20)),
    st.builds("{} % {}".format, small, st.integers(2, 7)),
    st.builds("{} * {}".format, small, st.integers(-3, 3)),
)
nested = st.one_of(
    terms,
    st.builds("({} {} {})".format, terms, st.sampled_from("+-"), terms),
    st.builds("(- ({}))".format, terms),
    st.builds("(({}) * {} - {})".format, terms, st.integers(-3, 3), small),
    st.builds("(({}) % {} + {})".format, terms, st.integers(2, 7), terms),
)
where = st.one_of(st.just(""), st.builds("WHERE {}".format, conditions(nested)))
groups = st.one_of(
    st.builds("{} % {}".format, st.sampled_from(["nodeid", "level", "light"]), st.integers(2, 4)),
    st.builds("{} > {}".format, small, st.integers(0, 60)),
    st.builds("{} IS NULL OR NOT {} < {}".format, small, small, st.integers(0, 60)),
    st.builds("({} + {}) % {}".format, small, small, st.integers(2, 5)),
    small,
)


#: What an estimate of different values may be off by. Of a few values the error is not spread as its standard error says: nine over
#: 384 bits are two pairs that fall together in 4 of 1,000 cases, and three in 1 of 10,000.
DISTINCT_WITHIN = (4.5, 2)


@dataclass(frozen=True)
class Asked:
    """A query and how DuckDB would say it."""

    sql: str
    oracle: str
    #: Of an estimate, whose error is our last column: DuckDB's is within so many of it, and so much.
    within: tuple[float, float] | None = None
    #: Epochs from one row of its windows of times to the next; 0: it has none.
    slide: int = 0
    #: Epochs of the longest of these windows: a mote has no row of one that began before it had the query.
    longest: int = 0
    #: Its windows of rows reach back to the first epoch.
    reaches_back: bool = False


def _named(texts: Sequence[str]) -> str:
    return ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts))


@st.composite
def plain(draw: st.DrawFn) -> Asked:
    chosen = _named(draw(st.lists(nested | conditions(terms), min_size=1, max_size=3)))
    rest = f"SELECT nodeid AS id, {chosen} FROM sensors {draw(where)}"
    return Asked(rest, rest)


_SAME = ("COUNT({})", "SUM({})", "MIN({})", "MAX({})", "AVG({})")
OTHER = {"VARIANCE({})": "VAR_SAMP({})", "STDDEV({})": "STDDEV_SAMP({})"}


_whole = st.builds(str.format, st.sampled_from(_SAME), terms)
_chosen = st.one_of(
    st.builds("COUNT(*) {} {}".format, st.sampled_from([">", "<=", "<>"]), st.integers(1, 3)),
    st.builds("{} {} {}".format, _whole, st.sampled_from(["<", ">="]), st.integers(-20, 60)),
    st.builds("MAX({0}) - MIN({0}) > {1}".format, terms, st.integers(0, 30)),
    st.builds("{} IS {}NULL".format, _whole, st.sampled_from(["", "NOT "])),
    st.builds("{} {}BETWEEN 3 AND {}".format, _whole, st.sampled_from(["", "NOT "]), st.integers(3, 90)),
)
#: Of several aggregates, selected or not.
having = st.recursive(
    _chosen,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["AND", "OR"]), inner),
        st.builds("(NOT {})".format, inner),
    ),
    max_leaves=3,
)


@st.composite
def aggregates(draw: st.DrawFn) -> Asked:
    wanted = draw(st.lists(st.tuples(st.sampled_from([*_SAME, *OTHER]), nested), min_size=1, max_size=4))
    keys = draw(st.lists(groups, max_size=2, unique=True))
    columns = ["COUNT(*)"] + [form.format(term) for form, term in wanted]
    exact = ["COUNT(*)"] + [OTHER.get(form, form).format(term) for form, term in wanted]
    # What the gateway computes from aggregates.
    of_them = draw(st.lists(st.builds("{} + {} * {}".format, _whole, _whole, st.integers(-3, 3)), max_size=1))
    columns, exact = columns + of_them, exact + of_them
    rest = f"FROM sensors {draw(where)}"
    if keys:
        columns, exact, rest = [*keys, *columns], [*keys, *exact], f"{rest} GROUP BY {', '.join(keys)}"
    if draw(st.booleans()):
        rest += f" HAVING {draw(having)}"
    return Asked(f"SELECT {_named(columns)} {rest}", f"SELECT {_named(exact)} {rest}")


@st.composite
def estimates(draw: st.DrawFn) -> Asked:
    term, share = draw(small), draw(st.sampled_from(["0.25", "0.5", "0.9"]))
    rest = f"FROM sensors {draw(where)}"
    ours = f"QUANTILE({term}, {share}) AS q, ERROR(QUANTILE({term}, {share})) AS e"
    return Asked(f"SELECT {ours} {rest}", f"SELECT QUANTILE_DISC({term}, {share}) {rest}", within=(1, 0))


@st.composite
def distinct(draw: st.DrawFn) -> Asked:
    count = f"COUNT(DISTINCT {draw(terms)})"
    rest = f"FROM sensors {draw(where)}"
    return Asked(
        f"SELECT {count} AS n, ERROR({count}) AS e {rest}", f"SELECT {count} {rest}", within=DISTINCT_WITHIN
    )


@st.composite
def lists(draw: st.DrawFn) -> Asked:
    """The best with their motes, and counts in bins."""
    term, rest, bins = draw(small), f"FROM sensors {draw(where)}", draw(st.integers(1, 9))
    ours, theirs = [], []
    for name, order in (("TOP", "DESC"), ("BOTTOM", "ASC")):
        number = draw(st.integers(1, 4))
        ours.append(f"{name}({number}, {term})")
        entries = f"list({{'nodeid': nodeid, 'value': {term}}} ORDER BY {term} {order}, nodeid)"
        theirs.append(f"coalesce({entries} FILTER ({term} IS NOT NULL), [])[:{number}]")
    low, high = draw(st.integers(-5, 10)), draw(st.integers(11, 40))
    ours.append(f"HISTOGRAM({term}, {low}, {high}, {bins})")
    place = f"least({bins - 1}, greatest(0, floor(({term} - {low}) * {bins} / {high - low})))"
    cells = ", ".join(f"count({term}) FILTER ({place} = {bin})" for bin in range(bins))
    theirs.append(f"[{cells}]")
    return Asked(f"SELECT {_named(ours)} {rest}", f"SELECT {_named(theirs)} {rest}")


_WINDOWS = {"WINAVG": "avg", "WINSUM": "sum", "WINMIN": "min", "WINMAX": "max", "WINCOUNT": "count"}


def _over_time(term: str, condition: str, lengths: list[tuple[str, int]], slide: int) -> Asked:
    ours = [f"{kind}({term}, {length * PERIOD_S} s, {slide * PERIOD_S} s)" for kind, length in lengths]
    passing = f"FILTER ({condition})" if condition else ""
    over = "OVER (PARTITION BY nodeid ORDER BY epoch RANGE {} PRECEDING)"
    theirs = [f"{_WINDOWS[kind]}({term}) {passing} {over.format(length - 1)}" for kind, length in lengths]
    longest = max(length for _, length in lengths)
    any_passed = f"count(*) {passing} {over.format(longest - 1)} > 0"
    exact = f"SELECT nodeid AS id, {_named(theirs)} FROM sensors QUALIFY epoch = max(epoch) OVER () AND {any_passed}"
    return Asked(
        f"SELECT nodeid AS id, {_named(ours)} FROM sensors {condition}", exact, slide=slide, longest=longest
    )


@st.composite
def windows(draw: st.DrawFn) -> Asked:
    """Windows of times: what passed in the last epochs."""
    window = st.tuples(st.sampled_from([*_WINDOWS]), st.integers(1, 4))
    lengths = draw(st.lists(window, min_size=1, max_size=3, unique=True))
    return _over_time(draw(terms), draw(where), lengths, draw(st.integers(1, 3)))


@st.composite
def exemplary(draw: st.DrawFn) -> Asked:
    """Windows of times that are no longer than their slide, of what a reading changes or does not, with a condition."""
    window = st.tuples(st.sampled_from(["WINMIN", "WINMAX"]), st.integers(1, 4))
    lengths = draw(st.lists(window, min_size=1, max_size=2, unique=True))
    slide = max(length for _, length in lengths) + draw(st.integers(0, 1))
    return _over_time(draw(terms), f"WHERE {draw(conditions(terms))}", lengths, slide)


def _over_rows(columns: list[str], condition: str, due: str) -> str:
    """What DuckDB says of the newest epoch: rows that pass and are due; in columns and ``due``, ``n`` counts those of a mote that pass."""
    passed = f"SELECT *, row_number() OVER (PARTITION BY nodeid ORDER BY epoch) AS n FROM sensors {condition}"
    of_all = f"SELECT nodeid AS id, epoch, n, {_named(columns)} FROM ({passed}) QUALIFY {due}"
    names = ", ".join(f"c{i}" for i in range(len(columns)))
    return f"SELECT id, {names} FROM ({of_all}) WHERE epoch = (SELECT max(epoch) FROM sensors)"


@st.composite
def row_windows(draw: st.DrawFn) -> Asked:
    """Windows of a mote's last rows, and averages that forget: of rows that pass alone."""
    condition = draw(where)
    kinds = st.sampled_from([*_WINDOWS, "TREND", "EXPAVG"])
    wanted = draw(
        st.lists(
            st.tuples(kinds, st.integers(1, 4), terms), min_size=1, max_size=3, unique_by=lambda w: w[:2]
        )
    )
    # An average that forgets has a row for each.
    slide = 1 if any(kind == "EXPAVG" for kind, _, _ in wanted) else draw(st.integers(1, 3))
    so_far = "OVER (PARTITION BY nodeid ORDER BY epoch ROWS {} PRECEDING)"
    ours, theirs = [], []
    for kind, length, term in wanted:
        over = so_far.format("UNBOUNDED" if kind == "EXPAVG" else length - 1)
        if kind == "EXPAVG":
            ours.append(f"EXPAVG({length}, {term})")
            known = f"list(CAST({term} AS DOUBLE)) FILTER ({term} IS NOT NULL) {over}"
            moved = f"list_reduce({known}, lambda a, x: a + (x - a) / {2**length})"
            theirs.append(f"CASE WHEN count({term}) {over} > 0 THEN {moved} END")
        elif kind == "TREND":
            ours.append(f"TREND({length}, {slide}, {term})")
            theirs.append(f"CASE WHEN count({term}) {over} > 1 THEN regr_slope({term}, n) {over} END")
        else:
            ours.append(f"{kind}({length}, {slide}, {term})")
            theirs.append(f"{_WINDOWS[kind]}({term}) {over}")
    oracle = _over_rows(theirs, condition, f"n % {slide} = 0")
    return Asked(f"SELECT nodeid AS id, {_named(ours)} FROM sensors {condition}", oracle, reaches_back=True)


@st.composite
def deltas(draw: st.DrawFn) -> Asked:
    """Rows that differ enough from the one reported last, which is what the reduction leaves of those before."""
    term, least, condition = draw(terms), draw(st.integers(1, 20)), draw(where)
    before = "OVER (PARTITION BY nodeid ORDER BY epoch ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    known = f"list({term}) FILTER ({term} IS NOT NULL) {before}"
    last = f"list_reduce({known}, lambda a, x: CASE WHEN abs(x - a) >= {least} THEN x ELSE a END)"
    first = f"count({term}) {before} = 0"
    due = f"{term} IS NOT NULL AND ({first} OR abs({term} - {last}) >= {least})"
    ours = f"SELECT nodeid AS id, DELTA({least}, {term}) AS c0 FROM sensors {condition}"
    return Asked(ours, _over_rows([term], condition, due), reaches_back=True)


def plannable(asked: Asked) -> bool:
    """Random expressions compare metres with volts, leave a mote's 32 bits, or are too long for it; aggregates over rows that the gateway
    chooses are windows there."""
    try:
        plan = plan_query(f"{asked.sql} SAMPLE PERIOD {PERIOD_S} s")
    except QueryError as error:
        known = ("unit mismatch", "too large", "may reach", "out of range", "cannot be evaluated by a mote",
                 "cannot be computed by a mote", "cannot be grouped by", "a mote cannot compute this",
                 "these aggregates need")  # fmt: skip
        if not any(part in error.message for part in known):
            raise
        return False
    assert isinstance(plan, QueryPlan)
    return not any(node.final[:1] == ("window",) for output in plan.outputs for node in output.expr.walk())


queries = st.one_of(
    plain(), aggregates(), aggregates(), estimates(), distinct(), lists(), windows(), row_windows(), deltas()
).filter(plannable)
