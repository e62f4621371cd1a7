"""What a hop costs: bytes on the air, or the energy of both its ends with what they listen to in vain."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp


@dataclass(frozen=True, slots=True)
class Prices:
    """Of one hop. Rows and answers go up the tree, where they share frames; ``carried`` is a row on a way of its own
    (docs/routing.md). ``open`` and ``way`` are what listening to a link of the tree, or of a way, takes in an epoch, ``silent`` times as
    much where nothing comes up the tree; where bytes are counted, that is free.

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
    silent: float = 1.0

    def listened(self, records: float) -> float:
        """To a link of the tree by which so many records go in an epoch, on average."""
        return self.open * (1 + (self.silent - 1) * exp(-records))

    def up(self, each: float, records: float) -> float:
        """What a record (``row`` or ``result``) costs on a link of the tree by which so many go in an epoch, on average: those of one epoch
        share frames, and how many there are is random (Poisson)."""
        if not self.frame or records <= 0:
            return each
        return each - self.frame * (1 - max((1 - exp(-records)) / records, 1 / self.room))


#: The paper's: each row or answer costs 1 a hop.
HOPS = Prices("hops", 1, 1, 1)
