"""One join by itself, from tables of the log to answers: the whole way in one process."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from skerry.joins.group import Group
from skerry.joins.intake import Intake
from skerry.joins.join import Join
from skerry.joins.operator import Operator
from skerry.joins.row_windows import RowWindowOperator
from skerry.joins.rows import Algorithm

_NAME = "join"


class SingleJoin:
    """``schemas``: the fields of each stream. Raises JoinError."""

    def __init__(self, join: Join, schemas: Mapping[str, pa.Schema], algorithm: Algorithm) -> None:
        group = Group(schemas, algorithm, join.lateness_us)
        group.add(_NAME, join)
        counted = join.graph.has_rows
        self._streams = {*join.streams.values()}
        self.intake = Intake(group, count_unkeyed=counted)
        self.operator: Operator | RowWindowOperator = RowWindowOperator(group) if counted else Operator(group)

    def feed(self, streams: Mapping[str, pa.Table]) -> pa.Table:
        """Answers that the next rows of the log bring, by stream as :class:`~skerry.joins.intake.Intake` takes them."""
        own = {name: table for name, table in streams.items() if name in self._streams}
        rows = self.intake.take(own)
        return self.operator.advance(rows, self.intake.progress.us)[_NAME]

    def finish(self) -> pa.Table:
        """Answers that waited: all streams have ended."""
        return self.operator.finish()[_NAME]
