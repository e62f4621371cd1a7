"""Joins of streams a row at a time, as STEAM 2002, 6.2 has them: NLW, HW and MW, and the two joins that it compares them with.

All five are written alike: a row of one stream is extended by rows of the others in turn, each in the period in which it is near enough
to all before it. Each row that is looked at is a comparison, whether for its key, its time or that it is too old. Rows come in the order
of their times. The equality is over all streams, so that each row is compared with the one that came.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict, deque

#: After so many rows the adapted ripple join and XJoin remove what no window holds any more (6.2.4).
CLEARED_EVERY = 10_000
#: After so many rows HW looks at buckets that may have old rows, whether or not anybody has probed them.
UPKEEP_EVERY = 100


class RowJoin(ABC):
    """Of so many streams, within a window."""

    def __init__(self, streams: int, window: int) -> None:
        self.streams, self.window = streams, window
        self.comparisons = self.answers = 0

    @abstractmethod
    def offer(self, stream: int, time: int, key: str) -> None:
        """The next row; counts what it gives."""


class _Buffered(RowJoin):
    """With a buffer for each stream, in the order in which rows came."""

    def __init__(self, streams: int, window: int) -> None:
        super().__init__(streams, window)
        self.buffers: list[deque[tuple[int, str]]] = [deque() for _ in range(streams)]


class NestedLoopWindowJoin(_Buffered):
    """NLW: looks at rows from the newest back to the first that is outside the period; old rows leave as their buffer is looked at."""

    def offer(self, stream: int, time: int, key: str) -> None:
        """Its period begins a window before."""
        oldest = time - self.window
        for buffer in self.buffers:
            while buffer and buffer[0][0] < oldest:
                self.comparisons += 1
                buffer.popleft()
        self._extend(stream, 1, key, oldest, time + self.window)
        self.buffers[stream].append((time, key))

    def _extend(self, stream: int, level: int, key: str, low: int, high: int) -> None:
        if level == self.streams:
            self.answers += 1
            return
        looked, window = 0, self.window
        for time, own in reversed(self.buffers[(stream + level) % self.streams]):
            looked += 1
            if time < low:
                break
            if own == key and time <= high:
                self._extend(stream, level + 1, key, max(low, time - window), min(high, time + window))
        self.comparisons += looked


class RippleJoin(_Buffered):
    """The ripple join with windows: looks at all rows of a buffer."""

    def __init__(self, streams: int, window: int) -> None:
        super().__init__(streams, window)
        self._rows = 0

    def offer(self, stream: int, time: int, key: str) -> None:
        """Old rows are among those that are looked at, until buffers are cleared."""
        self._rows += 1
        if self._rows % CLEARED_EVERY == 0:
            oldest = time - self.window
            for place, buffer in enumerate(self.buffers):
                self.comparisons += len(buffer)
                self.buffers[place] = deque(row for row in buffer if row[0] >= oldest)
        self._extend(stream, 1, key, time - self.window, time + self.window)
        self.buffers[stream].append((time, key))

    def _extend(self, stream: int, level: int, key: str, low: int, high: int) -> None:
        if level == self.streams:
            self.answers += 1
            return
        buffer, window = self.buffers[(stream + level) % self.streams], self.window
        self.comparisons += len(buffer)
        for time, own in buffer:
            if own == key and low <= time <= high:
                self._extend(stream, level + 1, key, max(low, time - window), min(high, time + window))


class MergeWindowJoin(RowJoin):
    """MW: rows in the one order of their times, so that a period ends with the newest row; where it begins only moves on."""

    def __init__(self, streams: int, window: int) -> None:
        super().__init__(streams, window)
        self._times: list[list[int]] = [[] for _ in range(streams)]
        self._keys: list[list[str]] = [[] for _ in range(streams)]
        self._begin = [0] * streams

    def offer(self, stream: int, time: int, key: str) -> None:
        """All rows from each stream's beginning on are in its period."""
        oldest = time - self.window
        for place, times in enumerate(self._times):
            begin = self._begin[place]
            while begin < len(times) and times[begin] < oldest:
                self.comparisons += 1
                begin += 1
            if begin > CLEARED_EVERY:
                del times[:begin], self._keys[place][:begin]
                begin = 0
            self._begin[place] = begin
        self._extend(stream, 1, key)
        self._times[stream].append(time)
        self._keys[stream].append(key)

    def _extend(self, stream: int, level: int, key: str) -> None:
        if level == self.streams:
            self.answers += 1
            return
        place = (stream + level) % self.streams
        keys = self._keys[place]
        end = len(keys)
        self.comparisons += end - self._begin[place]
        for at in range(self._begin[place], end):
            if keys[at] == key:
                self._extend(stream, level + 1, key)


