"""A mote that stores nothing asks those that store an index, each period or when an event comes: which answers are of what it asked, and
when it has its row."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from firmware.tests.query.mote import COMPLETE, REFUSED, Mote
from gateway.tests.planner.test_indexing import CLIMATE, motes
from skerry.planner.physical.merge import merge
from skerry.planner.physical.mote_memory import MEMORY_BYTES, bytes_taken
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_index
from skerry.sensors.event_questions import ONCE_S
from skerry.sensors.gathering import plan_gathering
from skerry.sql import index_statements
from skerry.sql.index_statements import CreateIndex
from skerry_protocol import ways
from skerry_protocol.codes import Carries
from skerry_protocol.commands import event_number
from skerry_protocol.limits import FOREVER

#: Stores nothing; of the others 1, 3, 5 and 7 do.
ASKING, STORING = 4, (1, 3, 5, 7)
QUESTION = 2
BUTTON, HOT = event_number("button"), event_number("hot")
PLACES = {mote.nodeid: (round(mote.xpos * 10), round(mote.ypos * 10)) for mote in motes()}


def asking(library: Path, sql: str, end: int = FOREVER) -> Mote:
    """The mote in network second 100, with an index and a question."""
    statement = index_statements.parse(CLIMATE)
    assert isinstance(statement, CreateIndex)
    index, plan = plan_index(statement, 7, (), motes())
    assert tuple(sorted(index.storing)) == STORING
    question = plan_gathering(sql, {"climate": index}, PLACES)
    mote = Mote(library)
    mote.identify(ASKING)
    mote.synchronise(100.25)
    assert mote.install(encode(merge([plan]), 0), 1) == COMPLETE
    assert mote.install(encode(merge([question]), 0, end), QUESTION, 2) == COMPLETE
    taken = sum(bytes_taken(merge([one])) for one in (plan, question))
    assert mote.memory_free == MEMORY_BYTES - taken
    mote.run(0.5)
    return mote


def answer(node: int, name: int, *found: tuple[int, int]) -> bytes:
    """What another mote says: value and count for each aggregate."""
    states = b"".join(
        ways.GatheredState.build(
            {"low": value & 0xFFFFFFFF, "high": value >> 32 & 0xFFFFFFFF, "count": count}
        )
        for value, count in found
    )
    fields = {"carries": Carries.GATHERED, "query": QUESTION, "node": node, "epoch": name, "states": states}
    return bytes(ways.Gathered.build(fields))


def rows(mote: Mote) -> list[tuple[int, ...]]:
    """Epoch and values, each of four bytes and none NULL, behind the number of the row, of which there is one."""
    found: list[Any] = [record.body for record in mote.records()]
    bodies = [body for body in found if body.query == QUESTION]
    assert all(body.nulls == 0 and bytes(body.values[:2]) == bytes(2) for body in bodies)
    return [
        (body.epoch, *(value for (value,) in struct.iter_unpack("<i", body.values[2:]))) for body in bodies
    ]


def test_it_has_its_row_when_all_have_answered(query_library: Path) -> None:
    sql = "SELECT COUNT(*), MIN(temp), AVG(temp) FROM climate AT MOTE 4 SAMPLE PERIOD 10 s"
    mote = asking(query_library, sql)
    mote.run(10)
    for node in STORING[:-1]:
        assert mote.gathers(answer(node, 11, (0, 2), (-500 - node, 2), (-(2**33), 2)))
    # Again, of another epoch, of one that stores nothing, and malformed.
    assert mote.gathers(answer(1, 11, (0, 9), (0, 9), (0, 9)))
    assert mote.gathers(answer(7, 10, (0, 9), (0, 9), (0, 9)))
    assert not mote.gathers(answer(6, 11, (0, 9), (0, 9), (0, 9)))
    assert not mote.gathers(answer(7, 11, (0, 9), (0, 9)))
    mote.run(1)
    assert not rows(mote)
    assert mote.gathers(answer(7, 11, (0, 2), (100, 2), (3 * 2**33 + 12, 2)))
    mote.run(1)
    assert rows(mote) == [(11, 8, -505, 2)]


def test_it_has_a_row_of_what_has_come_when_the_period_is_over(query_library: Path) -> None:
    mote = asking(
        query_library, "SELECT COUNT(*) FROM climate AT MOTE 4 HAVING COUNT(*) > 2 SAMPLE PERIOD 10 s"
    )
    mote.run(10)
    assert mote.gathers(answer(1, 11, (0, 3)))
    mote.run(8)
    assert not rows(mote)
    mote.run(2)
    assert [epoch for epoch, *_ in rows(mote)] == [11]
    # HAVING does not let it pass.
    assert mote.gathers(answer(1, 12, (0, 2)))
    mote.run(10)
    assert not rows(mote)


def test_the_last_period_asks_nothing(query_library: Path) -> None:
    # FOR 2 periods, and one that ends the second.
    mote = asking(query_library, "SELECT COUNT(*) FROM climate AT MOTE 4 SAMPLE PERIOD 10 s", end=121 + 10)
    mote.run(32)
    assert [epoch for epoch, *_ in rows(mote)] == [11, 12]
    mote.run(30)
    assert not rows(mote)


def test_an_event_asks_once(query_library: Path) -> None:
    mote = asking(query_library, "ON EVENT button: SELECT COUNT(*) FROM climate AT MOTE 4")
    mote.run(60)
    # It was in second 150, and is heard of now.
    mote.event(BUTTON, node=6, seconds=150)
    mote.run(2)
    for node in STORING:
        assert mote.gathers(answer(node, 150, (0, node)))
    mote.run(1)
    assert rows(mote) == [(150, sum(STORING))]
    mote.run(2 * ONCE_S)
    assert not rows(mote)
    mote.event(BUTTON, node=6, seconds=800)
    mote.run(2)
    assert mote.gathers(answer(3, 800, (0, 5)))
    mote.run(ONCE_S - 3)
    assert not rows(mote)
    mote.run(2)
    assert rows(mote) == [(800, 5)]


def test_an_event_asks_several_times(query_library: Path) -> None:
    mote = asking(
        query_library, "ON EVENT hot: SELECT COUNT(*) FROM climate AT MOTE 4 SAMPLE PERIOD 20 s FOR 1 min"
    )
    mote.event(HOT, node=6, seconds=95)
    for turn in range(3):
        mote.run(2)
        assert mote.gathers(answer(3, 95 + 20 * turn, (0, turn)))
        mote.run(18)
    mote.run(60)
    assert rows(mote) == [(95, 0), (115, 1), (135, 2)]


@pytest.mark.parametrize("overlap", [True, False])
def test_of_two_events_that_come_in_any_order_the_same_one_asks(query_library: Path, overlap: bool) -> None:
    heard = []
    for order in ((90, 92), (92, 90)):
        words = "" if overlap else " NO OVERLAP"
        mote = asking(query_library, f"ON EVENT hot{words}: SELECT COUNT(*) FROM climate AT MOTE 4")
        for seconds in order:
            mote.event(HOT, node=seconds % 7, seconds=seconds)
            mote.run(3)
        for name in (90, 92):
            for node in STORING:
                assert mote.gathers(answer(node, name, (0, name)))
        mote.run(2)
        heard.append(rows(mote))
    one = 92 if overlap else 90
    assert heard == [[(one, one * len(STORING))]] * 2


def test_what_is_said_of_the_event_is_asked_when_it_comes(query_library: Path) -> None:
    sql = "ON EVENT hot(temp): SELECT event.temp, COUNT(*) FROM climate WHERE event.nodeid = 6 AND event.temp > 30 AT MOTE 4"
    mote = asking(query_library, sql)
    for node, value, asks in ((5, 3500, False), (6, 3000, False), (6, 3200, True)):
        mote.event(HOT, node=node, seconds=95 + node, value=value)
        mote.run(2)
        for other in STORING:
            mote.gathers(answer(other, 95 + node, (0, 1)))
        mote.run(2)
        assert rows(mote) == [(95 + node, 3200, len(STORING))] * asks


def test_a_question_to_an_index_that_is_not_known_has_no_row(query_library: Path) -> None:
    mote = asking(query_library, "SELECT COUNT(*) FROM climate AT MOTE 4 SAMPLE PERIOD 10 s")
    mote.stop(1)
    mote.run(60)
    assert not rows(mote)
    assert not mote.gathers(answer(1, 13, (0, 1)))


def test_a_condition_of_an_event_is_checked(query_library: Path) -> None:
    statement = index_statements.parse(CLIMATE)
    assert isinstance(statement, CreateIndex)
    index, _ = plan_index(statement, 7, (), motes())
    sql = "ON EVENT hot: SELECT COUNT(*) FROM climate WHERE event.nodeid = 6 AT MOTE 4"
    program = encode(merge([plan_gathering(sql, {"climate": index}, PLACES)]), 0)
    at = program.index(HOT.to_bytes(2, "little") + (ONCE_S + 1).to_bytes(4, "little"))
    # The first of the condition's code is no operation.
    broken = program[: at + 12] + b"\xff" + program[at + 13 :]
    assert Mote(query_library).install(broken, 1) == REFUSED
    assert Mote(query_library).install(program, 1) == COMPLETE
