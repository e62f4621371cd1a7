"""Whether the tables that a query over streams names can be joined with, as they are now."""

from __future__ import annotations

from skerry.planner.model.table_lookups import Lookups
from skerry.sensors.looking_up import misfit
from skerry.tables.columns import TableError
from skerry.tables.journal import Tables


def trouble_of(lookups: Lookups, tables: Tables) -> str | None:
    """What is the matter with the first that cannot, in one line; None: all can."""
    for one in lookups.tables:
        try:
            why = misfit(one, tables.get(one.reading))
        except TableError as error:
            return str(error)
        if why is not None:
            return f"table {one.shown}: {why}"
    return None
