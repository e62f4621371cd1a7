"""What motes say of why their firmware ended its last run, in words."""

from __future__ import annotations

from skerry_protocol.codes import Invariant

_TEXTS = {
    Invariant.MAIN_LOOP: "its main loop hung",
    Invariant.CPU_FAULT: "its processor could not go on",
    Invariant.EVENTS: "its list of events was broken",
    Invariant.TIMERS: "its list of timers was broken",
    Invariant.QUEUE: "its queue of records was broken",
    Invariant.QUERY_MEMORY: "the memory of its queries was broken",
    Invariant.RADIO_HELD: "its count of received frames was broken",
}


def invariant_name(number: int) -> str | None:
    """As in a mote's description; None: none was broken."""
    if not number:
        return None
    try:
        return Invariant(number).name
    except ValueError:
        return f"invariant {number}"


def invariant_text(name: str) -> str:
    """What was wrong with a mote; ``name``: by :func:`invariant_name`."""
    invariant = Invariant.__members__.get(name)
    return (
        f"{name}, which this gateway does not know" if invariant is None else f"{_TEXTS[invariant]} ({name})"
    )
