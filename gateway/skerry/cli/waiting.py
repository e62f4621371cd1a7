"""Why no row comes, told to whoever waits for one."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from skerry.client.errors import GatewayError
from skerry.client.rows import Rows

#: How often it is asked, in s.
LOOK_S = 2.0
#: Motes that are named; of more, how many they are.
_NAMED = 5
_REFUSAL = re.compile(r"mote (\d+) (.*)")


def reasons(query: dict[str, Any]) -> list[str]:
    """A line each, of a query as the gateway describes it."""
    told = [f"waits: {query['paused']}"] if query["paused"] else []
    by_reason: dict[str, list[str]] = {}
    for sentence in query["refused"]:
        found = _REFUSAL.fullmatch(sentence)
        if found is not None:
            by_reason.setdefault(found[2], []).append(found[1])
    for why, motes in by_reason.items():
        named = ", ".join(motes[:_NAMED]) + (f" and {len(motes) - _NAMED} more" if motes[_NAMED:] else "")
        told.append(f"refused by mote{'s' if len(motes) > 1 else ''} {named}, which {why}")
    answered, motes = query["answered"], query["motes"]
    if by_reason and motes == 0:
        told.append("no mote runs it: no row will come")
    elif query["waits_for"] and not answered:
        told.append(f"waits for event {' or '.join(query['waits_for'])}")
    elif motes or answered:
        of = "" if motes is None else f" of {max(motes, answered)}"
        one = (motes if motes is not None else answered) == 1
        told.append(f"{answered}{of} {'mote has' if one else 'motes have'} answered")
    return told


@contextmanager
def telling(answer: Rows) -> Iterator[threading.Event]:
    """While rows are waited for, what is the matter is told on standard error, each once; until the event is set: a row has come."""
    over = threading.Event()
    threading.Thread(target=_tell, args=(answer, over), name="waiting", daemon=True).start()
    try:
        yield over
    finally:
        over.set()


def _tell(answer: Rows, over: threading.Event) -> None:
    told: set[str] = set()
    while not over.wait(LOOK_S):
        try:
            lines = reasons(answer.status())
        except GatewayError:
            # Who reads the rows tells of it, or goes on when it is back.
            continue
        for line in lines:
            if line not in told and not over.is_set():
                told.add(line)
                print(line, file=sys.stderr, flush=True)
