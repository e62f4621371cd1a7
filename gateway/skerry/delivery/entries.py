"""Who asks for what: the gateway's side of the users' index (:mod:`skerry.execution.users_index`), whose entries executors match."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from skerry.execution.matched import MatchedBatch
from skerry.execution.matching import View
from skerry.execution.partial_panes import PartialPanes
from skerry.execution.source_matching import Asked, to_text
from skerry.execution.users_index import Change, UsersIndex
from skerry.execution.window_selection import WindowSelection
from skerry.streams.stream import Stream

log = logging.getLogger(__name__)

#: Gets the next changes, and all that there is with them. Raises OSError: later.
Publish = Callable[[list[Change], Collection[Change]], object]


@dataclass(slots=True)
class _Entry:
    """What users who get the same rows of a stream have in common."""

    number: int
    stream: int
    same: Hashable
    users: set[str] = field(default_factory=set)


class Entries:
    """The users of each entry; changes go to ``publish``. Not for several threads at once. ``version``: the last one before."""

    def __init__(self, publish: Publish | None = None, version: int = 0) -> None:
        self._publish, self.version = publish, version
        self._by_number: dict[int, _Entry] = {}
        self._by_what: dict[tuple[int, Hashable], _Entry] = {}
        #: How many ask for a stream: entries, and windows.
        self._asked: dict[int, int] = {}
        #: By what is wanted: the entry by which rows are folded for windows, and over which streams these are.
        self._windows: dict[Hashable, tuple[int, tuple[int, ...]]] = {}
        self._of_sources: dict[str, int] = {}
        self._live: dict[Hashable, Change] = {}
        self._unpublished: list[Change] = []
        self._index: UsersIndex | None = None

    def add(self, user: str, stream: Stream, view: View) -> int:
        """The entry by which a user gets his rows of a stream."""
        what = stream.number, view.same
        entry = self._by_what.get(what)
        if entry is None:
            self._ask(stream)
            self._change(None, "entry", stream.number, view.to_list())
            entry = _Entry(self.version, *what)
            self._by_what[what] = self._by_number[entry.number] = entry
        entry.users.add(user)
        return entry.number

    def add_source(self, user: str, stream: int, view: Asked) -> int:
        """The same of a stream that is no motes'."""
        what = stream, view
        entry = self._by_what.get(what)
        if entry is None:
            self._change(None, "source", stream, to_text(view))
            entry = _Entry(self.version, *what)
            self._by_what[what] = self._by_number[entry.number] = entry
        entry.users.add(user)
        return entry.number

    def keeps(self, user: str, number: int) -> bool:
        """Whether a user goes on getting his rows by an entry, as long as he asks the same."""
        del user, number
        return True

    def remove(self, user: str, number: int) -> None:
        """A user does not get rows by an entry any more."""
        entry = self._by_number[number]
        entry.users.discard(user)
        if not entry.users:
            del self._by_number[number], self._by_what[entry.stream, entry.same]
            del self._live["entry", number]
            if isinstance(entry.same, Asked):
                self._change(None, "source gone", entry.stream, number)
                return
            self._change(None, "gone", entry.stream, number)
            self._leave(entry.stream)

    def users(self, entries: Iterable[int]) -> set[str]:
        """Who gets rows by any of these; of those that have gone nobody."""
        found: set[str] = set()
        for number in entries:
            entry = self._by_number.get(number)
            if entry is not None:
                found |= entry.users
        return found

    def want_windows(
        self,
        wanted: Mapping[Any, Callable[[], WindowSelection]],
        streams: Callable[[int], Stream | None],
    ) -> None:
        """What is wanted is to be folded for windows from now on, and nothing else. ``streams``: what their numbers mean."""
        for key in [key for key in self._windows if key not in wanted]:
            entry, over = self._windows.pop(key)
            del self._live["entry", entry]
            self._change(None, "windows over", entry)
            for number in over:
                self._leave(number)
        for key, made in wanted.items():
            if key in self._windows:
                continue
            selection = made()
            known = [stream for number in selection.views if (stream := streams(number)) is not None]
            for stream in known:
                self._ask(stream)
            self._change(None, "windows", selection.to_text())
            self._windows[key] = self.version, tuple(stream.number for stream in known)

    def folded(self, wanted: Hashable, batch: MatchedBatch) -> list[PartialPanes] | None:
        """What was folded of a batch of what is wanted; None: it has to be folded again, of all of its rows."""
        entry, _ = self._windows.get(wanted, (None, ()))
        if entry is None or batch.folded is None or entry > batch.version:
            return None
        return [panes for number, panes in batch.folded if number == entry]

    def want_of_sources(self, wanted: Mapping[str, tuple[int, Asked]]) -> None:
        """The same of streams that are no motes', by what is shared: the stream, and what is made of its rows."""
        for key in [key for key in self._of_sources if key not in wanted]:
            self.remove(key, self._of_sources.pop(key))
        for key, (stream, what) in wanted.items():
            if key not in self._of_sources:
                self._of_sources[key] = self.add_source(key, stream, what)

    def made_of_sources(self, wanted: str, batch: MatchedBatch) -> list[pa.RecordBatch] | None:
        """What executors made of a batch; None: it has to be made again."""
        entry = self._of_sources.get(wanted)
        if entry is None or entry > batch.version:
            return None
        return [part.batch for part in batch.parts if part.stream == -entry]

    def publish(self) -> None:
        """Let executors know what has changed; what cannot be written now is written when this is called again."""
        if self._publish is None or not self._unpublished:
            self._unpublished.clear()
            return
        try:
            self._publish(self._unpublished, self._live.values())
        except OSError as error:
            # Whose entries executors do not know are served from the log.
            log.warning("the users' index could not be written: %s; it is tried again", error)
            return
        self._unpublished.clear()

    def index(self) -> UsersIndex:
        """As executors have it, for this process."""
        if self._index is None:
            self._index = UsersIndex()
            for change in self._live.values():
                self._index.apply(change)
            self._index.version = self.version
        return self._index

    def _ask(self, stream: Stream) -> None:
        asked = self._asked.get(stream.number, 0)
        if not asked:
            self._change(("stream", stream.number), "stream", stream.to_dict())
        self._asked[stream.number] = asked + 1

    def _leave(self, number: int) -> None:
        self._asked[number] -= 1
        if not self._asked[number]:
            del self._asked[number], self._live["stream", number]
            self._change(None, "over", number)

    def _change(self, key: Hashable, kind: str, *what: object) -> None:
        """``key``: what there is from now on; of an entry its number is."""
        self.version += 1
        change: Change = [self.version, kind, *what]
        if kind in ("entry", "windows", "source"):
            key = "entry", self.version
        if key is not None:
            self._live[key] = change
        self._unpublished.append(change)
        if self._index is not None:
            self._index.apply(change)


