"""Which motes are pairs of a join of motes with motes, by what never changes on them and as far as the gateway knows that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skerry.expressions.build import attribute
from skerry.expressions.evaluate import Evaluator, Mask, Values
from skerry.expressions.expression import attributes_of, conjuncts
from skerry.joins.conditions import Column, columns_of, decode, evaluate
from skerry.joins.normal_form import normal_form
from skerry.planner.model import source_plans as plans
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.source_plans import JoinedTable, JoinPlan
from skerry.planner.planner import plan_query
from skerry.sensors.evaluate import arrow_type
from skerry.sensors.evaluate import evaluate as evaluate_term
from skerry.sensors.join_conditions import calculated
from skerry_protocol.attributes import BY_NAME, BY_NUMBER

#: By mote, of its static attributes that have a value, the motes' integers.
Known = Mapping[int, Mapping[str, int]]
#: What motes can report that never changes on them.
STATIC = frozenset(name for name, attribute in BY_NAME.items() if attribute.constant)
#: Of more motes of either alias it is not reckoned who is a pair.
TRIED_MAXIMUM = 250_000


@dataclass(frozen=True, slots=True)
class MotePairs:
    """Motes that pass their alias's own static conditions, by alias; pairs of two motes that may have rows which meet; how many clauses of
    the condition between both are static."""

    s: tuple[int, ...]
    t: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    clauses: int


def aliases(join: JoinPlan) -> tuple[JoinedTable, JoinedTable] | None:
    """The two of a join of motes with motes; None: it is another one."""
    match join.tables:
        case (one, other) if one.motes is not None and other.motes is not None:
            return one, other
    return None


def mote_pairs(join: JoinPlan, known: Known) -> MotePairs | None:
    """Of such a join; None: there are too many motes to try."""
    both = aliases(join)
    assert both is not None
    motes = sorted(known)
    s, t = (_own(one.motes or "", motes, known) for one in both)
    if len(s) * len(t) > TRIED_MAXIMUM:
        return None
    # Each s with each t, one below the other.
    sides = {
        both[0].alias: np.repeat(np.array(s, int), len(t)),
        both[1].alias: np.tile(np.array(t, int), len(s)),
    }
    spec = join.executed()
    kinds = {alias: spec["streams"][stream]["fields"] for alias, stream in spec["aliases"].items()}

    def column(alias: str, name: str) -> pa.Array:
        return _column(name, kinds[alias][name], sides[alias], known)

    length, true = len(s) * len(t), pa.repeat(True, len(s) * len(t))
    clauses = [
        clause
        for clause in normal_form(decode(spec["where"].encode()))
        if all(map(_is_static, columns_of(clause)))
    ]
    for clause in clauses:
        true = pc.and_(true, pc.fill_null(evaluate(clause, column, length), False))
    places: list[int] = np.flatnonzero(true.to_numpy(zero_copy_only=False)).tolist()
    one, other = (side.tolist() for side in sides.values())
    pairs = tuple((one[place], other[place]) for place in places if one[place] != other[place])
    return MotePairs(s, t, pairs, len(clauses))


def window_rows(join: JoinPlan, period_ms: float) -> float:
    """w: rows of a mote that a window holds."""
    _, _, us, rows = join.executed()["windows"][0]
    return float(rows) if rows is not None else us / 1000 / period_ms + 1


def _own(question: str, motes: list[int], known: Known) -> tuple[int, ...]:
    """Motes that pass what of a question's condition is static."""
    plan = plan_query(question)
    assert isinstance(plan, QueryPlan)
    columns = {attribute(BY_NAME[name]): _vector(name, motes, known) for name in sorted(STATIC)}
    evaluator = Evaluator(columns, np.zeros(len(motes), np.int64))
    passing = np.ones(len(motes), bool)
    for part in conjuncts(plan.where):
        numbers = attributes_of(part)
        if numbers and all(BY_NUMBER[number].name in STATIC for number in numbers):
            passing &= evaluator.truth(part, 1)
    return tuple(mote for mote, passes in zip(motes, passing, strict=True) if passes)


def _vector(name: str, motes: list[int], known: Known) -> tuple[Values, Mask]:
    values = [known[mote].get(name) for mote in motes]
    return (
        np.array([value or 0 for value in values], np.int64),
        np.array([value is not None for value in values], bool),
    )


def _is_static(column: Column) -> bool:
    made = calculated(column.name)
    names = made[1].columns() if made is not None else [column.name]
    return all(_attribute(str(name)) in STATIC for name in names)


def _column(name: str, kind: str, motes: NDArray[np.int64], known: Known) -> pa.Array:
    """Of each of these motes."""
    made = calculated(name)
    if made is not None:
        columns = {str(one): _column(str(one), _kind(str(one)), motes, known) for one in made[1].columns()}
        return evaluate_term(made[1], columns, len(motes))
    entry = BY_NAME[_attribute(name)]
    values, there = _vector(entry.name, motes.tolist(), known)
    scaled = values / 10**entry.digits if entry.digits else values
    return pa.array(scaled, mask=~there).cast(arrow_type(kind))


def _kind(name: str) -> str:
    return plans.DOUBLE if BY_NAME[_attribute(name)].digits else plans.INT


def _attribute(column: str) -> str:
    """Of a column of motes' batches."""
    return column.rpartition(".")[2]
