"""How far each source has come whose type can send again: where reading it goes on, so that each of its rows is in the log once.

A batch's rows and the positions behind them are one record of the log: neither is there without the other. Here they are by source, as
the log's end has them. So that a restart need not read all of the log, they are written to a file beside it now and then, with the number
up to which they hold; what the log has behind that is read again.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from skerry.storage.replacement import Replacement

_log = logging.getLogger(__name__)

FILE = "source_positions.json"
#: Written so often, in s: where something has changed, and where nothing has. A restart reads what the log got since.
_EVERY_S, _UNCHANGED_S = 5.0, 60.0

#: The number of a stream, and of a tuple.
Source = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Position:
    """``text``: what the type has said; ``skip``: values behind that which are in the log; ``address``: of which it holds; ``lasting``: it
    holds also after nobody has wanted the source for a while."""

    address: str
    text: str
    skip: int = 0
    lasting: bool = False


def to_text(positions: Mapping[int, Position]) -> bytes:
    """Those of a batch's tuples."""
    return json.dumps([[number, *astuple(position)] for number, position in positions.items()]).encode()


def from_text(text: bytes) -> dict[int, Position]:
    """What :func:`to_text` wrote."""
    return {number: Position(*parts) for number, *parts in json.loads(text)}


class SourcePositions:
    """For the one process that appends. ``path``: the log's directory."""

    def __init__(self, path: Path) -> None:
        self._path = path / FILE
        self._found: dict[Source, Position] = {}
        #: Up to which number of the log the file holds.
        self.through = 0
        self._written = time.monotonic()
        #: Whether the log has something that the file lacks.
        self.changed = False
        self._load()

    def _load(self) -> None:
        try:
            data: dict[str, Any] = json.loads(self._path.read_bytes())
            self._found = {(stream, number): Position(*parts) for stream, number, *parts in data["positions"]}
            self.through = data["through"]
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError) as error:
            _log.warning(
                "%s is damaged (%s): positions of sources are taken from what the log has", self._path, error
            )

    def get(self, source: Source) -> Position | None:
        """Of a source; None: it begins anew."""
        return self._found.get(source)

    def note(self, stream: int, positions: Mapping[int, Position]) -> None:
        """What a batch brings, in the order of the log."""
        for number, position in positions.items():
            self._found[stream, number] = position
        self.changed |= bool(positions)

    def forget(self, gone: Callable[[Source, Position], bool]) -> bool:
        """Those of which this is true begin anew; whether there were any."""
        left = {source: position for source, position in self._found.items() if not gone(source, position)}
        fewer = len(left) < len(self._found)
        self._found, self.changed = left, self.changed or fewer
        return fewer

    @property
    def is_due(self) -> bool:
        """Whether they are to be written again."""
        return time.monotonic() - self._written >= (_EVERY_S if self.changed else _UNCHANGED_S)

    def write(self, end: int) -> None:
        """Keep them, as they are at an end of the log. OSError: the file is as it was."""
        self._written = time.monotonic()
        rows = [[*source, *astuple(position)] for source, position in self._found.copy().items()]
        with Replacement(self._path) as file:
            file.write(json.dumps({"through": end, "positions": rows}).encode())
        self.through, self.changed = end, False
