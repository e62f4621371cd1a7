"""Rows, revisions and row numbers are a function of the log, however it is cut into batches, and these into parts of executors."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gateway.tests import users, windowed
from gateway.tests.executors import Executors
from gateway.tests.logs import PERIODS, STREAMS, Log
from gateway.tests.windowed import PLACES_TABLE
from skerry.execution.deliveries import Delivery
from skerry.storage.log.record import RECORD
from skerry.tables.store import TableStore

ROWS, WAYS = 3000, 20
Users = list[users.User | windowed.User]


def drawn_log(draw: np.random.Generator) -> Log:
    """Rows of both streams in the order of their epochs, but for those that come some epochs late, and with a silence of an hour."""
    records = np.zeros(ROWS, RECORD)
    records["stream"], records["node"] = draw.integers(1, 3, ROWS), draw.integers(0, 9, ROWS)
    seconds = np.arange(ROWS) // 8 + 3600 * (np.arange(ROWS) > ROWS // 2)
    late = np.where(draw.random(ROWS) < 0.1, draw.integers(0, 120, ROWS), 0)
    periods = np.array([0, *PERIODS.values()])[records["stream"]]
    records["epoch"] = np.maximum(seconds - late, 0) * 1000 // periods
    for number, stream in STREAMS.items():
        of_stream = records["stream"] == number
        for place, column in enumerate(stream.mote_query.columns):
            values = draw.integers(1800, 2600, ROWS) if column.name == "temp" else draw.integers(0, 9, ROWS)
            records["value"][of_stream, place] = values[of_stream]
            if column.name == "light":
                records["nulls"][of_stream & (draw.random(ROWS) < 0.2)] |= 1 << place
    return Log(records, [])


def crowd() -> Users:
    """Users of rows and users of windows: shared ones, since the beginning, in groups, in order, joined with a table."""
    plain: Users = [
        users.User(f"rows {i}", columns, where, period, since, until)
        for i, (columns, where, period, since, until) in enumerate(
            (
                ("nodeid, temp", None, 5000, 0, None),
                ("epoch, light, temp * 3 AS x", "temp BETWEEN 20 AND 22", 10_000, 10_000, 43_000),
                ("humidity, temp > 20 AS warm, nodeid", "nodeid = 3", 30_000, 0, 21_500),
                ("level, xpos", "light IS NULL", 5000, 40_000, None),
            )
        )
    ]
    windows: Users = [
        windowed.User(spans, group, where, having, order, limit, 0, None, name=f"windows {i}", joined=joined)
        for i, (spans, group, where, having, order, limit, joined) in enumerate(
            (
                ([(30_000, 10_000)], None, None, None, None, None, False),
                ([(60_000, 10_000), (15_000, 5000)], "nodeid", "temp > 21", None, None, None, False),
                ([(0, 20_000)], "nodeid", None, None, None, None, False),
                ([(30_000, 15_000)], "nodeid", None, "AVG(temp, {0}) > 21", "AVG(temp, {0})", 2, False),
                ([(30_000, 15_000)], "p.name", None, None, None, None, True),
                ([(0, 60_000)], "p.floor", "temp BETWEEN 20 AND 24", None, None, None, True),
            )
        )
    ]
    return plain + windows


def answers(log: Log, ends: list[int], executors: Executors, tables: TableStore) -> dict[str, bytes]:
    """What each user gets of batches with these ends, as bytes of Arrow's."""
    engine, present = executors.engine(log.block), crowd()
    for user in present:
        if isinstance(user, windowed.User):
            user.join(engine, tables.get if user.joined else None)
        else:
            user.join(engine)
    found: dict[str, list[Delivery]] = {user.name: [] for user in present}
    begin = 0
    for end in ends:
        executors.process(engine, log.block(begin, end))
        for user in present:
            subscriber = engine.subscriber(user.name)
            assert subscriber is not None
            read = subscriber.buffer.deliveries(max(begin - 1, -1), through=end)
            if read is None:
                found[user.name] += engine.replay_arrow(user.name, log.block(begin, end), begin - 1)
            else:
                found[user.name] += read[0]
        begin = end
    empty = [name for name, parts in found.items() if not parts]
    assert not empty, f"nobody has nothing: {empty}"
    return {name: _bytes(parts) for name, parts in found.items()}


def _bytes(parts: list[Delivery]) -> bytes:
    numbers = pa.array(np.concatenate([part.numbers for part in parts]))
    columns = pa.Table.from_batches([part.columns for part in parts])
    # Anew, as parts that were cut out of larger ones keep what was around them.
    table = columns.append_column("number", numbers).take(pa.array(np.arange(len(numbers)))).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("seed", [1])
def test_one_log_in_twenty_ways_gives_the_same_bytes(seed: int, tmp_path: Path) -> None:
    print(f"seed {seed}")
    log, draw = drawn_log(np.random.default_rng(seed)), random.Random(seed)
    (tmp_path / "tables").mkdir()
    pa.parquet.write_table(PLACES_TABLE, tmp_path / "tables" / "places.parquet")
    tables = TableStore(tmp_path / "tables")
    whole = answers(log, [ROWS], Executors(tmp_path / "whole"), tables)
    assert all(len(pa.ipc.open_stream(found).read_all()) >= 5 for found in whole.values())
    for way in range(WAYS):
        cuts = draw.sample(range(1, ROWS), draw.choice((1, 3, 10, 40)))
        # Executors may not know yet what is asked when a batch comes.
        cut = answers(
            log, [*sorted(cuts), ROWS], Executors(tmp_path / str(way), draw.choice((0, 0, 3))), tables
        )
        for user, found in whole.items():
            assert cut[user] == found, f"way {way} of seed {seed}: {user}, cut at {sorted(cuts)}"