class HashWindowJoin(RowJoin):
    """HW: buckets by key. Those that are probed lose their old rows; those that are probed rarely are looked at in turn."""

    def __init__(self, streams: int, window: int) -> None:
        super().__init__(streams, window)
        #: By key the times of its rows; the bucket comes first that upkeep looks at next. A plain dict finds its first key by going past
        #: all that were removed before it.
        self._buckets: list[OrderedDict[str, deque[int]]] = [OrderedDict() for _ in range(streams)]
        self._rows = 0

    def offer(self, stream: int, time: int, key: str) -> None:
        """Probes a bucket of each other stream."""
        self._rows += 1
        if self._rows % UPKEEP_EVERY == 0:
            self._upkeep(time - self.window)
        self._extend(stream, 1, key, time - self.window, time + self.window)
        bucket = self._buckets[stream].get(key)
        if bucket is None:
            bucket = self._buckets[stream][key] = deque()
        bucket.append(time)

    def _extend(self, stream: int, level: int, key: str, low: int, high: int) -> None:
        if level == self.streams:
            self.answers += 1
            return
        bucket = self._buckets[(stream + level) % self.streams].get(key)
        if not bucket:
            return
        looked, window = 0, self.window
        for time in reversed(bucket):
            looked += 1
            if time < low:
                break
            if time <= high:
                self._extend(stream, level + 1, key, max(low, time - window), min(high, time + window))
        if level == 1:
            while bucket and bucket[0] < low:
                looked += 1
                bucket.popleft()
        self.comparisons += looked

    def _upkeep(self, oldest: int) -> None:
        """Buckets are in the order in which they were made or looked at here: the first that has no old row ends it."""
        for buckets in self._buckets:
            for _ in range(len(buckets)):
                key, bucket = next(iter(buckets.items()))
                self.comparisons += 1
                if bucket and bucket[0] >= oldest:
                    break
                del buckets[key]
                if len(bucket) > 1:
                    # The first one has been looked at.
                    bucket.popleft()
                    self.comparisons += 1
                    while bucket and bucket[0] < oldest:
                        bucket.popleft()
                        self.comparisons += 1
                    if bucket:
                        buckets[key] = bucket


class XJoin(RowJoin):
    """XJoin with windows: buckets by key, of which old rows are part until all are cleared."""

    def __init__(self, streams: int, window: int) -> None:
        super().__init__(streams, window)
        self._buckets: list[dict[str, deque[int]]] = [{} for _ in range(streams)]
        self._rows = 0

    def offer(self, stream: int, time: int, key: str) -> None:
        """Old rows are among those that are looked at, until buckets are cleared."""
        self._rows += 1
        if self._rows % CLEARED_EVERY == 0:
            self._clear(time - self.window)
        self._extend(stream, 1, key, time - self.window, time + self.window)
        bucket = self._buckets[stream].get(key)
        if bucket is None:
            bucket = self._buckets[stream][key] = deque()
        bucket.append(time)

    def _extend(self, stream: int, level: int, key: str, low: int, high: int) -> None:
        if level == self.streams:
            self.answers += 1
            return
        bucket = self._buckets[(stream + level) % self.streams].get(key)
        if bucket is None:
            return
        self.comparisons += len(bucket)
        window = self.window
        for time in bucket:
            if low <= time <= high:
                self._extend(stream, level + 1, key, max(low, time - window), min(high, time + window))

    def _clear(self, oldest: int) -> None:
        for place, buckets in enumerate(self._buckets):
            self.comparisons += sum(map(len, buckets.values()))
            kept = {key: deque(time for time in times if time >= oldest) for key, times in buckets.items()}
            self._buckets[place] = {key: times for key, times in kept.items() if times}


JOINS: dict[str, type[RowJoin]] = {
    "NLW": NestedLoopWindowJoin, "ripple": RippleJoin, "MW": MergeWindowJoin, "HW": HashWindowJoin, "XJoin": XJoin,
}  # fmt: skip
