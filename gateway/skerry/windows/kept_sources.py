"""What users of sources that are no motes share, in a form for files, and again from it: windows, and answers from the newest rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from skerry.planner.model.frames import Frame, Window
from skerry.windows.source_panes import Group, Key, SourceCourse, SourcePanesState, States

_EPOCH, _US = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_CODEC = pa.Codec("zstd", 1)
_INT64 = 1 << 63
#: What a list says that stands for a value which files have no form for.
_LONG, _DECIMAL, _MOMENT, _SET = "long", "decimal", "moment", "set"
NOT_UNDERSTOOD = "what was kept of windows over sources is not understood (%s): they are made of rows again"
_Kind = TypeVar("_Kind")
#: A group with its states.
_Cell = tuple[list[Any], list[Any]]


class KeptShared(msgspec.Struct, array_like=True):
    """``users``: with the texts of their queries; then one of the following, packed, with its bytes when it is unpacked."""

    users: dict[str, str]
    size: int
    packed: bytes

    def unpacked(self, kind: type[_Kind]) -> _Kind:
        """Raises ValueError."""
        data = _CODEC.decompress(self.packed, decompressed_size=self.size, asbytes=True)
        try:
            return msgspec.msgpack.decode(data, type=kind)
        except msgspec.MsgspecError as error:
            raise ValueError(str(error)) from None


class KeptCourse(msgspec.Struct, array_like=True):
    """See :class:`skerry.windows.source_panes.SourceCourse`."""

    windows: list[tuple[int, int]]
    whole: bool
    first_ms: int
    closed_ms: int | None
    before: list[_Cell]
    revised: list[tuple[int, int]]


class KeptWindows(msgspec.Struct, array_like=True):
    """See :class:`skerry.windows.source_panes.SourcePanesState`. ``choice``: of which rows they are made; ``users``: with the places of
    their courses."""

    choice: str
    users: list[tuple[str, int]]
    now_ms: int | None
    gone: int | None
    panes: list[tuple[int, list[_Cell]]]
    courses: list[KeptCourse]


class KeptLatest(msgspec.Struct, array_like=True):
    """See :mod:`skerry.windows.source_latest`. ``sources``: by number, the time of each one's newest row, and its place in ``rows``, if
    static columns select it; ``rows``, ``last``: as Arrow has them in a file; ``waiting``: who has had no answer, and from which record
    on he gets one."""

    sources: list[tuple[int, int, int | None]]
    rows: bytes | None
    last: bytes | None
    waiting: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class SharedCapture:
    """Something shared as it is. ``users``: with the texts of their queries; ``made``: in a form for files, in any thread."""

    users: Mapping[str, str]
    made: Callable[[], KeptWindows | KeptLatest]

    def kept(self) -> KeptShared:
        """For a file, in any thread."""
        data = msgspec.msgpack.encode(self.made())
        return KeptShared(dict(self.users), len(data), _CODEC.compress(data, asbytes=True))


class KeptOfSources:
    """What is in a file of all rows before ``row``. ``asked``: by user, the text of the query, and the record that it begins with."""

    def __init__(self, row: int, kept: Iterable[KeptShared], asked: Mapping[str, tuple[str, int]]) -> None:
        self.row, self._asked = row, asked
        self._of_user = {user: one for one in kept for user in one.users}

    def before(self, users: Iterable[str]) -> list[str]:
        """Those of them whose queries began before that row."""
        return [user for user in users if self._asked[user][1] < self.row]

    def of(self, users: Iterable[str]) -> KeptShared | None:
        """What these share; None: they did not share all that before, or asked otherwise."""
        users = list(users)
        found = self._of_user.get(users[0]) if users else None
        if found is None or any(found.users.get(user) != self._asked[user][0] for user in users):
            return None
        return found


def kept_windows(choice: str, users: Mapping[str, Key], state: SourcePanesState) -> KeptWindows:
    """Of windows."""
    places = {(course.frame, course.first_ms): place for place, course in enumerate(state.courses)}
    return KeptWindows(
        choice,
        [(user, places[key]) for user, key in users.items()],
        state.now_ms,
        state.gone,
        [(pane, _cells(groups)) for pane, groups in state.panes.items()],
        [
            KeptCourse(
                [(window.length_ms, window.slide_ms) for window in course.frame.windows],
                course.frame.whole,
                course.first_ms,
                course.closed_ms,
                _cells(course.before),
                list(course.revised.items()),
            )
            for course in state.courses
        ],
    )


def windows_again(kept: KeptWindows) -> tuple[dict[str, Key], SourcePanesState]:
    """The users' windows, and what :func:`kept_windows` was made of. Raises ValueError."""
    courses = [
        SourceCourse(
            Frame(tuple(Window(*window) for window in one.windows), one.whole),
            one.first_ms,
            one.closed_ms,
            _groups(one.before),
            dict(one.revised),
        )
        for one in kept.courses
    ]
    panes = {pane: _groups(cells) for pane, cells in kept.panes}
    keys = {user: (courses[place].frame, courses[place].first_ms) for user, place in kept.users}
    return keys, SourcePanesState(kept.now_ms, kept.gone, panes, courses)


