"""Where a query says that motes' rows are to be joined, ``JOIN AT ANCESTOR`` and its like, and by what that is chosen where it does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from lark import Token, Tree

from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.clause_builder import duration_of
from skerry.sql.errors import QueryError
from skerry.sql.nodes import span_of, token_of, tree_of
from skerry.sql.quoting import unquoted

NAIVE = "NAIVE"
#: What two rows that meet are called in ESTIMATE.
PAIR = "pair"
#: What a join's cost is counted in, the usual one first.
ENERGY, BYTES = "energy", "bytes"
_ALONE = "write FROM sensors AS s, sensors AS t WINDOW 3 ROWS, or leave it out"


@dataclass(frozen=True, slots=True)
class JoinHints:
    """``naive``: all rows are to go to the gateway; ``s``, ``t``, ``pair``: shares of a mote's rows that pass its own conditions, and of
    rows that meet that match, from 0 to 1; ``cost``: what is counted; ``within``: from a sample until its answers are there;
    ``learning``: OFF or ON; None: nothing is said."""

    naive: Span | None = None
    s: float = 1.0
    t: float = 1.0
    pair: float = 1.0
    cost: str = ENERGY
    within: ast.Duration | None = None
    learning: bool | None = None


def with_strategy(select: ast.Select, clauses: Mapping[str, Tree[Token]]) -> ast.Select:
    """The query with its strategy, if motes are to follow one, and what else is said of its join. Raises QueryError for one without a
    join."""
    said = {name: clauses[name] for name in _SAID if name in clauses}
    if not said:
        return select
    two = [table.name.name.lower() for table in select.tables] == ["sensors", "sensors"]
    for name, tree in said.items():
        if not two:
            words = " ".join(token_of(tree.children[0]).upper().split())
            words = words if name in ("strategy", "deliver") else words.split()[0]
            raise QueryError(f"{words} is for two motes whose rows meet", _ALONE, span_of(tree))
    strategy, hints = None, JoinHints()
    if "strategy" in said:
        word = token_of(said["strategy"].children[0])
        strategy = ast.JoinStrategy(" ".join(word.upper().split()[1:]), span_of(word))
        if strategy.words == NAIVE:
            strategy, hints = None, replace(hints, naive=span_of(word))
    if "estimate" in said:
        shares = _shares(said["estimate"], [table.called for table in select.tables])
        hints = replace(hints, s=shares["s"], t=shares["t"], pair=shares["pair"])
    if "cost" in said:
        hints = replace(hints, cost=token_of(said["cost"].children[0]).split()[1].lower())
    if "learning" in said:
        word = token_of(said["learning"].children[0])
        hints = replace(hints, learning=word.lower().endswith("on"))
        if hints.learning and hints.naive is not None:
            # Motes send all rows, and these meet as they come in, so that it can be counted how often they match.
            strategy, hints = ast.JoinStrategy(NAIVE, hints.naive), replace(hints, naive=None)
    if "deliver" in said:
        within = duration_of(tree_of(said["deliver"].children[1]), "DELIVER WITHIN")
        if hints.naive is not None:
            hint = "leave it out, or have motes join, as by JOIN AT BASE"
            raise QueryError(
                "no time is promised for rows that the gateway joins", hint, span_of(said["deliver"])
            )
        hints = replace(hints, within=within)
    return replace(select, strategy=strategy, hints=hints)


_SAID = ("strategy", "estimate", "cost", "learning", "deliver")


def _shares(tree: Tree[Token], aliases: list[str]) -> dict[str, float]:
    """By role, of ESTIMATE; 1 of one that it does not name."""
    roles = {PAIR: "pair", aliases[0]: "s", aliases[1]: "t"}
    found: dict[str, float] = {}
    for child in tree.children[1:]:
        name, number, _ = map(token_of, tree_of(child).children)
        span = span_of(tree_of(child))
        called = (unquoted(name) if name.startswith('"') else str(name)).lower()
        role = roles.get(called)
        if role is None:
            hint = f"rows are of {aliases[0]} or {aliases[1]}, and {PAIR} is two that meet"
            raise QueryError(f"ESTIMATE of '{name}'", hint, span)
        if role in found:
            raise QueryError(f"ESTIMATE says {called} twice", "leave one of them out", span)
        share = Decimal(str(number)) / 100
        if not 0 <= share <= 1:
            hint = "a share is from 0 % to 100 %"
            raise QueryError(f"ESTIMATE {called} {number} %", hint, span)
        found[role] = float(share)
    return dict.fromkeys(roles.values(), 1.0) | found
