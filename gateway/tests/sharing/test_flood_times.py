"""When what is asked begins: once all motes have heard of it, however seldom they listen and however far away they are."""

from __future__ import annotations

import pytest

from gateway.tests.catalog.test_motes import status
from gateway.tests.network.test_networks import hello, networks
from gateway.tests.sharing.plans import kept, plan, rows
from skerry.catalog import Catalog
from skerry.planner.features.srt import Axis, Srt
from skerry.sharing.demand import Demand
from skerry.sharing.flood_times import control_windows, frames_of
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codec import Packet
from skerry_protocol.codes import PacketType, Policy
from skerry_protocol.limits import FRAGMENT_MAXIMUM

ONCE = "SELECT humidity FROM sensors ONCE"


def at_rest(hops: int = 0, *asked: str) -> Demand:
    """The demand of a network whose users have asked this long ago."""
    demand = Demand()
    demand.hops = hops
    for text in asked:
        demand.add_user(text, plan(text), 100)
    demand.advance(900)
    return demand


@pytest.mark.parametrize(("now", "window"), [(1003.2, 1008), (1006.9, 1008), (1007.1, 1024), (1008.0, 1024)])
def test_a_cut_over_waits_until_a_slow_network_has_listened(now: float, window: int) -> None:
    demand = Demand()
    demand.add_user("a", rows("temp", "10 s"), 100)
    (installed,) = demand.add_user("b", rows("light", "10 s"), now).install
    assert window <= installed.start <= window + 18
    old, new = demand.feeds("a")
    assert old.until_ms == new.since_ms
    assert new.since_ms >= window * 1000
    demand.advance(installed.start + 60)
    (less,) = demand.remove_user("b", now + 200).install
    assert less.start >= now + 200
    assert less.start >= -(-(now + 201) // 16) * 16


@pytest.mark.parametrize("hops", range(0, 33, 4))
def test_what_has_an_end_begins_when_the_farthest_mote_has_heard_of_it(hops: int) -> None:
    starts = []
    for asked in (
        "SELECT temp FROM sensors SAMPLE PERIOD 2 s",
        "SELECT temp FROM sensors SAMPLE PERIOD 1 min",
    ):
        (installed,) = at_rest(hops, asked).add_user("u", plan(ONCE), 1001.5).install
        starts.append(installed.start)
    fast, slow = starts
    assert fast == max(1010, 1004 + 4 * (hops // 4) + 2)
    assert slow == 1008 + 16 * (hops // 4) + 8 + 16, "and a window more, for who has lost it"


def test_a_flood_of_more_frames_takes_more_windows() -> None:
    assert [control_windows(hops, 1) for hops in (0, 3, 4, 8, 12)] == [1, 1, 2, 3, 4]
    assert [control_windows(hops, 2) for hops in (0, 1, 2, 3, 6, 21)] == [1, 1, 2, 3, 5, 15]
    assert [control_windows(hops, 9) for hops in (0, 1, 5)] == [1, 2, 6]
    assert frames_of([bytes(FRAGMENT_MAXIMUM), bytes(FRAGMENT_MAXIMUM + 1)]) == 3


def test_queries_asked_at_one_time_are_on_their_way_together() -> None:
    alone, among = at_rest(6), at_rest(6)
    among.add_user("before", rows("AVG(temp)", "1 min"), 1000)
    starts = [demand.add_user("u", plan(ONCE), 1001).install[0].start for demand in (alone, among)]
    assert starts[0] < starts[1]


def test_who_joins_a_stream_begins_when_all_motes_run_that() -> None:
    demand = at_rest(6)
    demand.add_user("a", rows("temp", "1 min"), 1001)
    assert demand.add_user("b", rows("temp", "1 min", length="FOR 3 min"), 1002).install == ()
    assert demand.feeds("a")[0].since_ms == 1_080_000, "motes six hops away hear of it at 1024"
    assert demand.feeds("b")[0].since_ms == 1_080_000
    demand.add_user("c", rows("temp", "1 min", length="FOR 3 min"), 1102)
    assert demand.feeds("c")[0].since_ms == 1_140_000
    again = kept(demand)
    again.hops = demand.hops
    starts = [one.add_user("d", rows("light", "1 min"), 1102).install[0].start for one in (demand, again)]
    assert starts[0] == starts[1]


def test_a_network_is_not_fast_before_its_fast_query_has_come_to_all() -> None:
    demand = at_rest(12)
    demand.add_user("fast", rows("temp", "2 s"), 1000)
    (soon,) = demand.add_user("u", plan(ONCE), 1030).install
    assert soon.start >= 1030 + 3 * 16
    (later,) = demand.add_user("v", plan(ONCE), 1200).install
    assert later.start <= 1200 + 1 + 4 * 5


@pytest.mark.parametrize("hops", [3, 12])
def test_a_network_stays_fast_while_a_flood_is_on_its_way_that_was_to_spread_in_a_fast_one(hops: int) -> None:
    fast = "SELECT temp FROM sensors SAMPLE PERIOD 2 s"
    demand = at_rest(hops, fast)
    (query,) = (one.query for one in demand.installations())
    for number, what in enumerate(("AVG(temp)", "MAX(light)", "MIN(humidity)")):
        demand.add_user(f"u{number}", rows(what, "1 min", f"light > {number}"), 1000)
    known = max(one.start for one in demand.installations())
    assert known == (1018 if hops == 3 else 1054)
    # Motes are awake for 32 s more once they have heard of the stop.
    stopped = [
        now
        for now in range(1001, known)
        if query in (demand.remove_user(fast, now) if now == 1001 else demand.advance(now)).stop
    ]
    assert stopped == [max(1001, known - 32)]


def test_a_network_is_fast_no_longer_than_motes_hold_a_fast_query_that_is_over() -> None:
    demand = at_rest()
    demand.add_user("fast", rows("AVG(temp)", "2 s", length="FOR 100 s"), 1000)
    (feed,) = demand.feeds("fast")
    assert feed.until_ms == 1_116_000
    demand.advance(1127)
    assert demand.has("fast"), "its last epoch may still be told"
    (installed,) = demand.add_user("u", rows("light", "1 min"), 1128).install
    assert installed.start == 1136 + 8


def test_a_young_network_that_grows_slow_while_a_flood_is_on_its_way() -> None:
    for now, begins in ((100, 118), (140, 144 + 16 * 4 + 8)):
        demand = Demand()
        demand.hops = 12
        assert demand.add_user("u", plan(ONCE), now).install[0].start == begins


def test_rows_of_a_deep_network_have_time_to_come() -> None:
    for hops, over in ((0, 10), (8, 10), (20, 22)):
        demand = at_rest(hops)
        demand.add_user("u", rows("temp", "1 min", length="FOR 1 min"), 1000)
        (feed,) = demand.feeds("u")
        assert feed.until_ms is not None
        assert demand.advance(feed.until_ms / 1000 + over - 1).finished == ()
        assert demand.advance(feed.until_ms / 1000 + over).finished == ("u",)


def test_hops_are_those_that_motes_tell() -> None:
    catalog = Catalog()
    assert catalog.levels(0, 10) == []
    for node, level, root in ((1, 1, 0), (2, 4, 0), (3, 0xFF, 0), (4, 9, 100)):
        catalog.update(status(node=node, level=level), 1000, root)
    assert (catalog.levels(0, 1001), catalog.levels(100, 1001)) == ([1, 4], [9])
    catalog.update(status(node=1, level=1, uptime=90_000), 90_000, 0)
    assert catalog.levels(0, 90_000) == [1], "mote 2 has not been heard for a day"


def test_a_network_knows_its_depth_by_its_motes_reports_after_a_restart_too() -> None:
    network = networks(1, 0).all[0]
    network.hear([Packet(PacketType.STATUS, status(node=5, level=7))])
    assert network.demand.hops == 7
    network.demand = Demand()
    network.greet(hello(0, seconds=101))
    assert network.demand.hops == 7


@pytest.mark.parametrize(
    ("fast", "starts"),
    [
        ("SELECT temp FROM sensors SAMPLE PERIOD 2 s", 1010),
        ("SELECT temp FROM sensors SAMPLE PERIOD 2 s QUEUE DELTA SEND PERIOD 8 s", 1010),
        ("SELECT temp FROM sensors SAMPLE PERIOD 2 s QUEUE DELTA SEND PERIOD 10 s", 1032),
        ("SELECT temp FROM sensors SAMPLE PERIOD 2 s QUEUE NAIVE SEND PERIOD 1 min", 1032),
        ("SELECT temp FROM sensors WHERE nodeid < 5 SAMPLE PERIOD 2 s", 1032),
        ("SELECT temp FROM sensors WHERE temp < 5 SAMPLE PERIOD 2 s", 1010),
    ],
)
def test_motes_listen_often_for_what_they_hold_and_send_often(fast: str, starts: int) -> None:
    """By the time from one row that may go to the next; a query with a route is held by those it may concern."""
    demand = Demand()
    demand.route_by([Srt("tree", 1, Policy.LINK, (Axis(BY_NAME["nodeid"].number, 0, 1),))])
    demand.add_user("a", plan(fast), 100)
    (installed,) = demand.add_user("u", plan(ONCE), 1001.5).install
    assert installed.start == starts


def test_what_the_gateway_makes_of_rows_keeps_no_mote_awake() -> None:
    demand = Demand()
    demand.add_user("a", plan("SELECT accel_x FROM sensors SAMPLE PERIOD 500 ms"), 100)
    demand.add_user(
        "b", plan("SELECT nodeid, PULSES(accel_x > 0.3, 1 s) FROM sensors SAMPLE PERIOD 500 ms"), 100
    )
    demand.advance(900)
    demand.remove_user("a", 900)
    demand.remove_user("b", 900)
    assert demand.installations() == ()
    (installed,) = demand.add_user("u", plan(ONCE), 1001.5).install
    assert installed.start == 1032
