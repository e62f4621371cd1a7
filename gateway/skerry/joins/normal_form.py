"""The condition of a join of two in conjunctive normal form, and what each of its clauses is good for where motes join.

Source: Mihaylov et al., Dynamic Join Optimization in Multi-Hop Wireless Sensor Networks (VLDB 2010), section 2 and appendix B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from skerry.joins.condition_text import text_of
from skerry.joins.conditions import (
    AllOf,
    AnyOf,
    Calculated,
    Column,
    Compared,
    Condition,
    Not,
    Operand,
    Value,
    aliases_of,
    columns_of,
)

#: What would become more clauses than that stays as it is: each OR of ANDs multiplies them.
CLAUSES_MAXIMUM = 64
#: Conditions of which one is true where the clause is.
Literals = tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Clauses:
    """What must all be true of a pair.

    ``own_static`` and ``own``, by alias: what a row's mote decides alone, once or with each row. ``primary``: what leads a mote that
    searches for its partners to them, as they have summaries of what stands in it; ``secondary``: what is asked of a partner that was
    found, once; ``pair``: what is asked of each pair of rows. ``constant``: what reads neither.
    """

    own_static: Mapping[str, tuple[Condition, ...]]
    own: Mapping[str, tuple[Condition, ...]]
    primary: tuple[Condition, ...]
    secondary: tuple[Condition, ...]
    pair: tuple[Condition, ...]
    constant: tuple[Condition, ...] = ()

    def all(self) -> list[Condition]:
        """Each of them, once."""
        own = [
            clause for by_alias in (self.own_static, self.own) for own in by_alias.values() for clause in own
        ]
        return [*self.constant, *own, *self.primary, *self.secondary, *self.pair]

    def described(self) -> list[str]:
        """For people, a line each."""
        lines = [f"never changes: {text_of(clause)}" for clause in self.constant]
        for what, by_alias in (("once", self.own_static), ("with each row", self.own)):
            lines += [
                f"{alias} decides {what}: {text_of(clause)}"
                for alias, own in by_alias.items()
                for clause in own
            ]
        for what, clauses in (
            ("leads to partners", self.primary),
            ("asked of each partner once", self.secondary),
            ("asked of each pair of rows", self.pair),
        ):
            lines += [f"{what}: {text_of(clause)}" for clause in clauses]
        return lines


def normal_form(condition: Condition | None) -> tuple[Condition, ...]:
    """Clauses that are true, false and unknown together where the condition is; each is a comparison, its contrary, or an OR of such,
    unless there would be more than :data:`CLAUSES_MAXIMUM`."""
    if condition is None:
        return ()
    clauses = list(dict.fromkeys(_clauses(_pushed(condition, negated=False))))
    # What a smaller clause demands already is left out.
    sets = [frozenset(clause) for clause in clauses]
    needed = [
        clause for clause, own in zip(clauses, sets, strict=True) if not any(other < own for other in sets)
    ]
    distinct = {frozenset(clause): clause for clause in reversed(needed)}
    return tuple(_joined(clause) for clause in needed if distinct[frozenset(clause)] is clause)


def split(
    condition: Condition | None, searcher: str, searched: str, is_static: Callable[[Column], bool]
) -> Clauses:
    """The clauses by what they are good for. ``searcher``: the alias whose motes look for those of ``searched``; ``is_static``: whether a
    column never changes on a mote."""
    aliases = searcher, searched
    own_static: dict[str, list[Condition]] = {alias: [] for alias in aliases}
    own: dict[str, list[Condition]] = {alias: [] for alias in aliases}
    primary: list[Condition] = []
    secondary: list[Condition] = []
    pair: list[Condition] = []
    constant: list[Condition] = []
    for clause in normal_form(condition):
        of, static = aliases_of(clause), all(map(is_static, columns_of(clause)))
        if len(of) == 1:
            (own_static if static else own)[next(iter(of))].append(clause)
        elif not of:
            constant.append(clause)
        elif not static:
            pair.append(clause)
        else:
            (primary if _leads(clause, searcher, searched) else secondary).append(clause)
    return Clauses(
        _fixed(own_static), _fixed(own), tuple(primary), tuple(secondary), tuple(pair), tuple(constant)
    )


def _fixed(by_alias: Mapping[str, list[Condition]]) -> dict[str, tuple[Condition, ...]]:
    return {alias: tuple(clauses) for alias, clauses in by_alias.items()}


def _pushed(condition: Condition, *, negated: bool) -> Condition:
    """The same with NOT at comparisons alone. A comparison keeps its NOT: of what is no number, neither it nor its contrary is true."""
    match condition:
        case Not(inner):
            return _pushed(inner, negated=not negated)
        case AllOf(conditions) | AnyOf(conditions):
            parts = tuple(_pushed(one, negated=negated) for one in conditions)
            return AllOf(parts) if isinstance(condition, AllOf) != negated else AnyOf(parts)
    return Not(condition) if negated else condition


def _clauses(condition: Condition) -> list[Literals]:
    match condition:
        case AllOf(conditions):
            return [clause for one in conditions for clause in _clauses(one)]
        case AnyOf(conditions):
            parts = [_clauses(one) for one in conditions]
            if prod(map(len, parts)) > CLAUSES_MAXIMUM:
                return [conditions]
            return [_merged(chosen) for chosen in product(*parts)]
    return [(condition,)]


def _merged(parts: Iterable[Literals]) -> Literals:
    return tuple(dict.fromkeys(literal for part in parts for literal in part))


def _joined(literals: Literals) -> Condition:
    return literals[0] if len(literals) == 1 else AnyOf(literals)


def _leads(clause: Condition, searcher: str, searched: str) -> bool:
    """Whether each of its literals is one that the searcher decides, or that a summary of one attribute of the searched is asked for."""
    literals = clause.conditions if isinstance(clause, AnyOf) else (clause,)
    asked = [literal for literal in literals if aliases_of(literal) != {searcher}]
    return bool(asked) and all(_asks(literal, searched) for literal in asked)


def _asks(literal: Condition, searched: str) -> bool:
    """Whether values of one attribute of the searched, from one to another, are those for which it may be true."""
    match literal:
        case Compared(sign, left, right) if sign != "<>":
            pass
        case Not(Compared(sign, left, right)) if sign != "=":
            pass
        case _:
            return False
    return any(
        _shifted(side, searched) and searched not in aliases_of(other)
        for side, other in ((left, right), (right, left))
    )


def _shifted(operand: Operand, alias: str) -> bool:
    """Whether it is an attribute of the alias, or one and a constant added up."""
    match operand:
        case Column():
            return operand.alias == alias
        case Calculated("+" | "-", Column() as column, Value()) | Calculated(
            "+" | "-", Value(), Column() as column
        ):
            return column.alias == alias
    return False
