"""Users' rows, waiting to be read.

Nothing is copied for a user: :class:`Recent` keeps the last batches once for all, and a reader takes his rows
and makes his columns from them when he comes. Who is further behind than memory reaches is served from the log.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from skerry.execution.deliveries import Delivery, in_order
from skerry.execution.joined import ReadingGoneError

#: What is kept in memory at most: rows of the log, and batches (some minutes at rest).
ROWS_MAXIMUM = 1 << 20
BATCHES_MAXIMUM = 512
#: Behind every row that a log will ever have.
NONE = 1 << 62


class Readable(Protocol):
    """Rows of a batch that several users see in their own ways."""

    def delivery(self, view: Any) -> Delivery | None:
        """A user's rows, if any, as he sees them; ``view`` is of the kind that he has on these."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of the log that has been through: rows ``first`` .. ``end`` - 1, by stream and by window, of each in the order of their
    numbers. ``version``: of the users' index that it was matched against."""

    first: int
    end: int
    parts: Mapping[Hashable, Sequence[Readable]]
    version: int = 0


class Recent:
    """The latest batches, oldest first. Written by one thread, read by any."""

    def __init__(self) -> None:
        #: By their ends.
        self._batches: dict[int, Batch] = {}
        self._end = self._rows = 0
        self._lock = threading.Lock()
        #: Rows up to this one are no longer, or were never, in memory.
        self.floor = NONE
        #: … and these never were.
        self.began = NONE

    def add(self, batch: Batch) -> None:
        """The next batch of the log."""
        with self._lock:
            if batch.first > self._end:
                # Those between are elsewhere.
                self._batches.clear()
                self._rows = 0
            if not self._batches:
                self.floor = self.began = batch.first - 1
            self._batches[batch.end] = batch
            self._end = batch.end
            self._rows += batch.end - batch.first
            while len(self._batches) > 1 and (
                self._rows > ROWS_MAXIMUM or len(self._batches) > BATCHES_MAXIMUM
            ):
                oldest = self._batches.pop(next(iter(self._batches)))
                self._rows -= oldest.end - oldest.first
                self.floor = oldest.end - 1

    def clear(self) -> None:
        """Nothing is in memory any more."""
        with self._lock:
            self._batches.clear()
            self._rows, self.floor, self.began = 0, NONE, NONE

    def behind(self, position: int, known: int, hits: deque[int]) -> tuple[list[Batch], int] | None:
        """Batches with rows behind a position, and the last row of all batches.

        Of those that end behind ``known`` only the ones whose ends are among ``hits``, ascending, which are noted before a
        batch is added. None when rows behind the position are no longer (or not yet) in memory.
        """
        with self._lock:
            if position < self.floor:
                return None
            found: list[Batch] = []
            if position + 1 < known:
                found = [batch for end, batch in self._batches.items() if position + 1 < end <= known]
            # Mostly it is the newest hit that is read: there are hundreds of older ones. While the lock is held, one more may be noted,
            # so that one is met twice.
            late: list[Batch] = []
            least, before = max(position + 1, known), self._end + 1
            for i in range(1, len(hits) + 1):
                end = hits[-i]
                if end <= least:
                    break
                if end < before and end in self._batches:
                    late.append(self._batches[end])
                    before = end
            return found + late[::-1], max(position, self._end - 1)


