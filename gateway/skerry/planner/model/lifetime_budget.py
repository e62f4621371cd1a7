"""What LIFETIME allows each mote of its battery."""

from __future__ import annotations

from dataclasses import dataclass

from skerry_protocol.programs import Budget

#: Two AA cells: 2,200 mAh (the paper's) at 3 V, in J.
CAPACITY = 23_760
#: Voltage of fresh ones, and the least at which the SHT21 works (data sheet, May 2010), in mV.
FULL, EMPTY = 3000, 2100


@dataclass(frozen=True, slots=True)
class LifetimeBudget:
    """What a program says of it. ``energy`` in nJ for an epoch, ``idle`` in uW without one; ``most``: epochs from sample to sample at
    most; ``capacity`` of a fresh battery in J."""

    energy: int
    idle: int
    most: int
    capacity: int = CAPACITY

    def encode(self) -> bytes:
        """The code of a BUDGET field."""
        values = {
            "energy": self.energy,
            "idle": self.idle,
            "capacity": self.capacity,
            "full": FULL,
            "empty": EMPTY,
            "most": self.most,
        }
        return bytes(Budget.build(values))
