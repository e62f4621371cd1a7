"""The index of all users, as executors hold it: what they ask of each stream, as of a version.

It is made of changes, each of which has the next version: ``[version, kind, …]``, JSON. An *entry* is what users who get the same rows of a
stream have in common, and its number is the version that it came with, so that one look tells whether a batch was matched against it. Who
the users of an entry are, only the gateway knows.

Changes: ``[v, "stream", Stream.to_dict()]``, what a stream's number means; ``[v, "over", number]``, nobody asks for a stream any more;
``[v, "entry", number, View.to_list()]``, with stream number; ``[v, "gone", number, entry]``; ``[v, "windows", WindowSelection.to_text()]``,
rows that are to be folded for windows, also an entry; ``[v, "windows over", entry]``. Of streams that are no motes' ``[v, "source",
number, text]``, an entry (:func:`skerry.execution.source_matching.to_text`), and ``[v, "source gone", number, entry]``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from skerry.execution.joined import Joined, MakeJoin, Pairs
from skerry.execution.matched import HIT, Matched
from skerry.execution.matching import Key, Part, View
from skerry.execution.partial_panes import PartialPanes
from skerry.execution.range_index import Int64, Places, RangeIndex
from skerry.execution.residual import Rows
from skerry.execution.source_matching import SourceEntries, from_text
from skerry.execution.stream_batches import stream_batch
from skerry.execution.window_selection import WindowSelection
from skerry.storage.log.record import Records
from skerry.streams.stream import Stream

#: One change: see above.
Change = list[Any]


class UsersIndex:
    """As of ``version``. ``make_join``: makes what joins rows with tables; None: that is left to others.

    Not for several threads at once.
    """

    def __init__(self, make_join: MakeJoin | None = None) -> None:
        self.version, self._make_join = 0, make_join
        self._streams: dict[int, _OfStream] = {}
        self._windows: dict[int, WindowSelection] = {}
        #: Of streams that are no motes'.
        self.sources = SourceEntries()

    def apply(self, change: Change) -> None:
        """The next change."""
        self.version, kind, *what = change
        match kind:
            case "stream":
                stream = Stream.from_dict(what[0])
                self._streams[stream.number] = _OfStream(stream, self._make_join)
            case "over":
                del self._streams[what[0]]
            case "entry":
                number, view = what
                self._streams[number].add(self.version, View.from_list(view))
            case "gone":
                number, entry = what
                self._streams[number].remove(entry)
            case "windows":
                self._windows[self.version] = WindowSelection.from_text(what[0])
            case "windows over":
                del self._windows[what[0]]
            case "source":
                self.sources.add(what[0], self.version, from_text(what[1]))
            case "source gone":
                self.sources.remove(*what)

    def match(
        self, parts: Iterable[tuple[int, Int64, Records]]
    ) -> tuple[list[Matched], list[tuple[int, PartialPanes]]]:
        """Rows by stream, with their numbers, and by entry what was folded for windows; those of streams that nobody asks for are left
        out."""
        found, made = list[Matched](), dict[int, Part]()
        for number, numbers, records in parts:
            of_stream = self._streams.get(number)
            if of_stream is not None and len(records):
                made[number] = part = of_stream.part(numbers, records)
                matched = of_stream.match(part)
                if len(matched.hits) or matched.joined:
                    found.append(matched)
        folded = [
            (entry, windows.fold(made)) for entry, windows in self._windows.items() if windows.is_over(made)
        ]
        return found, folded


class _OfStream:
    """The entries of one stream, arranged so that a batch costs what it matches."""

    def __init__(self, stream: Stream, make_join: MakeJoin | None) -> None:
        self._stream, self._make_join = stream, make_join
        self._entries: dict[int, View] = {}
        self._ranges: list[_Ranges] | None = None
        self._others: list[tuple[int, View]] = []

    def add(self, entry: int, view: View) -> None:
        """An entry that comes."""
        self._entries[entry], self._ranges = view, None

    def remove(self, entry: int) -> None:
        """… or goes."""
        del self._entries[entry]
        self._ranges = None

    def part(self, numbers: Int64, records: Records) -> Part:
        """Its rows in a part of a batch."""
        return Part(Rows(stream_batch(records, self._stream), self._stream.mote_query), numbers)

    def match(self, part: Part) -> Matched:
        """Which of them are whose."""
        places: list[Places] = []
        hits: list[np.ndarray] = []
        count = 0
        each = []
        for ranges in self._arranged():
            by = part.by(ranges.key)
            entries, first, last, apart = ranges.within(part)
            if len(entries):
                hits.append(_hits(entries, first + count, last + count))
                places.append(by.places)
                count += len(by.places)
            each += apart
        joined: list[tuple[int, Pairs]] = []
        for entry, view in [*self._others, *each]:
            found = part.places(view)
            pairs = self._pairs(part, view, found)
            if pairs is not None:
                joined += [(entry, one) for one in pairs]
            elif len(found):
                hits.append(_hits(np.array([entry]), np.array([count]), np.array([count + len(found)])))
                places.append(found.astype(np.int32))
                count += len(found)
        of_all = np.concatenate([np.empty(0, HIT), *hits])
        of_all.sort(order="entry")
        of_places = np.concatenate([np.empty(0, np.int32), *places])
        return Matched(
            self._stream.number, part.numbers, part.rows.batch, of_places, of_all, Joined.of(joined)
        ).wanted()

    def _pairs(self, part: Part, view: View, found: Places) -> list[Pairs] | None:
        """An entry's rows joined; None: it is joined with nothing, or its readers have to see to it."""
        if view.join is None or self._make_join is None or not len(found):
            return None
        try:
            if view.made is None:
                view.made = self._make_join(view.join)
            return view.made(part.rows, found)
        except ValueError:
            # A table that is not there, or would give too many rows: whose query it is is told so when he reads.
            return None

    def _arranged(self) -> list[_Ranges]:
        if self._ranges is None:
            alike: dict[Key, list[tuple[int, View]]] = {}
            self._others = []
            for entry, view in self._entries.items():
                apart = not view.range_only or view.join is not None
                if view.key is None or apart or self._stream.mote_query.aggregate:
                    self._others.append((entry, view))
                else:
                    alike.setdefault(view.key, []).append((entry, view))
            self._ranges = [_Ranges(key, entries) for key, entries in alike.items()]
        return self._ranges


