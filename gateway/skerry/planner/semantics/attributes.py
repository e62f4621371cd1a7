"""Which attributes motes sample for a query."""

from __future__ import annotations

from collections.abc import Iterable

from skerry.expressions.expression import Expr, attributes_of
from skerry.planner.model.joined_tables import EPOCH, TIME, JoinedTable, columns_read
from skerry.planner.semantics.draft import Draft
from skerry_protocol.attributes import BY_NAME


def attributes(draft: Draft) -> Draft:
    """All that its expressions read, and what they read of the stream's past."""
    exprs = draft.exprs()
    return draft.planned(
        attributes=past_attributes(exprs, draft.scope.tables).union(*map(attributes_of, exprs))
    )


def past_attributes(exprs: Iterable[Expr], joined: Iterable[JoinedTable]) -> frozenset[int]:
    """Attributes of the past that are read, which motes have to sample from now on."""
    names = (columns_read(exprs, table) for table in joined if table.past_ms is not None)
    return frozenset(BY_NAME[name].number for name in frozenset[str]().union(*names) - {EPOCH, TIME})
