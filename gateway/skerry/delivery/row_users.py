"""Users whose rows come one by one, as executors have matched them: by which entries of the users' index, and who is woken."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from skerry.delivery.buffers import Readable
from skerry.delivery.entries import Entries
from skerry.delivery.log_rows import LogRows
from skerry.delivery.matched_rows import Audience, MatchedRows, UserView
from skerry.delivery.matched_source_rows import MatchedSourceRows, SourceUser
from skerry.delivery.subscribers import Subscriber
from skerry.execution.deliveries import Delivery, in_order
from skerry.execution.matched import Matched
from skerry.execution.matching import View
from skerry.execution.source_matching import SourceView
from skerry.planner.model.plans import Feed
from skerry.planner.model.source_plans import STREAMS, SourcePlan
from skerry.storage.log.record import Block


class RowUsers:
    """A part of the engine, whose lock is held but where :meth:`replay` is asked. ``rows``: of the log; ``subscribers``: all there are, by
    user."""

    def __init__(self, rows: LogRows, subscribers: Mapping[str, Subscriber], entries: Entries) -> None:
        self._rows, self._subscribers, self._entries = rows, subscribers, entries
        self._audiences: dict[Hashable, Audience] = {}
        #: A version of the index that knows what a user asks, ascending: of those who came or changed last it is the highest.
        self._known: dict[str, int] = {}

    def see(self, user: str, subscriber: Subscriber, had: Mapping[int, Feed], done: int) -> None:
        """Other feeds than he ``had``, when so many rows have been through."""
        seen, views = subscriber.buffer.views, dict[Hashable, UserView]()
        for number, feed in subscriber.feeds.items():
            view, stream = seen.get(number), self._rows.stream(number)
            same = had.get(number) == feed and isinstance(view, UserView)
            if same and isinstance(view, UserView) and self._entries.keeps(user, view.entry):
                views[number] = view
            elif stream is not None:
                filter_ = subscriber.residual.filter.in_executors
                joiner = subscriber.joiner if filter_ is subscriber.residual.filter else None
                what = View.of(filter_, feed, None if joiner is None else joiner.in_executors())
                entry = self._entries.add(user, stream, what)
                views[number] = UserView(entry, subscriber.residual, feed, joiner)
        kept = {view.entry for view in views.values()}
        for key in seen.keys() | views.keys():
            before = seen.get(key)
            if isinstance(before, UserView) and before.entry not in kept:
                self._entries.remove(user, before.entry)
            if views.get(key) is not before:
                self._audiences.pop(key, None)
        # Who asks what others ask already is known for longer than that.
        self._known.pop(user, None)
        self._known[user] = self._entries.version
        subscriber.buffer.see(views, done, max(kept, default=0))

    def see_source(self, user: str, subscriber: Subscriber, plan: SourcePlan, done: int) -> None:
        """A user of a stream that is no motes'."""
        assert plan.stream is not None
        entry = self._entries.add_source(user, plan.stream, SourceView.of(plan))
        self._known[user] = self._entries.version
        subscriber.buffer.see({plan.stream: SourceUser(entry, plan)}, done, entry)

    def keeps(self, user: str, subscriber: Subscriber) -> bool:
        """Whether he gets his rows by the entries that he has."""
        return all(
            self._entries.keeps(user, view.entry)
            for view in subscriber.buffer.views.values()
            if isinstance(view, UserView)
        )

    def entries_of(self, user: str) -> dict[int, int]:
        """By which entries of the users' index a user gets his rows, by stream."""
        views = self._subscribers[user].buffer.views if user in self._subscribers else {}
        return {
            n: view.entry for n, view in views.items() if isinstance(n, int) and isinstance(view, UserView)
        }

    def remove(self, user: str, gone: Subscriber) -> None:
        """The user is gone."""
        self._known.pop(user, None)
        for key, view in gone.buffer.views.items():
            if isinstance(view, UserView | SourceUser):
                self._entries.remove(user, view.entry)
                self._audiences.pop(key, None)

    def readable(self, found: Matched) -> Readable:
        """What executors have matched of a stream."""
        if found.stream >= STREAMS:
            return MatchedSourceRows(found)
        return MatchedRows(found, self._rows.stream, self._audience(found.stream))

    def _audience(self, number: int) -> Audience:
        audience = self._audiences.get(number)
        if audience is None:
            views = (subscriber.buffer.views.get(number) for subscriber in self._subscribers.values())
            audience = Audience(view for view in views if isinstance(view, UserView))
            self._audiences[number] = audience
        return audience

    def woken(self, entries: Iterable[int], version: int) -> set[str]:
        """Who may have rows in a batch by these entries, or asks what this version of the index may not know."""
        found = set()
        for user in reversed(self._known):
            if self._known[user] <= version:
                break
            found.add(user)
        return self._entries.users(entries) | found

    def replay(self, subscriber: Subscriber, block: Block) -> list[Delivery]:
        """A user's rows of a part of the log. From any thread."""
        found = []
        for number, part in self._rows.parts(block).items():
            feed = subscriber.feeds.get(number)
            if feed is None:
                continue
            # Sorting does not pay for one user.
            places, columns = subscriber.residual.rows(part.rows, subscriber.residual.select(part.rows, feed))
            if len(places):
                found.append(Delivery(part.numbers[places], columns))
        return in_order(found)
