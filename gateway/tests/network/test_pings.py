"""What becomes of records from mote to mote, as their ARRIVAL says."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from skerry.network.pings import Pinged, Pings, arguments, check
from skerry.sql.errors import QueryError
from skerry_protocol import codec
from skerry_protocol.codes import CommandStatus, Outcome, PacketType
from skerry_protocol.ways import Ping


def arrival(token: int, outcome: int, way: tuple[int, ...] = (), **changed: Any) -> Any:
    ping = Ping.build(
        {
            "carries": 1,
            "token": token,
            "seconds": 99,
            "ticks": 32000,
            "way": struct.pack(f"<{len(way)}H", *way),
        }
    )
    fields = {
        "node": 7,
        "source": 3,
        "outcome": outcome,
        "hops": 3,
        "seconds": 101,
        "ticks": 232,
        "ping": ping,
    }
    return codec.decode(codec.encode(PacketType.ARRIVAL, **(fields | changed))).body


@pytest.fixture
def pings() -> Pings:
    made = Pings()
    made.add(Pinged(5, 3, 7, 60))
    return made


def test_an_arrival_tells_hops_time_and_way(pings: Pings) -> None:
    pings.arrival(arrival(5, Outcome.ARRIVED, (2, 65534)))
    found = pings.find(5)
    assert found == Pinged(5, 3, 7, 60, None, [], "arrived", 3, 1.031, [3, 2, 65534, 7])


def test_what_arrived_is_not_late_afterwards(pings: Pings) -> None:
    """The mote that sent it may have missed the acknowledgement."""
    pings.arrival(arrival(5, Outcome.LATE, hops=0, node=3))
    assert (found := pings.find(5))
    assert found.outcome == "late"
    pings.arrival(arrival(5, Outcome.ARRIVED))
    pings.arrival(arrival(5, Outcome.NO_WAY))
    assert found.outcome == "arrived"


def test_what_is_not_of_a_ping_changes_nothing(pings: Pings) -> None:
    for body in (
        arrival(6, Outcome.ARRIVED),
        arrival(5, Outcome.ARRIVED, source=4),
        arrival(5, 77),
        arrival(5, 0, ping=b"\x01\x05"),
    ):
        pings.arrival(body)
    pings.answer(3, 5, CommandStatus.DONE)
    assert (found := pings.find(5))
    assert found.outcome is None
    pings.answer(3, 5, CommandStatus.UNKNOWN_OP)
    assert found.outcome == "the mote's firmware knows no ping"


def test_arguments_are_a_mote_or_a_place() -> None:
    assert arguments(Pinged(5, 3, 258, 60)) == bytes([2, 1, 60, 0])
    assert arguments(Pinged(5, 3, 258, 60, by=[4, 2, 258])) == bytes([2, 1, 60, 0, 2, 3, 0x80, 4])
    by_place = arguments(Pinged(5, 3, None, 60, (1.5, -2)))
    assert struct.unpack("<HHii", by_place) == (65535, 60, 150, -200)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ((3, 3, 60, None), "mote 3 has no way to itself"),
        ((3, 65535, 60, None), "65535 is no mote"),
        ((-1, 3, 60, None), "-1 is no mote"),
        ((3, None, 60, None), "mote 3 is to ping nobody"),
        ((3, 4, 0, None), "a ping cannot be under way for 0 s"),
        ((3, None, 60, None, [4, 4]), "no mote of 4, 4 sends to itself"),
        ((3, 7, 60, None, [4]), "a way by motes that are named ends at the last of them"),
        ((3, None, 60, None, [1000, 0] * 5), "10 motes are too many to name"),
        ((3, None, 60, (0.0, 1639.0)), "place 0, 1639 is too far away"),
    ],
)
def test_bad_questions_are_told(asked: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        check(*asked)
