"""One join by itself, from tables of the log to answers: the whole way in one process."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from skerry.joins.group import Group
from skerry.joins.intake import Intake
from skerry.joins.join import Join
from skerry.joins.operator import Operator
from skerry.joins.outer import OuterOperator
from skerry.joins.row_windows import RowWindowOperator
from skerry.joins.rows import Algorithm

_NAME = "join"


class SingleJoin:
    """``schemas``: the fields of each stream; ``limit_bytes``: it keeps no more, but for windows of rows. Raises JoinError."""

    def __init__(
        self,
        join: Join,
        schemas: Mapping[str, pa.Schema],
        algorithm: Algorithm,
        limit_bytes: int | None = None,
    ) -> None:
        group = Group(schemas, algorithm, join.lateness_us)
        group.add(_NAME, join)
        self._streams = {*join.streams.values()}
        self.intake = Intake(group)
        self.operator: Operator | RowWindowOperator = (
            RowWindowOperator(group)
            if group.has_rows
            else OuterOperator(group, limit_bytes)
            if group.is_outer
            else Operator(group, limit_bytes)
        )

    def feed(self, streams: Mapping[str, pa.Table]) -> pa.Table:
        """Answers that the next rows of the log bring, by stream as :class:`~skerry.joins.intake.Intake` takes them."""
        own = {name: table for name, table in streams.items() if name in self._streams}
        rows = self.intake.take(own)
        progress = self.intake.progress
        return self.operator.advance(rows, progress.us, progress.course)[_NAME]

    def finish(self) -> pa.Table:
        """Answers that waited: all streams have ended."""
        return self.operator.finish()[_NAME]
