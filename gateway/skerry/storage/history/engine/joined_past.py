"""A join over the past: rows of all of its streams in the order of the log, joined as those are that come now, so that both give the same.

That no more rows come is as if all sources had ended: what waits is answered with what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skerry.execution.join_buckets import columns_of
from skerry.execution.join_intake import numbered, tables_of
from skerry.execution.join_sets import JoinGroup, JoinSets
from skerry.execution.source_rows import SourceRows
from skerry.joins.buckets import BUCKET_BYTES
from skerry.joins.operator import StateLimitError
from skerry.joins.single import SingleJoin
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import Term
from skerry.sensors.evaluate import passes, schema_of, shown
from skerry.sensors.join_conditions import calculated
from skerry.sql.errors import QueryError
from skerry.storage.history.engine.finishing import Numbered
from skerry.storage.history.engine.messages import Question
from skerry.storage.history.engine.source_past import HINT, SourcePast, joined
from skerry.storage.history.engine.stream_past import StreamPast
from skerry.storage.log.record import RECORD

_NAME = "past"


class JoinedPast(SourcePast):
    """One question. What is made of rows is made of the join's answers."""

    def __init__(self, question: Question, ends: Callable[[], bool]) -> None:
        super().__init__(question, ends)
        assert self._plan.join is not None
        spec = self._plan.join.executed()
        sets = JoinSets()
        sets.apply([1, "join", _NAME, 0, spec])
        group = sets.groups[sets.group_of[_NAME]]
        assert isinstance(group, JoinGroup)
        self._group, self._member = group, group.members[_NAME]
        self._streams: dict[int, dict[str, str]] = {}
        for one in spec["streams"].values():
            self._streams.setdefault(one["number"], {plans.SOURCE: plans.INT}).update(_columns(one))

    def whole(self) -> Numbered:
        """The answer, under the number of the last row that there is."""
        return super().whole() or self._answers()

    def _answers(self) -> Numbered:
        plan, parts, numbers = self._plan, list[pa.RecordBatch](), [np.empty(0, np.int64)]
        for came in self._rows(-1):
            rows = came.with_tables(plan.lookups)
            places = pc.indices_nonzero(passes(plan.where, rows.columns, len(rows.numbers)))
            taken = {name: column.take(places) for name, column in rows.columns.items()}
            arrays = [shown(output.term, taken, len(places)) for output in plan.outputs]
            parts.append(pa.RecordBatch.from_arrays(arrays, schema=schema_of(plan)))
            numbers.append(rows.numbers[places.to_numpy()])
            if sum(map(len, numbers)) > self._question.most:
                raise QueryError(f"this past has more than {self._question.most:,} answers", HINT)
        return np.concatenate(numbers), joined(plan, parts)

    def _rows(self, position: int) -> Iterator[SourceRows]:
        """Answers; those that come together have the number of the last record that they are of."""
        join = SingleJoin(
            self._member.join, self._group.group.schemas, self._group.group.algorithm, BUCKET_BYTES
        )
        nothing = np.zeros(0, np.int64), np.zeros(0, RECORD)
        try:
            for upto, streams in self._together(position):
                found = [join.feed(tables_of(self._group, streams, {}, *nothing))]
                if upto is None:
                    found.append(join.finish())
                answers = pa.concat_tables(found, promote_options="permissive")
                if answers.num_rows:
                    table = columns_of(self._member, answers)
                    number = self._number if upto is None else upto
                    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
                    yield SourceRows(np.full(table.num_rows, number, np.int64), columns, self._readings)
        except StateLimitError as error:
            raise QueryError(str(error), HINT) from None

    def _together(self, position: int) -> Iterator[tuple[int | None, dict[int, Any]]]:
        """Rows of all streams up to a record of the log, again and again; None: up to the end."""
        reading = {
            stream: StreamPast(self._question.sources, stream, columns, self._check).rows(position)
            for stream, columns in self._streams.items()
        }
        there: dict[int, SourceRows] = {}
        while True:
            for stream in [stream for stream in reading if stream not in there]:
                found = next(reading[stream], None)
                if found is None:
                    del reading[stream]
                else:
                    there[stream] = found
            # Of the stream whose rows reach least far the next ones may be before those of others.
            upto = min((int(there[stream].numbers[-1]) for stream in reading), default=None)
            taken = {}
            for stream, rows in list(there.items()):
                count = len(rows.numbers) if upto is None else int(rows.numbers.searchsorted(upto, "right"))
                if count:
                    taken[stream] = numbered(_part(rows, 0, count))
                if count == len(rows.numbers):
                    del there[stream]
                else:
                    there[stream] = _part(rows, count, len(rows.numbers))
            yield upto, taken
            if upto is None:
                return


def _part(rows: SourceRows, first: int, end: int) -> SourceRows:
    columns = {name: column.slice(first, end - first) for name, column in rows.columns.items()}
    return SourceRows(rows.numbers[first:end], columns)


def _columns(spec: Mapping[str, Any]) -> dict[str, str]:
    """Of one of a join's streams, the columns of its batches that are read, with their types."""
    found: dict[str, str] = {}
    for name, kind in spec["fields"].items():
        made = calculated(name)
        found |= {name: kind} if made is None else dict(made[1].typed_columns())
    if spec["chosen"] is not None:
        found |= dict(Term.from_list(spec["chosen"]).typed_columns())
    return found