def kept_latest(
    rows: Mapping[int, tuple[int, pa.RecordBatch | None]],
    last: pa.RecordBatch | None,
    waiting: Mapping[str, int],
) -> KeptLatest:
    """Of the newest row of each source."""
    there = [row for _, row in rows.values() if row is not None]
    places = iter(range(len(there)))
    sources = [(source, time, None if row is None else next(places)) for source, (time, row) in rows.items()]
    whole = pa.Table.from_batches(there).combine_chunks().to_batches()[0] if there else None
    return KeptLatest(sources, _to_arrow(whole), _to_arrow(last), list(waiting.items()))


def latest_again(
    kept: KeptLatest,
) -> tuple[dict[int, tuple[int, pa.RecordBatch | None]], pa.RecordBatch | None]:
    """What :func:`kept_latest` was made of, but for who waits. Raises ValueError."""
    rows = _of_arrow(kept.rows)
    found: dict[int, tuple[int, pa.RecordBatch | None]] = {}
    for source, time, place in kept.sources:
        found[source] = time, rows.slice(place, 1) if place is not None and rows is not None else None
    return found, _of_arrow(kept.last)


def _to_arrow(batch: pa.RecordBatch | None) -> bytes | None:
    if batch is None:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as out:
        out.write_batch(batch)
    return bytes(sink.getvalue())


def _of_arrow(data: bytes | None) -> pa.RecordBatch | None:
    if data is None:
        return None
    with pa.ipc.open_stream(data) as stream:
        return stream.read_next_batch()


def _cells(groups: Mapping[Group, States]) -> list[_Cell]:
    return [
        ([_plain(one) for one in group], [_plain(one) for one in states]) for group, states in groups.items()
    ]


def _groups(cells: Iterable[_Cell]) -> dict[Group, States]:
    return {tuple(map(_again, group)): tuple(map(_again, states)) for group, states in cells}


def _plain(value: Any) -> Any:
    """A value of a group or a state, as msgpack has it."""
    if value is None or isinstance(value, bool | str | float):
        return value
    if isinstance(value, int):
        return value if -_INT64 <= value < _INT64 else [_LONG, hex(value)]
    if isinstance(value, Decimal):
        return [_DECIMAL, str(value)]
    if isinstance(value, datetime):
        return [_MOMENT, (value - _EPOCH) // _US]
    if isinstance(value, frozenset):
        return [_SET, [_plain(one) for one in value]]
    raise TypeError(f"no file has a form for {value!r}")


def _again(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    kind, content = value
    match kind:
        case "long":
            return int(content, 16)
        case "decimal":
            return Decimal(content)
        case "moment":
            return _EPOCH + content * _US
        case "set":
            return frozenset(map(_again, content))
    raise ValueError(f"no value is of the kind {kind!r}")
