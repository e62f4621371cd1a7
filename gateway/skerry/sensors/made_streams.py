"""CREATE STREAM x AS SELECT …: the plan of what fills such a stream, and the table under whose name it is read and joined further.

The table has one tuple, the stream's, whose address is the SELECT; fields are the columns of that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import MADE, STREAMS, SourceOutput, SourcePlan, Term
from skerry.sensors.definitions import TIME, Column, Field, SensorTable
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError

#: What stands between the table's name and a field's, where it must be said.
ROW = "row"
#: The number of the one tuple.
TUPLE = 1
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class MadeColumns:
    """``written``: by column of the stream's batches the term over answers that it is; ``read``: what a user of all of it sees."""

    written: tuple[tuple[str, Term], ...]
    read: tuple[SourceOutput, ...]


def made_columns(outputs: tuple[SourceOutput, ...], span: Span) -> MadeColumns:
    """Of what a SELECT gives: the last part of a name is the field's; the answers' time is the rows' own. Raises QueryError."""
    written, read = list[tuple[str, Term]](), list[SourceOutput]()
    for output in outputs:
        name = output.name.rpartition(".")[2]
        if output.term.op == "column" and output.term.value == plans.TIME and name.lower() == TIME:
            continue
        if not _NAME.fullmatch(name) or name.lower() in (TIME, ROW):
            hint = f"give it one with AS: letters, digits and _, and not {TIME} or {ROW}"
            raise QueryError(f"'{output.name}' is no name for a field", hint, span)
        column = f"{ROW}.{name.lower()}"
        if column in dict(written):
            raise QueryError(f"two fields are named '{name}'", "name one of them with AS", span)
        written.append((column, output.term))
        read.append(SourceOutput(name, Term("column", output.term.type, (), column), output.unit))
    if not written:
        raise QueryError("the stream has no fields", f"select more than {TIME}", span)
    return MadeColumns(tuple(written), tuple(read))


def table_of(plan: SourcePlan, owner: str, query: str) -> SensorTable:
    """The table of a stream that a query fills, by its plan."""
    assert plan.join is not None
    fields = tuple(map(_field, plan.outputs))
    column = Column(ROW, plans.TEXT, "", fields, plan.join.executed()["made"]["behind_us"])
    return SensorTable(plan.made, owner, MADE - STREAMS + int(query), (column,))


def _field(output: SourceOutput) -> Field:
    kind = output.term.type.removesuffix("[]")
    kind = plans.TEXT if kind == plans.NULL else kind
    return Field(output.name, kind, output.unit, output.term.type.endswith("[]"))
