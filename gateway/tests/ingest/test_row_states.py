"""States that the gateway makes of rows: an epoch is told once, in its order, by all rows that are there in its time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from construct import Container

from gateway.tests.logs import plan_of
from skerry.ingest.ingest import Ingest
from skerry.ingest.roll import SingleNetwork
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.waits import BY_DEFAULT
from skerry.planner.physical.merge import merge
from skerry.storage.log.record import Kind
from skerry.storage.log.stream_log import StreamLog, read
from skerry.streams.stream import Derived, Source, Stream
from skerry_protocol.codec import Packet, Result
from skerry_protocol.codes import Aggregate, PacketType

PERIOD_MS, MOTES = 2000, (1, 2, 3)


def stream(number: int, plan: QueryPlan) -> Stream:
    return Stream(number, 1, number, merge([plan]))


ROWS, MORE_ROWS, SUMS, OWN = (
    stream(number, plan_of(f"SELECT {what} FROM sensors SAMPLE PERIOD 2 s"))
    for number, what in enumerate(("light", "light", "COUNT(*), SUM(light)", "COUNT(*), SUM(light)"), 1)
)


class Known(SingleNetwork):
    """Three motes; readers of ``OWN`` have read ``SUMS`` before epoch 6."""

    wait_ms = 12_000

    def motes(self, session: int, stream: Stream) -> int | None:
        del session, stream
        return len(MOTES)

    def waits(self, stream: Stream) -> Mapping[int, int]:
        del stream
        return {BY_DEFAULT: self.wait_ms}

    def predecessors(self, stream: Stream) -> Mapping[int, int]:
        return {SUMS.number: 6 * PERIOD_MS} if stream is OWN else {}


class Station:
    """A gateway that makes ``SUMS`` of ``ROWS`` before epoch 5 and of ``MORE_ROWS`` from there on."""

    def __init__(self, data: Path) -> None:
        self.roll, self.log = Known(), StreamLog(data)
        self.ingest = Ingest(roll=self.roll)
        change_ms = 5 * PERIOD_MS
        views = {
            ROWS.number: [Derived(SUMS, 0, change_ms)],
            MORE_ROWS.number: [Derived(SUMS, change_ms, None)],
        }
        streams = {one.number: one for one in (ROWS, MORE_ROWS, SUMS, OWN)}
        self.source = Source(streams.get, lambda _: None, views=lambda of: views.get(of.number, []))

    def row(self, of: Stream, epoch: int, *motes: int) -> None:
        """Their light is a hundred times their number."""
        packets = [
            Packet(
                PacketType.RESULT,
                Result(query=of.query, node=m, epoch=epoch, nulls=0, values=self.light(m)),
            )
            for m in motes
        ]
        self.ingest.store(packets, self.source, self.log, self.roll.now_ms)

    def light(self, mote: int) -> bytes:
        return (100 * mote).to_bytes(int(ROWS.mote_query.columns[0].format.size), "little")

    def at(self, now_ms: int) -> None:
        self.roll.now_ms = now_ms
        self.ingest.release(self.log, now_ms)

    def told(self) -> list[tuple[int, int, int, int]]:
        """Stream, epoch, motes and the sum of their light."""
        records = read(self.log.path, 0, self.log.rows)
        mine = records[records["kind"] == Kind.TOLD]
        kinds = [column.aggregate for column in SUMS.mote_query.columns]
        light = mine["value"][:, kinds.index(Aggregate.SUM)]
        columns = (mine["stream"], mine["epoch"], mine["motes"], light)
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def revised(self) -> int:
        records = read(self.log.path, 0, self.log.rows)
        return int((records["kind"] == Kind.REVISED).sum())


@pytest.fixture
def station(tmp_path: Path) -> Station:
    made = Station(tmp_path)
    for epoch in (2, 3):
        made.roll.now_ms = epoch * PERIOD_MS + 500
        made.row(ROWS, epoch, *MOTES)
    return made


def test_an_epoch_that_lacks_a_row_is_told_before_those_of_the_rows_that_follow(station: Station) -> None:
    station.at(4 * PERIOD_MS + 500)
    station.row(ROWS, 4, 1, 2)
    station.at(5 * PERIOD_MS + 500)
    station.row(MORE_ROWS, 5, *MOTES)
    station.row(ROWS, 4, 3)
    station.at(5 * PERIOD_MS + 1500)
    assert [(epoch, motes, light) for _, epoch, motes, light in station.told()] == [
        (epoch, 3, 600) for epoch in (2, 3, 4, 5)
    ]
    assert station.revised() == 0


def test_what_is_lost_is_waited_for_and_no_longer(station: Station) -> None:
    station.at(4 * PERIOD_MS + 500)
    station.row(ROWS, 4, 1, 2)
    station.row(MORE_ROWS, 5, *MOTES)
    station.at(4 * PERIOD_MS + 11_900)
    assert [epoch for _, epoch, _, _ in station.told()] == [2, 3]
    station.at(4 * PERIOD_MS + 12_000)
    assert [(epoch, motes) for _, epoch, motes, _ in station.told()][2:] == [(4, 2), (5, 3)]


def test_who_waits_less_long_is_told_in_his_time(station: Station) -> None:
    station.roll.wait_ms = 1000
    station.at(4 * PERIOD_MS + 500)
    station.row(ROWS, 4, 1, 2)
    station.at(4 * PERIOD_MS + 1000)
    assert station.told()[-1][1:3] == (4, 2)
    station.row(ROWS, 4, 3)
    station.at(4 * PERIOD_MS + 1500)
    assert len(station.told()) == 3
    assert station.revised() == 1


def test_readers_of_another_stream_are_told_it_behind_the_rows_that_they_read_before(
    station: Station,
) -> None:
    station.at(5 * PERIOD_MS + 500)
    station.row(MORE_ROWS, 5, 1, 2)
    states = [Container(count=3, value=600)] * 2
    body = Container(query=OWN.query, node=0, epoch=6, motes=3, overflow=0, states=states)
    station.at(6 * PERIOD_MS + 500)
    station.ingest.store([Packet(PacketType.PARTIAL, body)], station.source, station.log, station.roll.now_ms)
    station.at(6 * PERIOD_MS + 1000)
    station.row(MORE_ROWS, 5, 3)
    station.at(6 * PERIOD_MS + 4000)
    assert [told[:3] for told in station.told()][2:] == [(SUMS.number, 5, 3), (OWN.number, 6, 3)]
