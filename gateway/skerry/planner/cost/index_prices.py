"""What questions and inserts of an index take of the motes' batteries: their bytes on the air, by the frames of records on ways."""

from __future__ import annotations

from skerry.index.prices import Format
from skerry.planner.cost import radio
from skerry.planner.cost.join_prices import WAY_FRAME_BYTES
from skerry_protocol.packets import AggregateState

#: A name is mote, session and number; a question has what it is of, whose it is, and a range of 4 bytes for each of four attributes.
FORMAT = Format(
    header=WAY_FRAME_BYTES + radio.ACK_BYTES,
    payload=127 + 6 - WAY_FRAME_BYTES,
    query=20,
    name=8,
    value=2,
    state=AggregateState.sizeof(),
)


def energy(sent: float) -> float:
    """J that both ends of each hop take for so many bytes, acknowledgements among them; what motes listen for in vain is not in it."""
    return radio.both_ends(radio.seconds_of(sent))
