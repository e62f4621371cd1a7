"""What a hop costs: bytes on the air, or the energy of both its ends with what they listen to in vain."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf

#: Of what a way cannot carry: more than any join costs, and nothing where it goes no hop.
TOO_DEAR = 1e12


@dataclass(frozen=True, slots=True)
class Prices:
    """Of one hop. Rows and answers go up the tree, where they share frames; ``carried`` is a row on a way of its own
    (docs/routing.md). ``open`` and ``way`` are what listening to a link of the tree, or of a way, takes in an epoch, whether something
    comes or not; where bytes are counted, that is free. ``kept``: empty rows of an epoch that keep a way open by which nothing else goes;
    ``cells``: records that a way can carry in one.

    ``frame``: what of ``row`` and ``result`` is of the frame around the record, which has room for ``room`` of them.
    """

    unit: str
    row: float
    carried: float
    result: float
    open: float = 0.0
    way: float = 0.0
    frame: float = 0.0
    room: float = 1.0
    kept: float = 0.0
    cells: float = inf

    def by_way(self, records: float) -> float:
        """A link of a way by which so many records go in an epoch: where rows seldom pass, empty ones keep it open."""
        if records > self.cells:
            return TOO_DEAR
        return (records + self.kept * max(0.0, 1 - records)) * self.carried + self.way

    def up(self, each: float, records: float) -> float:
        """What a record (``row`` or ``result``) costs on a link of the tree by which so many go in an epoch, on average: those of one epoch
        share frames, and how many there are is random (Poisson)."""
        if not self.frame or records <= 0:
            return each
        return each - self.frame * (1 - max((1 - exp(-records)) / records, 1 / self.room))


#: The paper's: each row or answer costs 1 a hop.
HOPS = Prices("hops", 1, 1, 1)
