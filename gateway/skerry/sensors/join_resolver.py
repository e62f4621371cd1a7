"""Expressions over the tables of a join: each name is of the alias before its point, or of the only one that has it.

A term's columns are those of answers: the alias, a point, and the name in the batches of the alias's stream.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import Term
from skerry.sensors.definitions import TIME
from skerry.sensors.found import Found
from skerry.sensors.resolver import Resolver
from skerry.sql import ast
from skerry.sql.errors import QueryError, did_you_mean

_WINDOW = "window"
_NO_CONDITION = (
    "a window is no condition among others",
    "say it, as it bounds all answers, behind FROM, or with AND, as in WINDOW(a, b) = 10 min",
)


def of_alias(alias: str, term: Term) -> Term:
    """A term over an alias's batches as one over answers."""
    if term.op == "column":
        return replace(term, value=f"{alias}.{term.value}")
    return replace(term, args=tuple(of_alias(alias, arg) for arg in term.args))


def of_batches(term: Term) -> Term:
    """The contrary, of a term over one alias."""
    if term.op == "column":
        return replace(term, value=str(term.value).partition(".")[2])
    return replace(term, args=tuple(map(of_batches, term.args)))


def aliases_of(term: Term) -> list[str]:
    """The aliases whose columns a term reads; '' stands for the answer's own time."""
    names = [str(name) for name in term.columns()]
    return list(dict.fromkeys("" if name == plans.TIME else name.partition(".")[0] for name in names))


@dataclass(frozen=True, slots=True)
class JoinResolver(Resolver):
    """``table`` and ``called`` are of the first alias, ``aliases`` has all of them."""

    aliases: tuple[Resolver, ...] = ()

    def has(self, name: str) -> bool:
        return any(one.has(name) for one in self.aliases)

    def _call(self, node: ast.Call) -> Found:
        if node.function.lower() == _WINDOW:
            raise QueryError(*_NO_CONDITION, node.span)
        return Resolver._call(self, node)

    def _name(self, node: ast.Name) -> Found:
        one = self.owner(node)
        if one is None:
            return Found(Term("column", plans.TIMESTAMP, (), plans.TIME))
        found = one._name(node)
        return Found(of_alias(one.called, found.term), found.unit)

    def in_rows(self, one: Resolver, term: Term) -> Term:
        """A term over an alias's batches as one over rows."""
        return of_alias(one.called, term)

    def owner(self, node: ast.Name) -> Resolver | None:
        """The alias that a name is of; None: it is the answer's own time. Raises QueryError."""
        before, names = (node.table or "").lower(), [one.called for one in self.aliases]
        if node.table is None:
            able = [one for one in self.aliases if one.has(node.name)]
        else:
            able = [one for one in self.aliases if one.called == before]
            able = able or [one for one in self.aliases if self._is_of(one, node, before)]
        if node.table is None and not able and node.name.lower() == TIME:
            return None
        if not able:
            if node.table is None and node.name.lower() in names:
                hint = (
                    f"write a column of it, as in {node.name}.time; a window of two stands alone, or with AND"
                )
                raise QueryError(f"'{node.name}' is a table", hint, node.span)
            known = [*names, *(column.name for one in self.aliases for column in one.table.columns)]
            guess = did_you_mean(node.table or node.name, known)
            if node.table is None and node.name.lower() == _WINDOW:
                raise QueryError(*_NO_CONDITION, node.span)
            if node.table is None:
                raise QueryError(
                    f"unknown column '{node.name}'", f"{guess}none of {', '.join(names)} has it", node.span
                )
            raise QueryError(f"unknown table '{node.table}'", f"{guess}it is {' or '.join(names)}", node.span)
        if len(able) > 1:
            hint = f"write {' or '.join(f'{one.called}.{node.name}' for one in able)}"
            raise QueryError(f"'{node.name}' is of several tables", hint, node.span)
        return able[0]

    def _is_of(self, one: Resolver, node: ast.Name, before: str) -> bool:
        """Whether what stands before the point is an alias's table, or its stream."""
        stream = one.table.stream
        of_stream = node.stream is None and stream is not None and stream.name.lower() == before
        return one.table.key == before or of_stream
