"""What the networks of a gateway know of each other, and what a restart knows of them."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from construct import Container

from gateway.tests.logs import plan_of
from skerry.network.network import Common, Network, root_of
from skerry.network.networks import Networks
from skerry.sql.errors import QueryError
from skerry.storage.state.database import Changes, Row, StateDatabase
from skerry.streams.handover import Handover
from skerry_protocol import codec
from skerry_protocol.codes import PacketType
from skerry_protocol.limits import QUERIES_MAXIMUM

FAST = "SELECT nodeid FROM sensors SAMPLE PERIOD 1 s"


def hello(node: int, session: int = 1, seconds: int = 100, queries: bytes = b"") -> Container[Any]:
    return Container(node=node, session=session, seconds=seconds, ticks=0, query_version=0, queries=queries)


def networks(count: int, *heard: int) -> Networks:
    """So many, of which these, by place, have been heard: roots 0, 100, …"""
    common = Common()
    made = Networks([Network(lambda _: None, common) for _ in range(count)], common)
    for place in heard:
        made.all[place].greet(hello(100 * place))
    return made


def remembered(made: Networks, links: list[str], directory: Path) -> dict[str, list[Row]]:
    """The state as it is read again."""
    database, changes = StateDatabase(directory), Changes()
    counters = {"id": 1, "last_query": 0, "last_group": made.placement.last_group, "mote_memory": made.placement.memory}  # fmt: skip
    changes.whole("gateway", [counters])
    made.save(changes, links, None)
    database.save(changes)
    found = database.load()
    database.close()
    assert found is not None
    return found


def test_a_user_is_a_user_of_all_networks() -> None:
    made = networks(2, 0, 1)
    made.add_user("u", plan_of(FAST))
    assert sorted(made.feeds("u")) == [1, 2]
    assert [made.streams[number].root for number in (1, 2)] == [0, 100]
    assert made.remove_user("u")
    assert made.feeds("u") == {}
    assert [stream.until_ms is not None for stream in made.streams.values()] == [True, True]


def test_who_has_no_room_is_in_no_network() -> None:
    made = networks(2, 0, 1)
    for number in range(QUERIES_MAXIMUM):
        text = f"ON EVENT e{number}: SELECT light FROM sensors SAMPLE PERIOD 2 s FOR 30 s"
        made.add_user(str(number), plan_of(text))
    before = [network.demand.installations() for network in made.all]
    with pytest.raises(QueryError, match="at most"):
        made.add_user("u", plan_of(FAST))
    assert made.feeds("u") == {}
    assert [network.demand.installations() for network in made.all] == before
    assert "u" not in made.placement


def test_a_root_that_is_heard_later_begins_with_what_is_asked_by_then() -> None:
    made = networks(2, 0)
    made.add_user("u", plan_of(FAST))
    assert sorted(made.feeds("u")) == [1]
    assert made.all[1].greet(hello(100))
    assert sorted(made.feeds("u")) == [1, 2]


def test_a_query_ends_when_it_has_ended_where_roots_are_heard() -> None:
    made = networks(2, 0)
    made.add_user("u", plan_of(f"{FAST} FOR 5 s"))
    made.all[0].clock.restart(1000, 0, time.time())
    assert made.advance() == (True, ["u"])
    made.all[1].greet(hello(100))
    assert made.feeds("u") == {}


def test_a_query_does_not_end_while_its_rows_may_wait_at_the_root() -> None:
    made = networks(1, 0)
    [network] = made.all
    made.add_user("u", plan_of(f"{FAST} FOR 5 s"))
    network.reachable = False
    network.clock.restart(140, 0, time.time())
    assert made.advance() == (False, [])
    network.reachable = True
    network.greet(hello(0, seconds=141))
    assert made.advance() == (False, [])
    network.clock.stamp(152, time.time() + 11)
    network.missed()
    assert made.advance() == (False, [])
    network.clock.stamp(163, time.time() + 22)
    assert made.advance() == (True, ["u"])


def test_a_query_does_not_wait_for_ever_for_a_root_that_is_lost() -> None:
    made = networks(1, 0)
    [network] = made.all
    made.add_user("u", plan_of(f"{FAST} FOR 5 s"))
    network.reachable = False
    network.clock.restart(700, 0, time.time())
    assert made.advance() == (False, [])
    network.clock.restart(750, 0, time.time())
    assert made.advance() == (True, ["u"])


def test_a_root_that_has_lost_its_count_of_sessions_is_told_the_last_one() -> None:
    sent = list[bytes]()
    network = Network(sent.append, Common())
    network.greet(hello(7, session=1000))
    network.adopt(network.demand.add_user("u", plan_of(FAST), 0))
    network.clock.restart(5000, 0, time.time())

    def told(session: int, seconds: int = 3, node: int = 7) -> int | None:
        """What the root is told, whose HELLO says this."""
        sent.clear()
        last = network.renewed(hello(node, session=session, seconds=seconds))
        packets = [codec.decode(packet) for packet in sent]
        assert [(packet.type, packet.body.node, packet.body.session) for packet in packets] == (
            [] if last is None else [(PacketType.SESSION, node, last)]
        )
        return last

    assert told(1000, seconds=5001) is None, "it goes on"
    assert told(1000) == 1000, "its time has gone back"
    assert told(1) == told(999) == told(1000 + 0x8000) == 1000
    assert told(1001) is None
    assert told(1000 + 0x7FFF) is None
    assert told(1, node=8) is None, "another root"
    # Another root is behind the link for a while, and the first one, flashed again meanwhile, comes back: its rows are there still.
    assert network.greet(hello(8, session=1))
    assert told(1000) is None
    assert told(998) == 1000


def test_names_of_sessions_go_round_and_sessions_do_not_repeat() -> None:
    made = networks(1)
    [network] = made.all
    made.add_user("u", plan_of(FAST))
    seen = list[int]()
    for session in (60_000, 65_535, 1, 30_000, 60_000, 5):
        assert network.renewed(hello(0, session=session, seconds=3)) is None
        assert network.greet(hello(0, session=session, seconds=3))
        assert root_of(network.session) == 0
        seen.append(network.session)
    assert seen == sorted(set(seen))
    assert [session & 0xFFFF for session in seen] == [60_000, 65_535, 1, 30_000, 60_000, 5]
    assert sorted(made.feeds("u")) == [6]


def test_a_count_of_sessions_that_leaps_is_told(caplog: pytest.LogCaptureFixture) -> None:
    [network] = networks(1, 0).all
    # Whatever level another test has left.
    with caplog.at_level("WARNING"):
        network.greet(hello(0, session=3, seconds=3))
        assert not caplog.messages
        network.greet(hello(0, session=20_000, seconds=3))
    assert caplog.messages == [
        "root 0 counts its sessions from 20000 on, after 3: it seems to have been flashed again, or replaced"
    ]


def test_a_session_of_weeks_is_the_same_however_its_crystal_drifts(tmp_path: Path) -> None:
    before = networks(1, 0)
    plan, weeks = plan_of(FAST), 20 * 86_400
    before.add_user("u", plan)
    before.remembered()
    assert not before.clock_drifted()
    before.all[0].clock.restart(190, 0, time.time())
    assert before.clock_drifted()
    before.remembered()
    assert not before.clock_drifted()
    state = remembered(before, ["a"], tmp_path)
    for seconds, new in ((weeks - 150, False), (weeks - 300, True)):
        after = networks(1)
        after.restore(state, ["a"], {"u": plan}, ["u"])
        after.all[0].clock.assume((190.0, time.time() + 190 - weeks, 1.0))
        assert after.all[0].renewed(hello(0, seconds=seconds)) == (1 if new else None)


def test_what_is_known_goes_by_the_link_and_else_by_one_that_is_gone(tmp_path: Path) -> None:
    before = networks(2, 0, 1)
    plan = plan_of(FAST)
    before.add_user("u", plan)
    state = remembered(before, ["a", "b"], tmp_path)
    after = networks(3)
    after.restore(state, ["c", "b", "new"], {"u": plan}, ["u"])
    assert [network.session for network in after.all] == [1, 100 << 16 | 1, 0]
    assert sorted(after.feeds("u")) == [1, 2]
    assert not after.all[0].greet(hello(0))
    assert after.all[2].greet(hello(200))
    assert sorted(after.feeds("u")) == [1, 2, 3]


def test_time_goes_on_for_what_has_an_end_while_gateway_and_root_are_off(tmp_path: Path) -> None:
    before = networks(1, 0)
    plan = plan_of(f"{FAST} FOR 1 h")
    before.add_user("u", plan)
    state = remembered(before, ["a"], tmp_path)
    for hours, left_s in ((0.5, 1800), (2, None)):
        [clock] = state["clocks"]
        clock["utc_s"] -= hours * 3600
        after = networks(1)
        after.restore(state, ["a"], {"u": plan}, ["u"])
        assert after.all[0].greet(hello(0, session=2, seconds=5))
        if left_s is None:
            assert after.feeds("u") == {}
            assert after.advance()[1] == ["u"]
        else:
            [feed] = after.feeds("u").values()
            assert feed.until_ms is not None
            assert (feed.until_ms - feed.since_ms) / 1000 == pytest.approx(left_s, abs=20)


def test_who_asked_for_the_past_keeps_what_he_had_when_the_root_restarts() -> None:
    made = networks(1, 0)
    made.add_user("other", plan_of(FAST))
    made.all[0].clock.restart(200, 0, time.time())
    made.add_user("u", plan_of(f"{FAST} HISTORY 1 h"))
    handovers: dict[int, Handover] = {}
    had = made.joined_feeds("u", handovers, 1000)
    assert (had[1].since_ms, had[1].until_ms) == (108_000, None)
    made.all[0].greet(hello(0, session=2, seconds=3))
    assert sorted(made.joined_feeds("u", handovers, 1000)) == [2]


def changed(made: Networks, table: str) -> list[int]:
    """The streams, or the mote queries, that are written again."""
    changes = Changes()
    made.save(changes, ["a"], [])
    number = {"streams": "number", "mote_queries": "query"}[table]
    return [row[number] for _, of, _, rows in changes.steps if of == table for row in rows]


def test_only_streams_and_mote_queries_that_are_new_or_have_changed_are_remembered_again(
    tmp_path: Path,
) -> None:
    made = networks(1, 0)
    made.add_user("u", plan_of(FAST))
    assert changed(made, "streams") == changed(made, "mote_queries") == [1]
    made.remembered()
    assert changed(made, "streams") == changed(made, "mote_queries") == []
    made.all[0].greet(hello(0, session=2))
    assert changed(made, "streams") == [2]
    made.remembered()
    made.streams[1] = replace(made.streams[1], until_ms=5000)
    assert changed(made, "streams") == [1]
    after = networks(1)
    after.restore(remembered(made, ["a"], tmp_path), ["a"], {"u": plan_of(FAST)}, ["u"])
    assert after.streams == made.streams
    assert changed(after, "streams") == changed(after, "mote_queries") == []
