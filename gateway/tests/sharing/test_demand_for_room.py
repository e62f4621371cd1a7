"""Room on motes: who waits for it, what is refused, and that nobody who is served loses anything by it."""

from __future__ import annotations

import pytest

from gateway.tests.sharing.plans import plan, rows, state_of
from skerry.planner.model.plans import Difference, QueryPlan
from skerry.sharing.demand import Demand
from skerry.sql.errors import QueryError
from skerry_protocol.limits import QUERIES_MAXIMUM


def events(number: int) -> QueryPlan:
    return plan(f"ON EVENT e{number}: SELECT light FROM sensors SAMPLE PERIOD 2 s FOR 30 s")


def test_limit_of_queries_is_named_and_nothing_changes() -> None:
    demand = Demand()
    for i in range(QUERIES_MAXIMUM):
        demand.add_user(f"u{i}", events(i), 0)
    before = state_of(demand)
    with pytest.raises(QueryError, match=f"at most {QUERIES_MAXIMUM} queries at once"):
        demand.add_user("late", events(99), 50)
    assert state_of(demand) == before


def test_a_place_is_kept_for_changes_of_what_users_share() -> None:
    demand = Demand()
    demand.add_user("a", rows("temp"), 0)
    for i in range(QUERIES_MAXIMUM - 2):
        demand.add_user(f"u{i}", events(i), 0)
    with pytest.raises(QueryError, match="at most"):
        demand.add_user("late", events(99), 50)
    assert len(demand.add_user("b", rows("light", "2 s"), 60).install) == 1


def test_what_needs_room_that_a_change_takes_begins_when_that_is_over() -> None:
    demand = Demand()
    demand.placement.depth = 3
    for name, period in (("temp", "10 s"), ("light", "20 s")):
        demand.add_user(name, rows(f"AVG({name})", period), 0)
    for i in range(5):
        demand.add_user(f"u{i}", events(i), 0)
    demand.advance(100)
    # Both averages share a query from now on, which takes the last place until they do.
    (shared,) = demand.add_user("late", events(99), 200).install
    assert [c.aggregate.name for c in shared.mote_query.columns] == ["AVG", "AVG"]
    assert (demand.feeds("late"), demand.begins_ms("late", 200)) == ((), None)
    begun = [(now, i) for now in range(201, 300) for i in demand.advance(now).install]
    assert [i.mote_query.columns[0].name for _, i in begun] == ["light"]
    assert begun[0][0] == shared.start + 18, (
        "rows of the averages have had their time, and all motes have heard of the stop"
    )
    assert demand.feeds("late")
    assert {feed.query for user in ("temp", "light") for feed in demand.feeds(user)[-1:]} == {shared.query}


def test_who_waits_for_room_is_told_when_he_begins_at_the_earliest() -> None:
    demand = Demand()
    demand.placement.depth = 3
    for i in range(QUERIES_MAXIMUM - 1):
        demand.add_user(f"u{i}", events(i), 0)
    demand.advance(100)
    # Two leave their places, which are free once all motes have heard of it.
    for i in range(2):
        demand.remove_user(f"u{i}", 199)
    demand.add_user("soon", events(50), 199)
    demand.add_user("late", rows("humidity", "5 s"), 200)
    assert demand.feeds("late") == ()
    told = []
    for now in range(200, 300):
        told.append(demand.begins_ms("late", now))
        demand.advance(now + 1)
        if demand.feeds("late"):
            break
    begins = demand.begins_ms("late", now)
    assert begins is not None
    assert begins % 5000 == 0
    assert [early for early in told if early is None or not 200_000 < early <= begins] == []
    assert len(told) > 5


def test_a_change_without_room_waits_for_it() -> None:
    demand = Demand()
    demand.add_user("slow", rows("temp", "60 s"), 0)
    demand.add_user("fast", rows("temp", "1 s"), 0)
    for i in range(QUERIES_MAXIMUM - 2):
        demand.add_user(f"u{i}", events(i), 0)
    demand.add_user("once", plan("SELECT AVG(temp) FROM sensors ONCE"), 100)
    assert len(demand.installations()) == QUERIES_MAXIMUM
    assert demand.remove_user("fast", 101) == Difference()
    assert demand.advance(102) == Difference()
    begun = [(now, i.mote_query.period_ms) for now in range(103, 160) for i in demand.advance(now).install]
    assert [period for _, period in begun] == [60_000]
    assert not demand.has("once")


def test_a_burst_of_users_leaves_one_query() -> None:
    demand = Demand()
    for i, name in enumerate(["temp", "light", "humidity", "voltage", "level", "parent", "xpos", "ypos"]):
        demand.add_user(name, rows(name), 100 + i / 10)
    (installed,) = demand.installations()
    assert len(installed.mote_query.columns) == 8


def test_who_was_promised_a_beginning_keeps_it_while_others_come() -> None:
    """Each newcomer's query took the place of one that had not begun, so that nobody had a row before the last had come."""
    demand = Demand()
    for number in range(60):
        now = 100 + 3 * number
        demand.add_user(f"u{number}", rows("temp", where=f"light > {1000 - number}"), now)
        for _ in range(3):
            demand.advance(now)
            now += 1
    for now in range(280, 320):
        demand.advance(now)
    for number in range(60):
        begin = demand.begins_ms(f"u{number}", 320)
        assert begin is not None
        # Two floods, and what a beginning may move; and his own period.
        assert begin <= (100 + 3 * number + 2 * 8 + 8 + 10) * 1000, number


def test_a_user_who_leaves_before_the_cut_over_leaves_the_old_query_running() -> None:
    demand = Demand()
    (old,) = demand.add_user("a", rows("temp"), 0).install
    (new,) = demand.add_user("b", rows("temp, light", "1 s"), 100).install
    assert demand.remove_user("b", 101) == Difference(stop=(new.query,))
    assert demand.installations() == (old,)
    assert demand.feeds("a")[-1].until_ms is None
    assert demand.advance(500) == Difference()


@pytest.mark.parametrize("refused_at", [103, 150])
def test_what_motes_refuse_ends_nothing_that_ran(refused_at: int) -> None:
    demand = Demand()
    (old,) = demand.add_user("a", rows("temp"), 0).install
    (new,) = demand.add_user("b", rows("temp, light", "1 s"), 100).install
    for now in range(100, refused_at):
        demand.advance(now)
    demand.refused(new.query)
    told = demand.advance(refused_at)
    # He who came has a query of his own, which motes may refuse again.
    (alone,) = (one for one in told.install if demand.feeds_of(one.query)[0].user == "b")
    for now in range(refused_at, refused_at + 60):
        demand.refused(alone.query)
        told = demand.advance(now)
    feed = demand.feeds("a")[-1]
    assert feed.until_ms is None
    running = {one.query: one.mote_query for one in demand.installations()}
    assert set(running) == {feed.query, alone.query}
    assert running[feed.query] == old.mote_query
    if refused_at == 103:
        assert demand.feeds("a") == (feed,), "it has never ended"
    # Others share with those who were there.
    demand.add_user("c", rows("temp"), 400)
    assert demand.query_of("c") == feed.query
