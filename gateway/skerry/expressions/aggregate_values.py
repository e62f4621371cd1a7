"""States of several cells → the values that users see; see :mod:`skerry.expressions.aggregate_states`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from skerry.expressions import aggregate_states, extension_aggregates
from skerry.expressions.aggregate_code import State
from skerry.expressions.build import QUOTIENT_DIGITS
from skerry.expressions.evaluate import Vector
from skerry.expressions.expression import Expr


def final_vector(node: Expr, states: Sequence[State]) -> Vector:
    """A number for each state, scaled by the node's digits; NULL where there is none."""
    if node.final[0] == "extension":
        found = [extension_aggregates.by_number(node.aggregate).evaluate(state) for state in states]
    else:
        found = [_final(node.final, state) for state in states]
    values = np.array([0 if value is None else value for value in found], np.int64)
    return values, np.array([value is not None for value in found], np.bool_)


def _final(final: tuple[str | int, ...], state: State) -> int | None:
    match final:
        case ("variance",):
            quotient = aggregate_states.variance(state)
            return quotient and aggregate_states.rounded(quotient[0] * 10**QUOTIENT_DIGITS, quotient[1])
        case ("stddev",):
            quotient = aggregate_states.variance(state)
            return quotient and aggregate_states.rounded_root(
                quotient[0] * 10 ** (2 * QUOTIENT_DIGITS), quotient[1]
            )
        case ("quantile", int(share), int(power), int(middle)):
            bounds = aggregate_states.quantile_bounds(state, share)
            return bounds and (bounds[0] + bounds[1] + 2 * middle) * 5 * 10**power
        case ("quantile error", int(share), int(power), _):
            bounds = aggregate_states.quantile_bounds(state, share)
            # Readings were rounded to 10**power.
            return bounds and (bounds[1] - bounds[0] + (power > 0)) * 5 * 10**power
        case ("distinct",):
            return aggregate_states.distinct(state)
        case ("distinct error",):
            return round(10 * aggregate_states.distinct_error(state))
    raise ValueError(f"{final} is nothing that a state can be asked for")


def list_type(node: Expr) -> pa.DataType:
    """Arrow's type of a column of lists: counts, or motes with their values."""
    if node.final[0] == "histogram":
        return pa.list_(pa.int64())
    value = pa.float64() if node.digits else pa.int64()
    return pa.list_(pa.struct([("nodeid", pa.int64()), ("value", value)]))


def list_array(node: Expr, states: Sequence[State]) -> pa.Array:
    """A column of lists."""
    match node.final:
        case ("histogram", int(bins)):
            return pa.array([aggregate_states.histogram(state, bins) for state in states], list_type(node))
    scale = 10.0**node.digits if node.digits else 1
    lists = [
        [
            {"nodeid": mote, "value": value / scale if node.digits else value}
            for mote, value in aggregate_states.ranking(state)
        ]
        for state in states
    ]
    return pa.array(lists, list_type(node))
