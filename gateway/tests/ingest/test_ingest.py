"""Rows that cannot be stored are not taken for stored: the root sends them again, and they count once."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from skerry.ingest.ingest import Ingest
from skerry.ingest.roll import SingleNetwork
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.planner import plan_query
from skerry.storage.log.record import Kind
from skerry.storage.log.segments import Segments
from skerry.storage.log.stream_log import StreamLog, read
from skerry.streams.stream import Source, Stream
from skerry_protocol import codec
from skerry_protocol.codec import Packet
from skerry_protocol.codes import PacketType


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Files of this process grow no larger: what the system says of a full disk, it says of this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def stream(number: int, sql: str) -> Stream:
    plan = plan_query(sql)
    assert isinstance(plan, QueryPlan)
    return Stream(number=number, session=1, query=number, mote_query=merge([plan]))


def packets(epochs: range) -> list[Packet]:
    """A row of query 1 and a partial state of query 2 for each epoch."""
    made = []
    for epoch in epochs:
        row = codec.encode(
            PacketType.RESULT, query=1, node=7, epoch=epoch, nulls=0, values=epoch.to_bytes(2, "little")
        )
        state = [{"count": 1, "value": 0}]
        partial = codec.encode(PacketType.PARTIAL, query=2, epoch=epoch, motes=1, overflow=0, states=state)
        made += [codec.decode(row), codec.decode(partial)]
    return made


def test_what_a_full_disk_refused_is_taken_when_it_comes_again(tmp_path: Path) -> None:
    streams = {
        1: stream(1, "SELECT temp FROM sensors SAMPLE PERIOD 1 s"),
        2: stream(2, "SELECT COUNT(*) FROM sensors SAMPLE PERIOD 1 s"),
    }
    roll = SingleNetwork()
    ingest, source, log = Ingest(roll=roll), Source(streams.get, lambda _: None), StreamLog(tmp_path)
    ingest.store(packets(range(3)), source, log)
    before = replace(ingest.counters)
    with (
        largest_file(Segments(log.path).segment(0).stat().st_size),
        pytest.raises(OSError, match="File too large"),
    ):
        # The partial states of epochs 1 and 2 would be merged with those stored.
        ingest.store(packets(range(1, 6)), source, log)
    assert log.rows == 6
    assert ingest.counters == before
    ingest.store(packets(range(1, 6)), source, log)
    roll.now_ms = 3600_000
    size = Segments(log.path).segment(0).stat().st_size
    with largest_file(size), pytest.raises(OSError, match="File too large"):
        ingest.tell(log)
    ingest.tell(log)
    stored = read(log.path, 0, log.rows)
    rows, states = (stored[stored["stream"] == number] for number in (1, 2))
    told = states[states["kind"] == Kind.TOLD]
    assert rows["epoch"].tolist() == [0, 1, 2, 3, 4, 5]
    assert ingest.counters.duplicates == 2
    assert [(int(state["epoch"]), int(state["motes"])) for state in told] == [
        (0, 1), (1, 2), (2, 2), (3, 1), (4, 1), (5, 1),
    ]  # fmt: skip