class GivenEntries(Entries):
    """In a process that serves readers, while another one writes the users' index: users have the entries that they have there."""

    def __init__(self) -> None:
        super().__init__()
        self._given: dict[str, Mapping[int, int]] = {}
        self._users: dict[int, set[str]] = {}

    def give(self, user: str, entries: Mapping[int, int], version: int) -> None:
        """A user's entries by stream from now on, as of a version of the index; :meth:`skerry.delivery.engine.Engine.set_feeds` follows."""
        self._given[user], self.version = entries, max(self.version, version)

    def add(self, user: str, stream: Stream, view: View) -> int:
        """The one that was given."""
        del view
        entry = self._given[user][stream.number]
        self._users.setdefault(entry, set()).add(user)
        return entry

    def keeps(self, user: str, number: int) -> bool:
        """Whether it is still the one that was given."""
        return number in self._given.get(user, {}).values()

    def remove(self, user: str, number: int) -> None:
        """A user does not get rows by an entry any more."""
        users = self._users.get(number, set())
        users.discard(user)
        if not users:
            self._users.pop(number, None)

    def users(self, entries: Iterable[int]) -> set[str]:
        """Who gets rows by any of these here."""
        found: set[str] = set()
        for number in entries:
            found |= self._users.get(number, set())
        return found