class _Ranges:
    """Entries that ask for a range of the same attribute and nothing else."""

    def __init__(self, key: Key, entries: list[tuple[int, View]]) -> None:
        self.key = key
        views = [view for _, view in entries]
        self._index = RangeIndex([view.low for view in views], [view.high for view in views])
        self._in_order = [entries[place] for place in self._index.order.tolist()]
        views = [view for _, view in self._in_order]
        self._entries = np.array([entry for entry, _ in self._in_order], np.int64)
        self._since = np.array([view.whole_from for view in views], np.int64)
        self._until = np.array([view.until for view in views], np.int64)
        self._cut_over = np.array([view.feed.before_ms is not None for view in views], np.bool_)

    def within(self, part: Part) -> tuple[Int64, Int64, Int64, list[tuple[int, View]]]:
        """Of those that have all rows in their range, whenever sampled: the entries that have any, and which of the rows sorted by the
        attribute. Then those that come or go with these rows, and have to be looked at one by one."""
        first, last = self._index.within(part.by(self.key))
        settled, some = (self._since <= part.first) & (part.last < self._until), last > first
        found = np.flatnonzero(some & settled)
        apart = np.flatnonzero(~settled & (some | self._cut_over))
        each = [self._in_order[place] for place in apart.tolist()]
        return self._entries[found], first[found], last[found], each


def _hits(entries: Int64, first: Int64, last: Int64) -> np.ndarray:
    made = np.empty(len(entries), HIT)
    made["entry"], made["first"], made["last"] = entries, first, last
    return made
