"""Whether answers of motes that join get up the tree as fast as they come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skerry.joins.placement.estimates import Rates
from skerry.joins.placement.trees import Tree
from skerry.planner.cost.join_prices import RECORD_BYTES, ROOM, answer_bytes
from skerry.planner.model.pairing import Pairing
from skerry.sensors.paired_motes import Pair

#: Frames that a mote gets through to its parent where five joins run beside a query of all readings: 12 to 14 in 10 s, three hops from the
#: root, of a host whose queue was never empty (twelve emulated motes, seed 20040533).
FRAMES_PER_SECOND = 1.2


@dataclass(frozen=True, slots=True)
class Crowded:
    """A mote by which more answers go up in a sample period than it gets through, by estimate."""

    mote: int
    answers: float
    most: int

    def __str__(self) -> str:
        return f"mote {self.mote} would send {self.answers:.0f} answers up in a sample period, and gets some {self.most} through"


def crowded(
    pairing: Pairing,
    period_ms: int,
    hosts: Mapping[int, Sequence[Pair]],
    tree_of: Mapping[int, Tree],
    rates: Rates,
) -> tuple[Crowded, ...]:
    """Motes that send too many answers, the fullest first: those of their own pairs and of hosts below them."""
    sent: dict[int, float] = defaultdict(float)
    for host, pairs in hosts.items():
        answers = sum(rates.of(pair).results for pair in pairs)
        tree = tree_of.get(host)
        # Of a host whose way is not known nothing is said, and a root sends nothing up.
        for mote in (tree.up(host) or ())[:-1] if tree is not None else ():
            sent[mote] += answers
    in_frame = int(ROOM // (RECORD_BYTES + answer_bytes(pairing.width)))
    most = int(FRAMES_PER_SECOND * period_ms / 1000 * in_frame)
    found = [Crowded(mote, answers, most) for mote, answers in sent.items() if answers > most]
    return tuple(sorted(found, key=lambda one: (-one.answers, one.mote)))
