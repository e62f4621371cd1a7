"""What is kept of a network's demand, and what begins anew with another session."""

from __future__ import annotations

import pytest

from gateway.tests.sharing.plans import kept, plan, rows, state_of
from skerry.planner.planner import plan_point, plan_query
from skerry.sharing.demand import Demand
from skerry.sql.ast import CreatePoint
from skerry_protocol.limits import FOREVER


def test_state_survives_json() -> None:
    demand = Demand()
    demand.add_user("a", rows("temp", "10 s", "temp > 25.5"), 0)
    demand.add_user("b", plan("SELECT AVG(temp) AS t FROM sensors SAMPLE PERIOD 10 s FOR 1 h"), 5)
    demand.add_user("c", rows("light / 3", "7 s"), 60)
    copy = kept(demand)
    assert state_of(copy) == state_of(demand)
    assert copy.installations() == demand.installations()
    for now in (61, 75, 100, 4000):
        assert copy.advance(now) == demand.advance(now)
    assert copy.remove_user("a", 4001) == demand.remove_user("a", 4001)


def test_only_mote_queries_that_have_changed_are_written_again() -> None:
    demand = Demand(linger_seconds=10, forget_seconds=600)
    demand.add_user("a", rows("temp"), 0)
    assert list(demand.query_rows(changed=True)) == [1]
    demand.remembered()
    assert demand.query_rows(changed=True) == {}
    demand.add_user("b", rows("temp, light"), 100)
    changed = demand.query_rows(changed=True)
    assert list(changed) == [1, 2]
    assert (changed[1] or {})["stop_at"] is not None
    demand.remembered()
    demand.advance(200)
    demand.remembered()
    demand.advance(2000)
    assert demand.query_rows(changed=True) == {1: None}
    assert list(demand.query_rows()) == [2]
    assert kept(demand).query_rows(changed=True) == {}


def test_after_a_restart_of_network_time_streams_begin_anew_with_the_rest_of_for() -> None:
    demand = Demand(lead_seconds=8)
    (old,) = demand.add_user("a", rows("temp", "10 s", length="FOR 100 s"), 100).install
    (new,) = demand.restart(last=160, now=2).install
    assert new.query != old.query
    feed = demand.feeds("a")[0]
    assert (feed.since_ms, feed.until_ms) == (10_000, 60_000)


def test_what_has_ended_does_not_begin_anew_while_its_last_rows_are_under_way() -> None:
    """Others come before and after its end."""
    demand = Demand(lead_seconds=8, linger_seconds=10)
    demand.add_user("a", rows("temp", "4 s", length="FOR 40 s"), 20)
    demand.add_user("b", rows("temp", "4 s"), 20)
    assert demand.feeds("a")[0].until_ms == 68_000
    demand.add_user("c", rows("light", "4 s"), 62)
    demand.advance(71)
    before = demand.feeds("a")
    demand.add_user("d", rows("humidity", "4 s"), 72)
    demand.add_user("e", rows("humidity", "2 s"), 73)
    demand.remove_user("e", 74)
    demand.remove_user("d", 75)
    assert demand.feeds("a") == before
    assert demand.advance(78).finished == ("a",)


@pytest.mark.parametrize("last", [195, 201, 1000])
def test_what_for_has_had_of_its_epochs_is_not_asked_for_anew(last: int) -> None:
    demand = Demand(lead_seconds=8)
    demand.add_user("a", rows("temp", "10 s", length="FOR 100 s"), 90)
    demand.add_user("b", rows("light", "10 s"), 90)
    feed = demand.feeds("a")[0]
    assert (feed.since_ms, feed.until_ms) == (100_000, 200_000)
    (new,) = demand.restart(last=last, now=2).install
    assert (demand.feeds("a"), new.end) == ((), FOREVER)
    assert demand.feeds("b")[0].since_ms == 10_000
    assert kept(demand).advance(2).finished == ("a",)
    assert demand.advance(2).finished == ("a",)
    # All epochs of b's were to come with what a asked, too.
    assert [column.name for column in demand.installations()[0].mote_query.columns] == ["light"]


def test_a_query_alone_whose_epochs_have_been_ends_with_its_session() -> None:
    demand = Demand(lead_seconds=8)
    demand.add_user("a", rows("temp", "10 s", length="FOR 100 s"), 90)
    assert not demand.restart(last=195, now=2)
    assert demand.installations() == ()
    assert demand.advance(2).finished == ("a",)


@pytest.mark.parametrize(("last", "again"), [(17, True), (25, True), (29, False)])
def test_once_is_asked_anew_as_long_as_its_rows_may_have_been_under_way(last: float, again: bool) -> None:
    demand = Demand(lead_seconds=8, linger_seconds=10)
    demand.add_user("a", plan("SELECT temp FROM sensors ONCE"), 10)
    assert bool(demand.restart(last=last, now=2).install) is again
    assert demand.advance(2).finished == (() if again else ("a",))


@pytest.mark.parametrize("period", ["10 s", "1500 ms", "250 ms"])
@pytest.mark.parametrize(("epochs", "had"), [(8, 0), (8, 4), (8, 8), (8, 9)])
def test_a_storage_point_is_there_again_and_stores_what_is_left_of_for(
    period: str, epochs: int, had: int
) -> None:
    text = (
        f"CREATE STORAGE POINT p SIZE 20 AS SELECT accel_x FROM sensors SAMPLE PERIOD {period} FOR {epochs}"
    )
    statement = plan_query(text)
    assert isinstance(statement, CreatePoint)
    demand = Demand()
    (made,) = demand.add_user("a", plan_point(statement, 1)[1], 98).install
    period_ms = made.mote_query.period_ms
    (feed,) = demand.feeds("a")
    for now in (2, 200):
        (again,) = demand.restart(last=(feed.since_ms + had * period_ms) / 1000, now=now).install
        demand.advance(now + 1000)
        assert demand.installations() == (again,)
        first = -(-again.start * 1000 // period_ms)
        stored = [n for n in range(first, first + 20) if n * period_ms // 1000 < again.end]
        assert len(stored) == max(0, epochs - had)
        epochs, had = max(0, epochs - had), 99


def test_who_waits_for_an_event_asked_before_network_time_began_anew() -> None:
    """Motes that start with the root tell of it to queries that were asked before; a restart of the gateway changes nothing of that."""
    demand = Demand(lead_seconds=8)
    (first,) = demand.add_user("a", plan("ON EVENT boot SELECT resets ONCE"), 100).install
    (other,) = demand.add_user("b", rows("temp", "10 s"), 100).install
    assert min(first.start, other.start) >= 100
    again = {one.mote_query: one for one in kept(demand).restart(last=160, now=2).install}
    assert again[first.mote_query].start == 0
    assert again[other.mote_query].start > 2
    demand.restart(last=160, now=2)
    (later,) = kept(demand).add_user("c", plan("ON EVENT boot SELECT temp ONCE"), 30).install
    assert later.start >= 30
