"""What an expression over sensors is."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.planner.model.source_plans import Term


@dataclass(frozen=True, slots=True)
class Found:
    """A term and its unit, as far as it has one."""

    term: Term
    unit: str = ""
