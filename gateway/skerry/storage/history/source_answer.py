"""A query's answer over the past of sources that are no motes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from skerry.execution.deliveries import Delivery
from skerry.planner.model.plans import QueryPlan
from skerry.storage.history import source_layout
from skerry.storage.history.answer import PIECE_ROWS
from skerry.storage.history.engine.engine import MovedError, PastEngine
from skerry.storage.history.engine.messages import Question, SourceFile, Sources, Timing
from skerry.storage.history.engine.waiting import Waiting
from skerry.storage.history.manifest import directory_of
from skerry.storage.history.sorting import most_ordered
from skerry.storage.history.store import History

#: How often a piece is asked for anew because files or segments went meanwhile.
_ATTEMPTS = 5


class SourceAnswer:
    """One query's rows among those of the log before ``end``. ``log``: its directory; ``since_us``: where the query's span begins, UTC."""

    def __init__(
        self, plan: QueryPlan, history: History, log: Path, engine: PastEngine, since_us: int, end: int
    ) -> None:
        self._plan, self._history, self._log, self._engine = plan, history, log, engine
        self._since_us, self._end = since_us, end
        #: What the engine keeps for the next piece goes by it.
        self._key = engine.key()

    def forget(self) -> None:
        """Nobody wants more of it."""
        self._engine.forget(self._key)

    def after(self, position: int, waiting: Waiting) -> tuple[list[Delivery], int, bool]:
        """As :meth:`skerry.storage.history.answer.Answer.after`."""
        for _ in range(_ATTEMPTS):
            question = Question(
                0, self._key, self._plan, self._sources(), Timing(False, 1.0), self._since_us // 1000, position, most_ordered(), PIECE_ROWS
            )  # fmt: skip
            with suppress(MovedError):
                table, reached, more = self._engine.ask(question, waiting)
                batches = table.combine_chunks().to_batches()
                if not batches or not batches[0].num_rows:
                    return [], reached, more
                [batch] = batches
                columns = pa.RecordBatch.from_arrays(
                    batch.columns[1:], schema=pa.schema(list(batch.schema)[1:])
                )
                return [Delivery(batch.column(0).to_numpy(), columns)], reached, more
            self._engine.forget(self._key)
        raise OSError(f"{self._history.path}: files go again and again")

    def _sources(self) -> Sources:
        manifest, plan = self._history.manifest, self._plan.sources
        assert plan is not None
        begins = tuple(source_layout.begins(stream) for stream in plan.streams_read())
        files = tuple(
            SourceFile(str(self._history.path / name), file.rows, False, 0, (), file.first, file.last)
            for name, file in manifest.files.items()
            if directory_of(name).startswith(begins)
            and file.until >= self._since_us
            and file.first < self._end
        )
        compacted = min(manifest.rows, self._end)
        return Sources(files, compacted, str(self._log), 0, self._end, self._since_us, (), ())
