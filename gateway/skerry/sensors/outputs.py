"""The columns that a SELECT over tables of sensors gives, under their names."""

from __future__ import annotations

from collections.abc import Iterator

from skerry.planner.model.source_plans import SourceOutput
from skerry.sensors import mote_streams
from skerry.sensors.found import Found
from skerry.sensors.grouping import GroupedResolver
from skerry.sensors.join_resolver import JoinResolver
from skerry.sensors.resolver import Resolver
from skerry.sql import ast
from skerry.sql.errors import QueryError, did_you_mean


def outputs_of(select: ast.Select, resolver: Resolver) -> list[SourceOutput]:
    """Each under a name of its own. Raises QueryError."""
    found: list[SourceOutput] = []
    for item in select.items:
        if isinstance(item.expression, ast.Star):
            if isinstance(resolver, GroupedResolver):
                raise QueryError(
                    "'*' is of a row, and this one is of many", "name groups and aggregates", item.span
                )
            found += _star(item.expression, resolver)
            continue
        known = resolver.expression(item.expression)
        name = item.alias or select.text[item.expression.span.start : item.expression.span.end]
        found.append(SourceOutput(" ".join(name.split()), known.term, known.unit))
    names = [output.name for output in found]
    for output in found:
        if names.count(output.name) > 1:
            raise QueryError(
                f"two columns are named '{output.name}'", "name one of them with AS", select.items[0].span
            )
    return found


def _star(star: ast.Star, resolver: Resolver) -> list[SourceOutput]:
    """Of a join each column has its alias before it."""
    if not isinstance(resolver, JoinResolver):
        [one] = _meant(star, (resolver,))
        return [SourceOutput(name, known.term, known.unit) for name, known in _columns(one)]
    return [
        SourceOutput(f"{one.called}.{name}", resolver.in_rows(one, known.term), known.unit)
        for one in _meant(star, resolver.aliases)
        for name, known in _columns(one)
    ]


def _meant(star: ast.Star, aliases: tuple[Resolver, ...]) -> tuple[Resolver, ...]:
    """The tables whose columns ``*`` or ``a.*`` stands for."""
    if star.table is None:
        return aliases
    before, names = star.table.lower(), [one.called for one in aliases]
    able = [one for one in aliases if one.called == before] or [
        one for one in aliases if one.table.key == before
    ]
    if not able:
        hint = f"{did_you_mean(star.table, names)}it is {' or '.join(names)}"
        raise QueryError(f"unknown table '{star.table}'", hint, star.span)
    if len(able) > 1:
        hint = f"write {' or '.join(f'{one.called}.*' for one in able)}"
        raise QueryError(f"'{star.table}' is several tables here", hint, star.span)
    return (able[0],)


def _columns(one: Resolver) -> Iterator[tuple[str, Found]]:
    """All static columns but the address, then all fields, which have their stream before them where a column is called so."""
    for column in one.table.columns:
        if not column.fields:
            yield column.name, Found(one.column(column.name), column.unit)
    stream = one.table.stream
    if stream is None:
        return
    taken = {column.name.lower() for column in one.table.columns if not column.fields}
    for field in stream.fields:
        if one.table.of_motes and field.name not in mote_streams.STAR:
            continue
        name = field.name if field.name.lower() not in taken else f"{stream.name}.{field.name}"
        yield name, Found(one.field(field), field.unit)
