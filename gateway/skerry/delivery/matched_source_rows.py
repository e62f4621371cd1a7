"""Rows of a stream that is no motes', which executors have matched, as users see them: made when their readers come."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.execution.deliveries import Delivery
from skerry.execution.matched import Matched
from skerry.execution.source_matching import delivered, given_back
from skerry.execution.source_rows import SourceRows
from skerry.planner.model.source_plans import SourcePlan


@dataclass(frozen=True, slots=True, eq=False)
class SourceUser:
    """A user's query on such a stream: by which entry of the users' index he gets rows, and how he sees them."""

    entry: int
    plan: SourcePlan


class MatchedSourceRows:
    """Rows of one stream in a part of a batch. Read by any thread."""

    def __init__(self, found: Matched) -> None:
        self._found = found
        self._rows: SourceRows | None = None

    def delivery(self, view: SourceUser) -> Delivery | None:
        """A user's rows, if any."""
        places = self._found.of(view.entry)
        if not len(places):
            return None
        if self._rows is None:
            self._rows = given_back(self._found)
        return delivered(view.plan, self._rows, places)
