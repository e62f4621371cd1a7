"""Expressions over the tables of a join: each name is of the alias before its point, or of the only one that has it.

A term's columns are those of answers: the alias, a point, and the name in the batches of the alias's stream.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import Term
from skerry.sensors.definitions import TIME
from skerry.sensors.resolver import Found, Resolver
from skerry.sql import ast
from skerry.sql.errors import QueryError, did_you_mean


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

    def _call(self, node: ast.Call) -> Term:
        hint = "functions over arrays are of one table: select the array, or ask without the join"
        raise QueryError(f"'{node.function}' is not computed in a join", hint, node.span)

    def _name(self, node: ast.Name) -> Found:
        before, names = (node.table or "").lower(), [one.called for one in self.aliases]
        if node.table is None:
            able = [one for one in self.aliases if self._has(one, node.name)]
        else:
            able = [one for one in self.aliases if one.called == before]
            able = able or [one for one in self.aliases if self._is_of(one, node, before)]
        if node.table is None and not able and node.name.lower() == TIME:
            return Found(Term("column", plans.TIMESTAMP, (), plans.TIME))
        if not able:
            known = [*names, *(column.name for one in self.aliases for column in one.table.columns)]
            guess = did_you_mean(node.table or node.name, known)
            if node.table is None:
                raise QueryError(
                    f"unknown column '{node.name}'", f"{guess}none of {', '.join(names)} has it", node.span
                )
            raise QueryError(f"unknown table '{node.table}'", f"{guess}it is {' or '.join(names)}", node.span)
        if len(able) > 1:
            hint = f"write {' or '.join(f'{one.called}.{node.name}' for one in able)}"
            raise QueryError(f"'{node.name}' is of several tables", hint, node.span)
        [one] = able
        found = one._name(node)
        return Found(of_alias(one.called, found.term), found.unit)

    def _has(self, one: Resolver, name: str) -> bool:
        if one.table.place(name) is not None:
            return True
        stream = one.table.stream
        return stream is not None and any(field.name.lower() == name.lower() for field in stream.fields)

    def _is_of(self, one: Resolver, node: ast.Name, before: str) -> bool:
        """Whether what stands before the point is an alias's table, or its stream."""
        stream = one.table.stream
        of_stream = node.stream is None and stream is not None and stream.name.lower() == before
        return one.table.key == before or of_stream
