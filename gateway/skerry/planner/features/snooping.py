"""Which aggregates motes may leave unsent when they have heard a state that makes theirs superfluous.

Those of which each answer is one of the readings (exemplary) and that further readings move in one direction only (monotonic): TinyDB 2005,
table I and section 6.3.2. The firmware side is ``firmware/net/transport/snoop.c``.
"""

from __future__ import annotations

from collections.abc import Sequence

from skerry.expressions import extension_aggregates
from skerry.planner.features import approximate
from skerry.planner.model.plans import QueryPlan
from skerry_protocol.codes import Aggregate

_BUILT_IN = frozenset({Aggregate.MIN, Aggregate.MAX, Aggregate.TOP, Aggregate.BOTTOM})
_NEEDED = {"EXEMPLARY", "MONOTONIC"}


def _may_be_withheld(kind: Aggregate) -> bool:
    if kind in _BUILT_IN:
        return True
    return kind.name.startswith("OUTSIDE") and set(extension_aggregates.by_number(kind).properties) >= _NEEDED


def snoops(plans: Sequence[QueryPlan]) -> bool:
    """Whether motes may withhold states of the query that serves these plans: all aggregates in a record allow it, or are asked for
    within a tolerance (:mod:`skerry.planner.features.approximate`)."""
    if approximate.within_of_all(plans) is not None:
        return True
    wanted = [node.aggregate for plan in plans for node in plan.aggregates()]
    return bool(wanted) and all(map(_may_be_withheld, wanted))
