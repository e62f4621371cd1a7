"""A reader's way through the rows of one query: the past, the log on disk, memory, and over what he is too slow for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from skerry.delivery.engine import Engine
from skerry.execution.deliveries import Delivery
from skerry.execution.residual import Residual
from skerry.sensors.evaluate import schema_of
from skerry.service.queries import UnknownQueryError, UserQuery
from skerry.sql.errors import QueryError
from skerry.storage.history.engine.waiting import GivenUpError, Waiting
from skerry.storage.log import stream_log
from skerry.storage.log.record import Block
from skerry.storage.log.stream_log import RowsGoneError
from skerry.tables.columns import TableError

#: Rows of the log that a reader is served at a time.
PORTION_ROWS = 65536
#: A reader who is so few rows of the log behind finds them in memory.
NEAR_ROWS = 1024
#: Rows of the log that a reader may be behind (1.3 GB of it).
BACKLOG_ROWS = 10_000_000


@dataclass(frozen=True, slots=True)
class Dropped:
    """Rows of the log that a reader does not get, both ends included, of whichever streams; UTC in s when they arrived, where that
    is known."""

    first: int
    last: int
    since: float | None
    until: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Portion:
    """What comes next for a reader. ``position``: the row of the log that he has come to; ``more``: more follows at once."""

    deliveries: list[Delivery]
    position: int
    more: bool = False
    dropped: Dropped | None = None
    #: Rows are there that he cannot have yet.
    waits: bool = False
    #: Why he gets no more.
    refused: str | None = None


class NotYetError(Exception):
    """The answer is on its way: its reader looks again later."""


#: A query's rows of the past behind a row of the log, the position reached, whether more follow. Raises GivenUpError when who waits goes.
Past = Callable[[int, Waiting], tuple[list[Delivery], int, bool]]


class Reader:
    """One reader of one query, which may have several. Asked by one thread at a time.

    ``log``: its directory.
    ``through``: how many rows of the log readers may have; ``past``: what a query with HISTORY gets of those before it.
    ``backlog``: rows of the log that he may be behind; half of them are dropped when it is more, so that he has time
    to recover.
    """

    def __init__(
        self,
        query: UserQuery,
        position: int,
        engine: Engine,
        log: Path,
        through: Callable[[], int],
        backlog: int,
        past: Past | None = None,
    ) -> None:
        self._query, self.position = query, position
        self._engine, self._log, self._through, self._backlog = engine, log, through, backlog
        self._past, self._waiting = past, Waiting()
        sources = query.plan.sources
        self.schema = Residual(query.plan).schema() if sources is None else schema_of(sources)

    @property
    def near(self) -> bool:
        """Whether reading costs next to nothing: there are few rows behind the position."""
        subscriber = self._engine.subscriber(self._query.id)
        busy = subscriber is not None and subscriber.buffer.busy(self.position, self._through())
        return self._through() - self.position <= NEAR_ROWS and not self.in_past and not busy

    @property
    def due(self) -> bool:
        """Whether he is to be read for though no rows of his may have come: his query is over, or many of others have gone by."""
        stopped = self._engine.subscriber(self._query.id) is None
        lag = self._through() - self.position
        return stopped or self._query.finished or lag > min(PORTION_ROWS, self._backlog // 4)

    @property
    def in_past(self) -> bool:
        """Whether it is the past's engine that he waits for."""
        # Of a log without rows, too, a past that ends may have an answer: that there are none.
        least = 0 if self._query.past_only else -1
        return self._past is not None and self.position < max(self._query.position - 1, least)

    def close(self) -> None:
        """He has gone; from any thread: what is being read for him is given up."""
        self._waiting.go()

    def read(self) -> Portion:
        """The next portion; moves on. Raises UnknownQueryError once the query is stopped, or the reader has gone."""
        try:
            portion = self._of_past() if self.in_past else self._of_log()
        except NotYetError:
            portion = Portion([], self.position, waits=True)
        except TableError:
            # A table that it is joined with is not there: the query waits (:meth:`skerry.service.gateway.Gateway.paused` says why).
            portion = Portion([], self.position, waits=True)
        except QueryError as error:
            # Of a past that ends, which does not get smaller.
            refused = f"{error.message}: {error.hint}" if error.hint else error.message
            portion = Portion([], self.position, refused=refused)
        except GivenUpError:
            raise UnknownQueryError(self._query.id) from None
        self.position = portion.position
        return portion

    def _of_past(self) -> Portion:
        assert self._past is not None
        deliveries, reached, more = self._past(self.position, self._waiting)
        return Portion(deliveries, reached, more or not self._query.past_only)

    def _of_log(self) -> Portion:
        subscriber = self._engine.subscriber(self._query.id)
        if subscriber is None:
            if self._query.past_only:
                return Portion([], self.position)
            raise UnknownQueryError(self._query.id)
        start, end = max(self.position + 1, self._query.position), self._through()
        if end - start > self._backlog:
            reason = f"the reader was more than {self._backlog} rows behind"
            return self._skip(start, end - self._backlog // 2, reason)
        found = subscriber.buffer.deliveries(self.position, PORTION_ROWS, end)
        if found is not None:
            return Portion(found[0], found[1], more=found[1] + 1 < end)
        return self._of_disk(start, end) if end > start else Portion([], self.position)

    def _of_disk(self, start: int, end: int) -> Portion:
        found = self._engine.published(self._query.id, start - 1, PORTION_ROWS, end)
        if found is not None:
            return Portion(found[0], found[1], more=found[1] + 1 < end)
        try:
            upto = min(start + PORTION_ROWS, end)
            block = Block(start, stream_log.read(self._log, start, upto))
        except RowsGoneError as gone:
            return self._skip(start, gone.first, "the log no longer has them; HISTORY has older samples")
        deliveries = self._engine.replay_arrow(self._query.id, block, self.position)
        # On a disk that another machine writes, the last rows may not be seen yet.
        waits = block.end < upto
        return Portion(deliveries, max(block.end - 1, self.position), upto < end and not waits, waits=waits)

    def _skip(self, start: int, end: int, reason: str) -> Portion:
        dropped = Dropped(start, end - 1, self._arrival(start), self._arrival(end - 1), reason)
        return Portion([], end - 1, True, dropped)

    def _arrival(self, row: int) -> float | None:
        try:
            return float(stream_log.read(self._log, row, row + 1)["arrival"][0]) / 1e6
        except (RowsGoneError, IndexError):
            return None
