"""A mote and the gateway give the same values for the same typed expression."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware.tests.query.mote import Mote
from skerry.expressions import build
from skerry.expressions.assembler import assemble, obstacle
from skerry.expressions.build import MagnitudeError
from skerry.expressions.evaluate import Evaluator
from skerry.expressions.expression import Expr
from skerry_protocol.attributes import ATTRIBUTES
from skerry_protocol.bytecode import Op

#: The gateway takes epochs from sample times: there the two differ by intent.
LEAVES = [build.attribute(entry) for entry in ATTRIBUTES if entry.name != "epoch"]
WIDTH = len(ATTRIBUTES)
ROWS = 16

constants = st.builds(build.number, st.integers(-100_000, 100_000), st.integers(0, 3))
operators = st.sampled_from([build.add, build.subtract, build.multiply, build.divide, build.modulo])


def _apply(operator: Callable[..., Expr], *arguments: Expr) -> Expr:
    """The operator's expression; where it may leave 64 bits, its first argument."""
    try:
        return operator(*arguments)
    except MagnitudeError:
        return arguments[0]


numbers = st.recursive(
    st.sampled_from(LEAVES) | constants,
    lambda inner: (
        st.builds(_apply, operators, inner, inner) | st.builds(_apply, st.just(build.negate), inner)
    ),
    max_leaves=5,
)
comparisons = st.builds(
    lambda op, a, b: _apply(lambda x, y: build.compare(op, x, y), a, b),
    st.sampled_from([Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE]),
    numbers,
    numbers,
)
conditions = st.recursive(
    comparisons | numbers.map(build.is_null),
    lambda inner: (
        st.builds(build.logical, st.sampled_from([Op.AND, Op.OR]), inner, inner) | inner.map(build.invert)
    ),
    max_leaves=4,
)


def _readings(leaf: Expr) -> st.SearchStrategy[list[int | None]]:
    extremes = st.sampled_from([leaf.low, leaf.high, max(leaf.low, 0), min(leaf.high, 1)])
    return st.lists(extremes | st.integers(leaf.low, leaf.high) | st.none(), min_size=ROWS, max_size=ROWS)


columns = st.fixed_dictionaries({leaf: _readings(leaf) for leaf in LEAVES})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=300)
@given(expression=(numbers | conditions).filter(lambda e: obstacle(e) is None), data=columns)
def test_mote_and_gateway_agree(
    query_library: Path, expression: Expr, data: dict[Expr, list[int | None]]
) -> None:
    """Every expression the planner would give to motes, over readings within the attributes' bounds."""
    rows: list[list[int | None]] = [[None] * WIDTH for _ in range(ROWS)]
    vectors = {}
    for leaf, readings in data.items():
        assert leaf.operand is not None
        for row, reading in zip(rows, readings, strict=True):
            row[leaf.operand] = reading
        vectors[leaf] = (
            np.array([reading or 0 for reading in readings], np.int64),
            np.array([reading is not None for reading in readings]),
        )
    values, known = Evaluator(vectors, np.zeros(ROWS, np.int64))(expression, 1000)
    expected = [int(value) if flag else None for value, flag in zip(values, known, strict=True)]
    assert Mote(query_library).evaluate(assemble(expression), rows) == expected
