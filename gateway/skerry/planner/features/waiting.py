"""WAIT: for how long an aggregate waits for what belongs to an epoch, or to a window, and is under way."""

from __future__ import annotations

from skerry.planner.model.waits import WAIT_MAXIMUM_MS
from skerry.planner.semantics.draft import Draft
from skerry.sql.errors import QueryError
from skerry.sql.units import duration_text


def waiting(draft: Draft) -> Draft:
    """What WAIT says. Raises QueryError where nothing is waited for."""
    asked, plan = draft.select.wait, draft.plan
    if asked is None:
        return draft
    if not plan.aggregate and plan.window is None:
        hint = "a mote's row comes when it is there: leave WAIT out"
        raise QueryError("WAIT has no meaning without an aggregate over several motes", hint, asked.span)
    if plan.history is not None and plan.history.only:
        raise QueryError("HISTORY … ONLY waits for nothing", "leave WAIT out", asked.span)
    milliseconds = asked.duration.milliseconds
    if milliseconds > WAIT_MAXIMUM_MS:
        hint = (
            f"the longest is {duration_text(WAIT_MAXIMUM_MS)}: select revision to learn of what comes later"
        )
        raise QueryError(f"WAIT {duration_text(milliseconds)} is too long", hint, asked.duration.span)
    if milliseconds % 1:
        raise QueryError(
            f"WAIT {duration_text(milliseconds)} is too fine", "write whole milliseconds", asked.duration.span
        )
    return draft.planned(wait_ms=int(milliseconds))
