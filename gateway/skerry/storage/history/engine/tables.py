"""The tables that a question's rows are joined with, as relations for DuckDB (:mod:`skerry.storage.history.engine.joins`)."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from skerry.planner.model.plans import QueryPlan
from skerry.storage.history.engine.expressions import columns_of
from skerry.storage.history.engine.joins import (
    FIRST,
    PLACE,
    UNTIL,
    attributes_of,
    earlier_name,
    leaves_of,
    table_name,
)
from skerry.storage.history.engine.messages import EarlierRows, Question, Reading
from skerry.storage.history.engine.sources import open_past
from skerry.tables import table_file
from skerry.tables.pairs import column_in
from skerry_protocol.attributes import BY_NAME


def open_tables(connection: duckdb.DuckDBPyConnection, question: Question) -> None:
    """Make the relations in a connection. Raises as :func:`skerry.storage.history.engine.sources.open_past`."""
    plan = question.plan
    for number, (probe, table) in enumerate(zip(plan.probes, question.tables, strict=True)):
        if isinstance(table, EarlierRows):
            names = columns_of(sorted({*attributes_of(plan, probe), BY_NAME["nodeid"].number}))
            open_past(connection, table.sources, names, earlier_name(number))
            continue
        name = table_name(number)
        if len(table.readings) == 1:
            connection.register(name, rows_of(plan, number, table.readings[0]))
            continue
        # One after the other, so that memory need not have room for them all.
        for i, reading in enumerate(table.readings):
            connection.register("reading", rows_of(plan, number, reading))
            into = f'INSERT INTO "{name}"' if i else f'CREATE OR REPLACE TEMP TABLE "{name}" AS'
            connection.execute(f"{into} SELECT * FROM reading")
            connection.unregister("reading")


def rows_of(plan: QueryPlan, number: int, reading: Reading) -> pa.Table:
    """What a query reads of a table, and which rows meet it. Raises FileNotFoundError."""
    probe = plan.probes[number]
    table = table_file.read(Path(reading.path), number)
    everything = np.arange(table.rows)
    columns: dict[str, pa.Array] = {}
    for name, leaf in leaves_of(plan, probe).items():
        column, _ = column_in({probe.table.called: (table, everything)}, leaf)
        if column.text is not None:
            columns[name] = column.text
        else:
            values, known = column.vector(leaf.digits)
            columns[name] = pa.array(values, pa.int64(), mask=~known)
    columns[PLACE] = pa.array(everything, pa.int64())
    columns |= {
        name: pa.repeat(pa.scalar(row, pa.int64()), table.rows)
        for name, row in ((FIRST, reading.first), (UNTIL, reading.until))
    }
    return pa.table(columns)