class FeedBuffer:
    """One user's view of the latest batches, for any number of readers, each with its own position."""

    def __init__(self, recent: Recent, floor: int) -> None:
        self._recent = recent
        #: Why it waits; None: it does not.
        self.trouble: str | None = None
        #: Rows up to this one went through before the user came.
        self.floor = floor
        #: His query on each stream or window that he has, and the version of the users' index that knows what he asks; one value, as
        #: readers are other threads.
        self._seen: tuple[Mapping[Hashable, object], int] = {}, 0
        #: Ends of batches that may have rows of his, of those that end behind ``_known``; of others it is not known.
        self._hits: deque[int] = deque(maxlen=BATCHES_MAXIMUM)
        self._known = floor + 1
        self._wakers: tuple[Callable[[], None], ...] = ()

    @property
    def seen(self) -> tuple[Mapping[Hashable, object], int]:
        """The same, and the version of the users' index from which on batches know of them."""
        return self._seen

    @property
    def views(self) -> Mapping[Hashable, object]:
        """His query on each stream or window that he has."""
        return self._seen[0]

    def see(self, views: Mapping[Hashable, object], done: int, version: int = 0) -> None:
        """Other views, which the users' index has from ``version`` on; :meth:`hit` tells of batches behind row ``done`` what they show."""
        self._known, self._seen = done, (views, version)

    def hit(self, end: int) -> None:
        """The batch with this end, which is still to come to the latest ones, may have rows of his; others have none."""
        self._hits.append(end)

    def busy(self, position: int, through: int) -> bool:
        """Whether reading behind a position takes a while, though the position is near."""
        del position, through
        return False

    def deliveries(
        self, position: int, most: int = ROWS_MAXIMUM, through: int = 0
    ) -> tuple[list[Delivery], int] | None:
        """His rows behind a position as Arrow, and the position reached with them (rows of others included).

        Of many it is the first batches only, with ``most`` rows or the last batch's more.

        None when some of them are no longer (or not yet) in memory, or the next ones were matched before what he asks was known: the log
        has them. ``through``: rows of the log that readers may have.
        """
        del through
        if position < self.floor:
            return None
        behind = self._recent.behind(position, self._known, self._hits)
        if behind is None:
            position = self._past_nothing(position)
            behind = self._recent.behind(position, self._known, self._hits)
        if behind is None:
            return None
        (batches, last), (views, version), count, begin = behind, self._seen, 0, position
        found: list[Delivery] = []
        for batch in batches:
            if batch.version < version:
                return (found, position) if position > begin else None
            try:
                streams = [
                    parts
                    for key, view in views.items()
                    if key in batch.parts and (parts := _behind(batch.parts[key], view, position))
                ]
            except ReadingGoneError:
                return (found, position) if position > begin else None
            parts = [part for of_stream in streams for part in of_stream]
            count += sum(len(part.numbers) for part in parts)
            found += in_order(parts) if len(streams) > 1 else parts
            position = max(position, batch.end - 1)
            if count >= most:
                return found, position
        return found, last

    def _past_nothing(self, position: int) -> int:
        """The position, moved up to what is in memory if it is known that nothing between is his: whoever has few rows is
        seldom woken, and need not search the log for none."""
        # Read first: a batch's hit is noted before it comes to the latest ones.
        floor = self._recent.floor
        if not max(self._known - 1, self._recent.began) <= position < floor:
            return position
        hits = list(self._hits)
        forgotten = len(hits) == BATCHES_MAXIMUM and hits[0] - 1 > position
        if forgotten or any(position < end - 1 <= floor for end in hits):
            return position
        return floor

    def after(self, position: int) -> list[tuple[int, dict[str, Any]]] | None:
        """His rows behind a position; None as with :meth:`deliveries`."""
        found = self.deliveries(position)
        return None if found is None else [row for part in found[0] for row in part.values()]

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """``wake`` is called, by the thread of the proxy, when a batch may have brought rows; it must return
        at once. Returns what ends that."""
        self._wakers = (*self._wakers, wake)

        def end() -> None:
            self._wakers = tuple(other for other in self._wakers if other is not wake)

        return end

    def wake(self) -> None:
        """A batch may have brought rows."""
        for wake in self._wakers:
            wake()


def _behind(parts: Sequence[Readable], view: object, position: int) -> list[Delivery]:
    """A user's rows of one stream or window behind a position."""
    found = [delivery for part in parts if (delivery := part.delivery(view)) is not None]
    return [delivery.behind(position) for delivery in found if delivery.numbers[-1] > position]
