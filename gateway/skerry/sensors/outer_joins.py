"""LEFT and ASOF joins as a SELECT says them: what of ON and WHERE decides which rows meet, and what is asked of answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skerry.joins.conditions import AllOf, Condition
from skerry.joins.join import Step, StepKind
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import Term, all_of, conjuncts
from skerry.sensors.join_conditions import condition_of
from skerry.sensors.join_resolver import JoinResolver, aliases_of, of_batches
from skerry.sensors.resolver import Resolver
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.join_windows import is_of_rows

_KINDS: dict[str, StepKind] = {"LEFT": "left", "ASOF": "asof", "ASOF LEFT": "asof left"}
_BEFORE, _AFTER = ("<", "<="), (">", ">=")


@dataclass(frozen=True, slots=True)
class Conditioned:
    """``before``: what chooses among all rows that are joined; ``on``: where a join is LEFT or ASOF, of each alias but the first how it is
    joined, and which of its rows are met; ``of_answers``: asked once it is known which rows are in an answer, of which some may be
    missing."""

    before: tuple[Term, ...]
    on: tuple[tuple[StepKind, tuple[Term, ...]], ...] = ()
    of_answers: Term | None = None

    @property
    def joining(self) -> list[Term]:
        """All that decides which rows meet."""
        return [*self.before, *(part for _, parts in self.on for part in parts)]


def conditions_of(select: ast.Select, resolver: JoinResolver) -> Conditioned:
    """Of a query over several tables. Raises QueryError."""
    where = resolver.condition(select.where) if select.where is not None else None
    parts = conjuncts(where)
    called = [part for part in parts if any(part.calls())]
    if called and any(is_of_rows(window.size) for window in select.windows):
        span = select.where.span if select.where is not None else None
        hint = "functions over arrays are calculated of answers, so leave them out of WHERE, or take a window of time"
        raise QueryError("a window of ROWS is of rows that pass WHERE", hint, span)
    if all(table.joined is None for table in select.tables):
        return Conditioned(tuple(part for part in parts if part not in called), (), all_of(called))
    names = [one.called for one in resolver.aliases]
    kinds = [_kind(table) for table in select.tables]
    before, behind, on = list[Term](), list[Term](), [list[Term]() for _ in names]
    for place, table in enumerate(select.tables):
        if table.joined is not None and table.joined.on is not None:
            for part in conjuncts(resolver.condition(table.joined.on)):
                _check_on(part, table.joined, names, place)
                # What a row without the latest one is no answer without, it is none without either.
                (before if set(aliases_of(part)) <= {names[0]} else on[place]).append(part)
    for part in parts:
        of = [names.index(one) for one in aliases_of(part)]
        last = max(of, default=0)
        if part in called:
            behind.append(part)
        elif kinds[last] == "inner":
            (on[last] if last else before).append(part)
        else:
            if of == [last]:
                _check_where(part, select.tables[last], resolver.aliases[last], select)
            behind.append(part)
    return Conditioned(tuple(before), tuple(zip(kinds[1:], map(tuple, on[1:]), strict=True)), all_of(behind))


def _kind(table: ast.Table) -> StepKind:
    return _KINDS[table.joined.kind] if table.joined is not None else "inner"


def _check_on(part: Term, joined: ast.Joined, names: Sequence[str], place: int) -> None:
    one, other, of = names[0], names[place], aliases_of(part)
    span = joined.on.span if joined.on is not None else joined.span
    if any(part.calls()):
        hint = "calculate them in SELECT or WHERE, which are of answers"
        raise QueryError("functions over arrays do not say which rows meet", hint, span)
    if later := [name for name in of if name in names[place + 1 :]]:
        hint = f"only {', '.join(names[: place + 1])} stand there already, so say it behind ON of {later[0]}, or in WHERE"
        raise QueryError(f"ON of {other} asks for {later[0]}, which is joined behind it", hint, span)
    if joined.kind != "ASOF" and set(of) <= {one}:
        hint = f"all rows of {one} are in answers, and what chooses among them stands in WHERE"
        raise QueryError(f"a condition behind ON is on {one} alone", hint, span)
    times = [arg.value for arg in part.args if arg.op == "column"]
    ahead = [[f"{other}.{plans.TIME}", f"{each}.{plans.TIME}"] for each in names[:place]]
    forward = (part.op in _BEFORE and times[::-1] in ahead) or (part.op in _AFTER and times in ahead)
    if joined.kind.startswith("ASOF") and forward:
        hint = f"it finds the latest row at its time or before, as if ON said {one}.time >= {other}.time"
        raise QueryError("ASOF JOIN does not look ahead", hint, span)


def _check_where(part: Term, table: ast.Table, other: Resolver, select: ast.Select) -> None:
    """What the rows alone of an alias that is LEFT or ASOF are asked in WHERE, where it is not whether there is one."""
    if _asks_for_nulls(part):
        return
    span = select.where.span if select.where is not None else None
    hint = "write it behind ON, where it says which rows are met"
    if _kind(table).endswith("left"):
        raise QueryError(
            f"a condition on {other.called} in WHERE leaves no row with NULLs of a LEFT JOIN", hint, span
        )
    if other.is_static(of_batches(part)):
        raise QueryError(f"sources of {other.called} are chosen in WHERE", hint, span)


def _asks_for_nulls(term: Term) -> bool:
    return term.op == "IS NULL" or any(map(_asks_for_nulls, term.args))


def joined_conditions(
    conditioned: Conditioned, names: list[str], select: ast.Select
) -> tuple[dict[str, Term | None], Condition | None, tuple[Step, ...]]:
    """What each alias's own row decides; which rows meet; and, where a join is LEFT or ASOF, of which alias. Raises
    QueryError."""
    own: dict[str, Term | None] = dict.fromkeys(names)

    def decided(parts: Sequence[Term], alias: str, others: Sequence[str]) -> Condition | None:
        """Of these parts; what is of no alias, or of one of the others, is the alias's."""
        found, between = dict[str, list[Term]](), list[Condition]()
        for part in parts:
            of = aliases_of(part) or [alias]
            if len(of) == 1 and of[0] not in others:
                found.setdefault(of[0], []).append(part)
                continue
            try:
                between.append(condition_of(part, alias))
            except QueryError as error:
                span = select.where.span if select.where else None
                raise QueryError(error.message, error.hint, span) from None
        own.update({name: all_of(terms) for name, terms in found.items()})
        ordered = [(name, found[name]) for name in names if name in found]
        made = [condition_of(one, name) for name, terms in ordered if (one := all_of(terms)) is not None]
        return AllOf((*made, *between)) if made or between else None

    where = decided(conditioned.before, names[0], ())
    steps = [
        Step(kind, decided(parts, names[place], names[:place]))
        for place, (kind, parts) in enumerate(conditioned.on, 1)
    ]
    return own, where, tuple(steps)


def said_conditions(select: ast.Select) -> list[ast.Expression]:
    """What stands behind WHERE and ON."""
    on = [table.joined.on for table in select.tables if table.joined is not None]
    return [one for one in (select.where, *on) if one is not None]
