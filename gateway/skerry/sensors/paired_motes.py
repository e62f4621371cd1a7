"""Which motes are pairs of a join that motes do, by what never changes on them and as far as the gateway knows that."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skerry.expressions.evaluate import Evaluator, Vector
from skerry.expressions.expression import Expr
from skerry.planner.model.pairing import Pairing, keys_of
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import BY_NUMBER
from skerry_protocol.bytecode import Op, StoredField

Pair = tuple[int, int]
#: Of more motes it is not tried who is a pair.
MOTES_MAXIMUM = 200


def pairs_of(pairing: Pairing, motes: Mapping[int, Mapping[str, int]]) -> list[Pair]:
    """Motes that are pairs by what never changes on them. Raises QueryError: there are too many."""
    numbers = sorted(motes)
    if len(numbers) > MOTES_MAXIMUM:
        hint = "leave out where it is joined, as the gateway joins"
        raise QueryError(f"{len(numbers)} motes are too many to be tried as pairs", hint)
    sides = np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))
    leaves = {node for part in pairing.statics for node in part.walk() if node.op is Op.STORED}
    columns = {
        leaf: _vector(leaf, pairing, sides[(leaf.operand or 0) >> 4].tolist(), motes) for leaf in leaves
    }
    evaluate = Evaluator(columns, np.zeros(len(sides[0]), np.int64))
    true = np.ones(len(sides[0]), bool)
    for part in pairing.statics:
        true &= evaluate.truth(part, 1)
    return [(int(s), int(t)) for s, t in zip(sides[0][true], sides[1][true], strict=True)]


def passing_of(
    pairing: Pairing, motes: Mapping[int, Mapping[str, int]]
) -> tuple[frozenset[int], frozenset[int]]:
    """Motes that may be s, and t, by what never changes on them alone."""
    numbers = sorted(motes)
    found = []
    for side in (0, 1):
        true = np.ones(len(numbers), bool)
        for part in pairing.statics:
            leaves = {node for node in part.walk() if node.op is Op.STORED}
            if {(leaf.operand or 0) >> 4 for leaf in leaves} == {side}:
                columns = {leaf: _vector(leaf, pairing, numbers, motes) for leaf in leaves}
                true &= Evaluator(columns, np.zeros(len(numbers), np.int64)).truth(part, 1)
        found.append(frozenset(number for number, passes in zip(numbers, true, strict=True) if passes))
    return found[0], found[1]


def key_of(pairing: Pairing, pair: Pair, motes: Mapping[int, Mapping[str, int]]) -> tuple[int, ...]:
    """What a pair's motes have in common by its condition, as s has it."""
    keys = keys_of(pairing.statics)
    leaves = {node for key in keys for node in key.walk() if node.op is Op.STORED}
    columns = {leaf: _vector(leaf, pairing, [pair[0]], motes) for leaf in leaves}
    evaluate = Evaluator(columns, np.zeros(1, np.int64))
    return tuple(int(evaluate(key, 1)[0][0]) for key in keys)


def _vector(leaf: Expr, pairing: Pairing, side: list[int], motes: Mapping[int, Mapping[str, int]]) -> Vector:
    field = (leaf.operand or 0) & 15
    name = "nodeid" if field == StoredField.NUMBER else BY_NUMBER[pairing.fields[field]].name
    values = [motes[mote].get(name) for mote in side]
    return np.array([value or 0 for value in values], np.int64), np.array(
        [value is not None for value in values], bool
    )
