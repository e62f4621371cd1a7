"""Which motes of a description can never be heard: a slip in a position or in a list of links more often than a wish."""

from __future__ import annotations

import math

from skerry_testbed.description import Network
from skerry_testbed.links import Links

#: A link that brings fewer frames than this is none.
RECEPTION_MINIMUM = 0.01
#: Motes that are named in one line; of more, how many they are.
_NAMED = 8


def unheard(network: Network, links: Links) -> list[str]:
    """The motes that nobody hears, and those whom nobody hears through whom the root would, a line each. Who moves may come near."""
    motes = network.mote
    moving = {fault.mote for fault in network.fault if fault.kind == "move"}
    moves = {i for i, mote in enumerate(motes) if mote.path or mote.id in moving}
    places = range(len(motes))

    def hears(sender: int, receiver: int) -> bool:
        return bool({sender, receiver} & moves) or links.reception(sender, receiver) >= RECEPTION_MINIMUM

    root = next(i for i, mote in enumerate(motes) if mote.root)
    heard, last = {root}, [root]
    while last:
        receiver = last.pop()
        found = [sender for sender in places if sender not in heard and hears(sender, receiver)]
        heard.update(found)
        last += found
    told, cut_off = [], []
    for i in places:
        others = [other for other in places if other != i]
        if i == root or not others:
            continue
        if not any(hears(i, other) for other in others):
            told.append(f"mote {motes[i].id}: nobody can hear it{_nearest(network, i, others)}")
        elif i not in heard:
            cut_off.append(motes[i].id)
    if cut_off:
        named = ", ".join(map(str, cut_off[:_NAMED]))
        more = f" and {len(cut_off) - _NAMED} more" if len(cut_off) > _NAMED else ""
        what = "mote" if len(cut_off) == 1 else "motes"
        told.append(f"{what} {named}{more}: no way leads from there to the root, whoever passes it on")
    return told


def _nearest(network: Network, place: int, others: list[int]) -> str:
    """How far the next mote is, where places say anything."""
    if network.radio.model == "matrix":
        return ": radio.links has none from it"
    mote, motes = network.mote[place], network.mote
    distance, nearest = min(
        (math.hypot(motes[i].x - mote.x, motes[i].y - mote.y), motes[i].id) for i in others
    )
    reach = f", and radio.range_m is {network.radio.range_m:g} m" if network.radio.model == "disc" else ""
    return f": mote {nearest} is the nearest, {distance:.0f} m away{reach}"
