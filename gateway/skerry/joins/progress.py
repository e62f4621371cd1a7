"""How far a join has come in time, which rows are too late for it, and which are set aside.

All three are a function of the log's order, whatever the batches in which it is read, and no stream holds another one back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

#: A row may be so many µs ahead of the clock by which it is dated: a minute.
AHEAD_US = 60_000_000
#: Before any row has come.
NEVER = -(1 << 62)

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
#: Behind every row's number: what is decided as all streams have ended.
AT_END = 1 << 62


@dataclass(frozen=True)
class Course:
    """How progress has moved through a batch: the numbers of the rows that moved it, and where it was after each."""

    numbers: Int64
    us: Int64

    def passing(self, times: Int64) -> Int64:
        """For each time the number of the row with which progress has gone past it."""
        found: Int64 = np.append(self.numbers, AT_END)[np.searchsorted(self.us, times, "right")]
        return found

    def encode(self) -> bytes:
        """As bytes."""
        return np.concatenate([self.numbers, self.us]).tobytes()

    @classmethod
    def decode(cls, parts: Iterable[bytes]) -> Course:
        """Of those that follow each other."""
        found = [np.frombuffer(part, np.int64) for part in parts]
        whole = [part.reshape(2, -1) for part in found]
        numbers, us = np.concatenate(whole, axis=1) if whole else np.zeros((2, 0), np.int64)
        return cls(numbers, us)


@dataclass
class Progress:
    """Of one join, over all its sources' rows before WHERE."""

    lateness_us: int
    #: The greatest time of rows that were not set aside.
    greatest_us: int = NEVER
    late: int = 0
    ahead: int = 0
    #: By stream, its greatest time.
    streams: dict[str, int] = field(default_factory=dict)
    #: Where somebody asks for it, how it has moved since.
    course: Course | None = None

    @property
    def us(self) -> int:
        """A row below is late."""
        return NEVER if self.greatest_us == NEVER else self.greatest_us - self.lateness_us

    def admit(
        self, times: Int64, clocks: Int64, streams: Int64, names: list[str], numbers: Int64 | None = None
    ) -> Bool:
        """Which of these rows, which follow each other in the log, are neither late nor set aside. ``streams``: the place in ``names`` of
        each row's stream; ``numbers``: theirs, for the course."""
        if not len(times):
            return np.zeros(0, np.bool_)
        ahead = times > clocks + AHEAD_US
        moving = np.where(ahead, NEVER, times)
        reached = np.maximum(np.maximum.accumulate(moving), self.greatest_us)
        before = np.concatenate([[self.greatest_us], reached[:-1]])
        late = ~ahead & (before != NEVER) & (times < before - self.lateness_us)
        if self.course is not None and numbers is not None:
            moved = reached > before
            self.course = Course(numbers[moved], reached[moved] - self.lateness_us)
        self.greatest_us = int(reached[-1])
        self.late += int(late.sum())
        self.ahead += int(ahead.sum())
        for place, name in enumerate(names):
            own = moving[streams == place]
            if len(own) and (latest := int(own.max())) != NEVER:
                self.streams[name] = max(latest, self.streams.get(name, NEVER))
        admitted: Bool = ~(late | ahead)
        return admitted
