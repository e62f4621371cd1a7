"""What motes are to have of static attributes, and which of it they lack: who joins late is told, who has it is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skerry.catalog.catalog import Mote

#: A report that came so soon after a command, in s of network time, may have been made before.
_UNDER_WAY_S = 60.0


class StaticValues:
    """Values by mote and attribute, None for NULL; what is said for mote None is all motes' that have none of their own. Not locked: its
    owner calls it under his lock."""

    def __init__(self) -> None:
        self._wanted: dict[int | None, dict[int, int | None]] = {}
        #: When each was sent last, UTC in s.
        self._sent: dict[tuple[int, int | None], float] = {}

    def set(self, number: int, mote: int | None, value: int | None) -> None:
        """A mote is to have a value; ``mote`` None: all are, whatever they had."""
        if mote is None:
            self.forget(number)
        self._wanted.setdefault(mote, {})[number] = value

    def sent(self, number: int, mote: int | None, now: float) -> None:
        """It was just sent; ``now``: UTC in s."""
        self._sent[number, mote] = now

    def forget(self, number: int) -> None:
        """An attribute is no more."""
        for wanted in self._wanted.values():
            wanted.pop(number, None)
        self._sent = {place: at for place, at in self._sent.items() if place[0] != number}

    def of(self, mote: Mote) -> dict[int, int]:
        """What a mote has, by the attribute's number: what it is to have, else what it has told."""
        found = {**mote.statics, **self._of(mote.nodeid)}
        return {number: value for number, value in found.items() if value is not None}

    def _of(self, nodeid: int) -> dict[int, int | None]:
        return {**self._wanted.get(None, {}), **self._wanted.get(nodeid, {})}

    def lacking(
        self, motes: Iterable[Mote], now: float, speed: float, absent: Mapping[int, int]
    ) -> list[tuple[int, int, int | None]]:
        """(attribute, mote, value) of what motes that were heard after it was last sent have told otherwise; ``absent``: what those that
        told nothing of an attribute have, by its number. ``now``: UTC in s, of which ``speed`` s of network time are one."""
        found = []
        for mote in motes:
            for number, value in self._of(mote.nodeid).items():
                told = mote.statics.get(number, absent.get(number))
                sent = max(self._sent.get((number, one), 0.0) for one in (mote.nodeid, None))
                wanted = absent.get(number) if value is None else value
                if told != wanted and mote.received > sent and (now - sent) * speed > _UNDER_WAY_S:
                    found.append((number, mote.nodeid, value))
        return found

    def rows(self) -> list[dict[str, Any]]:
        """To be kept; mote -1 is all of them."""
        return [
            {"attribute": number, "mote": -1 if mote is None else mote, "value": value}
            for mote, wanted in self._wanted.items()
            for number, value in wanted.items()
        ]

    def restore(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """What :meth:`rows` said."""
        self._wanted = {}
        for row in rows:
            mote = None if row["mote"] == -1 else row["mote"]
            self._wanted.setdefault(mote, {})[row["attribute"]] = row["value"]
