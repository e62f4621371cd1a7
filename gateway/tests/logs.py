"""Generated logs: rows of two streams as the gateway writes them and as DuckDB reads them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from gateway.tests.generated import NAMES, Row, rows_of_motes
from skerry.delivery.engine import Engine
from skerry.planner.model.joined_tables import NO_TABLES, Tables
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.planner import plan_query
from skerry.storage.log.record import RECORD, Block, Records
from skerry.streams.stream import Stream

EVERYTHING = f"SELECT {', '.join(NAMES)} FROM sensors SAMPLE PERIOD"


def plan_of(sql: str, tables: Tables = NO_TABLES) -> QueryPlan:
    plan = plan_query(sql, tables=tables)
    assert isinstance(plan, QueryPlan)
    return plan


#: By number: the same motes at 5 s, then at 2 s.
PERIODS = {1: 5000, 2: 2000}
STREAMS = {
    number: Stream(
        number, 1, number, dataclasses.replace(merge([plan_of(f"{EVERYTHING} {ms} ms")]), where=None)
    )
    for number, ms in PERIODS.items()
}


@dataclass
class Log:
    """Rows of both streams, as the gateway writes them and as DuckDB reads them."""

    records: Records
    rows: list[Row]

    def block(self, first: int, end: int) -> Block:
        return Block(first, self.records[first:end])


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Rows with known edges and NULLs, some late, some of a stream that began meanwhile."""
    kinds = draw(st.lists(rows_of_motes, min_size=1, max_size=8))
    pool = [row for rows in kinds for row in rows]
    jumps = draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(1, 120))
    rows: list[Row] = []
    silent = 0
    records = np.zeros(count, RECORD)
    for i in range(count):
        stream = int(rng.integers(1, 3))
        silent += int(rng.integers(0, 900)) if jumps and rng.random() < 0.1 else 0
        # Rows of before the silence may come after it.
        epoch = max(0, i // 3 - int(rng.integers(0, 3)) + (silent if rng.random() < 0.9 else 0))
        row = {
            **pool[rng.integers(len(pool))],
            "temp": int(rng.integers(1800, 2600)),
            "nodeid": int(rng.integers(9)),
        }
        rows.append({"row": i, "stream": stream, "sample": epoch * PERIODS[stream], **row})
        record = records[i : i + 1]
        record["stream"], record["node"], record["epoch"] = stream, row["nodeid"], epoch
        for c, column in enumerate(STREAMS[stream].mote_query.columns):
            value = row[column.name]
            record["value"][0, c] = value or 0
            record["nulls"] |= (value is None) << c
    return Log(records, rows)


def happenings(*others: str, most: int) -> st.SearchStrategy[list[tuple[str, int]]]:
    """What happens next, ``most`` times at most: see :class:`Replay`; ``others`` come with a number to choose by."""
    bounds = {"rows": (1, 40), "again": (1, 30), "restart": (0, 30), **dict.fromkeys(others, (0, 99))}
    kinds = [st.tuples(st.just(kind), st.integers(*between)) for kind, between in bounds.items()]
    return st.lists(st.one_of(kinds), min_size=3, max_size=most)


@dataclass
class Replay:
    """A log on its way through an engine, that may get rows again and may start anew."""

    log: Log
    #: Makes an engine.
    make: Callable[[], Engine]
    #: Who joins each engine.
    join: Callable[[Engine], None]
    #: Gives an engine a batch.
    process: Callable[[Engine, Block], int] = Engine.process
    end: int = 0
    _back: int = 0

    def __post_init__(self) -> None:
        self.engine = self.make()
        self.join(self.engine)

    def step(self, kind: str, number: int) -> None:
        """So many rows come, a batch comes again with so many rows that it had, or the gateway starts anew and goes back by so many."""
        match kind:
            case "rows":
                first, self.end = max(0, self.end - self._back), min(self.end + number, len(self.log.rows))
                self._back = 0
                self.process(self.engine, self.log.block(first, self.end))
            case "again":
                self.process(self.engine, self.log.block(max(0, self.end - number), self.end))
            case "restart":
                self.engine, self._back = self.make(), number
                self.join(self.engine)


def seen(value: object) -> object:
    """A value of DuckDB's as users see it: decimals as doubles."""
    return value if value is None or isinstance(value, bool | int | str) else float(str(value))


def steady(count: int) -> Log:
    """Rows of one mote at stream 1, whose temperature rises."""
    records = np.zeros(count, RECORD)
    records["stream"], records["epoch"] = 1, np.arange(count)
    temp = [column.name for column in STREAMS[1].mote_query.columns].index("temp")
    records["value"][:, temp] = 2000 + np.arange(count)
    rows: list[Row] = [
        {**dict.fromkeys(NAMES, 0), "row": i, "stream": 1, "sample": 5000 * i, "temp": 2000 + i, "nodeid": 0}
        for i in range(count)
    ]
    return Log(records, rows)
