"""What DuckDB answers to LEFT and ASOF joins, step by step as docs/streams.md has them, and with which row of the log each answer is there.

Aliases are columns of structs, so that conditions read them as they are written. Registered are the rows of each alias as ``rows_a``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, permutations

import duckdb

from skerry.joins.conditions import Compared, Condition, aliases_of, conjuncts
from skerry.joins.join import Join
from skerry.joins.progress import AT_END

SqlOf = Callable[[Condition], str]


def expected(join: Join, sql_of: SqlOf, connection: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    """Time, numbers by alias, selected columns; sorted."""
    first, *others = join.aliases
    own = [sql_of(part) for part in conjuncts(join.where)] or ["TRUE"]
    question = f"SELECT {first} FROM rows_{first} AS {first} WHERE {' AND '.join(own)}"
    for place, alias in enumerate(others, 1):
        question = _stepped(join, place, alias, question, sql_of)
    numbers = [f"{alias}.number" for alias in join.aliases]
    chosen = "".join(f", {column.alias}.{column.name}" for column in join.select)
    found = connection.execute(
        f"SELECT {_latest(join.aliases)}, {', '.join(numbers)}{chosen} FROM ({question}) ORDER BY {', '.join(numbers)}"
    ).fetchall()
    if len(others) == 1 and join.has_asof:
        _check_asof(join, sql_of, found, connection)
    return found


def _stepped(join: Join, place: int, alias: str, before: str, sql_of: SqlOf) -> str:
    """With one more alias."""
    step, known = join.steps[place - 1], join.aliases[:place]
    on = [sql_of(part) for part in conjuncts(step.on)]
    for one in known:
        on.append(f"({one}.time IS NULL OR abs({one}.time - {alias}.time) <= {bound(join, one, alias)})")
    if step.is_asof:
        on.append(f"{alias}.time <= {_latest(known)}")
    kind = "LEFT" if step.has_nulls else "INNER"
    found = f"SELECT {', '.join(known)}, {alias} FROM ({before}) {kind} JOIN rows_{alias} AS {alias} ON {' AND '.join(on)}"
    if step.is_asof:
        order = f"{alias}.time DESC, {alias}.number DESC"
        numbers = ", ".join(f"{one}.number" for one in known)
        found += f" QUALIFY row_number() OVER (PARTITION BY {numbers} ORDER BY {order}) = 1"
    return found


def _latest(aliases: Sequence[str]) -> str:
    # NULL is greater than nothing here.
    return (
        f"greatest({', '.join(f'{alias}.time' for alias in aliases)})"
        if len(aliases) > 1
        else f"{aliases[0]}.time"
    )


def bound(join: Join, one: str, other: str) -> int:
    """How far apart two aliases may be when the later one is joined: their window, or the shortest way over those that stand before it."""
    lengths = {pair: window.us for pair, window in join.windows.items()}
    direct = lengths.get(frozenset((one, other)))
    if direct is not None:
        return direct
    later = max(map(join.aliases.index, (one, other)))
    between = [alias for alias in join.aliases[: later + 1] if alias not in (one, other)]
    ways = [
        [lengths.get(frozenset(pair)) for pair in pairwise([one, *over, other])]
        for count in range(1, len(between) + 1)
        for over in permutations(between, count)
    ]
    return min(sum(way) for way in ways if None not in way)  # type: ignore[arg-type]


def decided(join: Join, times: Mapping[int, int], numbers: Sequence[int | None]) -> int:
    """``times``: of all rows that are in time, by number; ``numbers``: of an answer's rows, by alias."""
    there = [number for number in numbers if number is not None]
    if len(there) == len(numbers) and not join.has_asof:
        return max(there)
    # Behind the first one's row by as much as any row that it, or the latest that it is together with, may meet.
    latest, until = 0, 0
    for step, alias in zip(join.steps, join.aliases[1:], strict=True):
        reach = bound(join, join.aliases[0], alias)
        until = max(until, min(reach, latest) if step.is_asof else reach)
        latest = latest if step.is_asof else max(latest, reach)
    first = times[there[0]]
    passing = [number for number, time in times.items() if time - join.lateness_us > first + until]
    return min(passing, default=AT_END)


def _is_for_asof(part: Condition) -> bool:
    """Whether it is an equality with each alias on one side, as DuckDB's ASOF JOIN needs them."""
    if not isinstance(part, Compared) or part.operator != "=":
        return False
    return max(len(aliases_of(side)) for side in (part.left, part.right)) < 2


def _check_asof(
    join: Join, sql_of: SqlOf, found: list[tuple[object, ...]], connection: duckdb.DuckDBPyConnection
) -> None:
    """DuckDB's own ASOF JOIN has the same times; which of several rows of one time it takes it leaves open."""
    (one, other), [step] = join.aliases, join.steps
    on = conjuncts(step.on)
    between = [part for part in on if aliases_of(part) == {one, other}]
    if not between or not all(map(_is_for_asof, on)):
        return
    own = [conjuncts(join.where), [part for part in on if aliases_of(part) == {other}]]
    of = [
        f"(SELECT * FROM rows_{alias} AS {alias} WHERE {' AND '.join(map(sql_of, parts)) or 'TRUE'}) AS {alias}"
        for alias, parts in zip((one, other), own, strict=True)
    ]
    left = "LEFT" if step.has_nulls else ""
    near = f"{one}.time - {other}.time <= {bound(join, one, other)}"
    times = connection.execute(
        f"SELECT {one}.number, CASE WHEN {near} THEN {other}.time END AS met FROM {of[0]} ASOF {left} JOIN {of[1]} "
        f"ON {' AND '.join(map(sql_of, between))} AND {one}.time >= {other}.time {'' if left else 'WHERE ' + near} "
        f"ORDER BY {one}.number"
    ).fetchall()
    known = dict(connection.execute(f"SELECT number, time FROM rows_{other}").fetchall())
    assert times == [(row[1], known.get(row[2])) for row in found]  # type: ignore[call-overload]
