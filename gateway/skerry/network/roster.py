"""Which motes have been heard of lately, through which root."""

from __future__ import annotations

from collections.abc import Collection, Iterable

#: A mote of which nothing has come for so long, in s of network time, is not waited for: twice as long as motes go without a report.
LATELY_S = 1200.0


class Roster:
    """Of all networks. Motes move: each is with the root that it was last heard through. Times are network times of a session, in s."""

    def __init__(self) -> None:
        self._heard: dict[int, tuple[int, float]] = {}

    def hear(self, motes: Iterable[int], session: int, now: float) -> None:
        """Something has come of these motes."""
        self._heard.update(dict.fromkeys(motes, (session, now)))

    def begin(self, session: int, former: int, now: float) -> None:
        """A session takes the place of another one: its motes are to come back, and are waited for as if they had been heard now."""
        for mote, (own, _) in list(self._heard.items()):
            if own == former:
                self._heard[mote] = session, now

    def assume(self, motes: Iterable[int], session: int, now: float) -> None:
        """What was known before the gateway's last start, where nothing has been heard since."""
        for mote in motes:
            self._heard.setdefault(mote, (session, now))

    def heard(self, mote: int, session: int) -> float | None:
        """When something came of a mote last; None: nothing has in this session."""
        own, at = self._heard.get(mote, (None, 0.0))
        return at if own == session else None

    def count(self, session: int, now: float, without: Collection[int]) -> int:
        """How many have been heard of lately in a session, without some."""
        return sum(
            own == session and now - at <= LATELY_S and mote not in without
            for mote, (own, at) in self._heard.items()
        )
