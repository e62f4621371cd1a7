"""How far a source has come: which of its values are taken, which are durable, and where its type says that reading goes on."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from skerry.sources.stream_type import StreamType
from skerry.storage.log.source_positions import Position


class Progress:
    """Values are numbered as they come, from when the source was first opened by this process, whether they become rows or not."""

    def __init__(self, address: str, position: Position | None) -> None:
        self._address = address
        self._stream: StreamType | None = None
        #: Values so far; of the one that is open, those that were before its first; and how many come again.
        self._count = self._before = self._again = 0
        #: What types have said, each with the number of the value behind which it holds; the first is that of what is taken.
        self._marks: deque[tuple[int, Position]] = deque()
        if position is not None and position.address == address:
            self._marks.append((-position.skip, position))
        #: Up to which value all are taken or no rows; in batches; and durable.
        self._taken = self._flying = self._kept = 0

    @property
    def position(self) -> str | None:
        """Where it goes on when it is opened again now."""
        return self._marks[-1][1].text if self._marks else None

    @property
    def is_flying(self) -> bool:
        """Whether rows are taken that are not durable yet."""
        return self._flying > self._kept

    def opened(self, stream: StreamType) -> None:
        """It is open. Where it goes on at the position, values come again that have been behind that."""
        self._stream, self._again = stream, 0
        if stream.position is None:
            self._marks.clear()
        elif stream.position == self.position:
            self._again = self._count - self._marks[-1][0]
        self._before = self._count - self._again
        self._note()

    def closed(self) -> None:
        """It is not open any more."""
        self._stream = None

    def come_again(self, count: int) -> int:
        """How many of so many values, the first of them, have been there before."""
        found = min(self._again, count)
        self._again -= found
        return found

    def came(self) -> int:
        """The number of a value that has come: they begin at 1."""
        self._count += 1
        return self._count

    def read_is_over(self, *, waiting: bool) -> None:
        """All values of a ``read`` have come; ``waiting``: rows of them, or of others before, are not taken yet."""
        self._note()
        if not waiting:
            self._advance(self._count)
            if not self.is_flying:
                self.kept(self._count)

    def _note(self) -> None:
        text = self._stream.position if self._stream is not None else None
        if self._stream is not None and text is not None and text != self.position:
            mark = Position(self._address, text, 0, self._stream.lasting)
            self._marks.append((self._count - self._again, mark))

    def taken(self, value: int, *, last: bool) -> None:
        """Rows up to a value are taken; ``last``: no more wait, so that what came behind it is nobody's row."""
        self._advance(self._count if last else value)
        self._flying = self._taken

    def _advance(self, value: int) -> None:
        self._taken = value
        while len(self._marks) > 1 and self._marks[1][0] <= value:
            self._marks.popleft()

    def behind(self) -> tuple[Position | None, int]:
        """Where it goes on behind what is taken, None where its type cannot send again; and the number of the last value of that."""
        if not self._marks:
            return None, self._taken
        number, position = self._marks[0]
        return replace(position, skip=self._taken - number), self._taken

    def kept(self, value: int) -> None:
        """Rows up to a value are durable."""
        self._kept = max(self._kept, value)
        if self._stream is not None and self._kept > self._before:
            try:
                self._stream.kept(self._kept - self._before)
            except Exception as error:
                # It is told of its source, and is none of the others'.
                self._stream.note = f"kept({self._kept - self._before}): {type(error).__name__}: {error}"
