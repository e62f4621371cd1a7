"""Sharing: which mote queries run, and that users see each of their epochs exactly once."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.tests.sharing.plans import plan, rows
from skerry.expressions.expression import render
from skerry.planner.model.periods import ceiling
from skerry.planner.model.plans import Difference, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.planner import plan_point, plan_query
from skerry.sharing.cutover import Reading, choose_cut
from skerry.sharing.demand import Demand
from skerry.sharing.groups import Group
from skerry.sharing.needs import need_of
from skerry.sql.ast import CreatePoint
from skerry.sql.errors import QueryError
from skerry_protocol.codec import decode_program
from skerry_protocol.limits import FOREVER, QUERIES_MAXIMUM


def test_two_users_of_the_same_attributes_share_one_query_at_the_faster_rate() -> None:
    demand = Demand()
    first = demand.add_user("a", rows("temp", "10 s"), 100)
    demand.advance(200)
    second = demand.add_user("b", rows("temp * 2", "4 s"), 200)
    assert [i.mote_query.period_ms for i in first.install + second.install] == [10_000, 4_000]
    assert [column.name for column in second.install[0].mote_query.columns] == ["temp"]
    demand.advance(300)
    assert demand.installations() == second.install


def test_a_user_who_asks_less_than_the_stream_gives_changes_nothing() -> None:
    demand = Demand()
    demand.add_user("a", rows("temp, light", "5 s"), 100)
    assert demand.add_user("b", rows("light", "20 s", "temp > 25"), 150) == Difference()
    assert demand.feeds("b")[0].query == demand.feeds("a")[0].query


def test_stream_sends_only_rows_that_somebody_wants() -> None:
    demand = Demand()
    demand.add_user("a", rows("temp", where="temp > 30"), 100)
    change = demand.add_user("b", rows("temp", where="temp < 10"), 101)
    where = change.install[0].mote_query.where
    assert where is not None
    assert render(where) == "(temp < 10) OR (temp > 30)"
    change = demand.add_user("c", rows("temp"), 102)
    assert change.install[0].mote_query.where is None


def test_many_ranges_are_covered_by_the_range_around_them() -> None:
    demand = Demand()
    for i in range(60):
        demand.add_user(f"u{i}", rows("temp", where=f"temp BETWEEN {i} AND {i}.5"), 100)
    for now in range(101, 150):
        demand.advance(now)
    (running,) = demand.installations()
    assert running.mote_query.where is not None
    assert render(running.mote_query.where) == "(temp >= 0) AND (temp <= 59.5)"


def test_rate_goes_down_when_the_fast_user_leaves() -> None:
    demand = Demand()
    demand.add_user("slow", rows("temp", "60 s"), 0)
    demand.add_user("fast", rows("temp, light", "1 s"), 50)
    demand.advance(100)
    change = demand.remove_user("fast", 100)
    assert change.install[0].mote_query.period_ms == 60_000
    assert [c.name for c in change.install[0].mote_query.columns] == ["temp"]
    assert change.stop == ()
    stopped = demand.advance(130).stop
    assert len(stopped) == 1
    assert demand.installations() == change.install


def test_last_user_stops_the_query() -> None:
    demand = Demand()
    query = demand.add_user("a", rows("temp"), 0).install[0].query
    assert demand.remove_user("a", 50).stop == (query,)
    assert demand.installations() == ()


def test_aggregates_share_by_period_and_condition() -> None:
    demand = Demand()
    demand.add_user("a", plan("SELECT AVG(temp) FROM sensors SAMPLE PERIOD 10 s"), 0)
    assert demand.add_user(
        "b", plan("SELECT SUM(temp), COUNT(temp) FROM sensors SAMPLE PERIOD 10 s"), 50
    ) == (Difference())
    other = demand.add_user("c", plan("SELECT AVG(temp) FROM sensors WHERE level > 1 SAMPLE PERIOD 10 s"), 60)
    assert len(other.install) == 1
    assert other.stop == ()
    more = demand.add_user("d", plan("SELECT MAX(temp) FROM sensors SAMPLE PERIOD 10 s"), 70)
    assert [c.aggregate.name for c in more.install[0].mote_query.columns] == ["AVG", "MAX"]


def test_a_join_of_motes_ends_when_its_last_epoch_is_joined() -> None:
    """By ways rows are waited for for four epochs, and what passes its host for 10 s more."""
    demand = Demand(lead_seconds=8, linger_seconds=10)
    joined = plan(
        "SELECT s.nodeid, t.nodeid FROM sensors AS s, sensors AS t WINDOW 3 ROWS "
        "WHERE s.room = t.room AND s.temp > t.temp SAMPLE PERIOD 10 s FOR 60 s JOIN BY HASH"
    )
    (installed,) = demand.add_user("a", joined, 100).install
    assert (demand.feeds("a")[0].until_ms, installed.end) == (170_000, 210)
    for now in range(101, 170 + 40 + 10 + 10):
        assert demand.advance(now) == Difference()
    ended = demand.advance(170 + 40 + 10 + 10)
    assert (ended.finished, ended.stop) == (("a",), (installed.query,))


def test_for_ends_in_the_program_and_for_the_user() -> None:
    demand = Demand(lead_seconds=8, linger_seconds=10)
    (installed,) = demand.add_user("a", rows("temp", "10 s", length="FOR 60 s"), 100).install
    feed = demand.feeds("a")[0]
    assert (feed.since_ms, feed.until_ms) == (110_000, 170_000)
    assert installed.end == 170
    assert decode_program(installed.program).end == 170
    assert sum(feed.passes(t) for t in range(0, 400_000, 10_000)) == 6
    assert demand.advance(179).finished == ()
    ended = demand.advance(180)
    assert ended.finished == ("a",)
    assert ended.stop == (installed.query,)


def test_a_user_without_end_makes_the_shared_query_endless() -> None:
    demand = Demand()
    demand.add_user("a", rows("temp", length="FOR 60 s"), 100)
    assert demand.add_user("b", rows("temp"), 130).install[0].end == FOREVER


@pytest.mark.parametrize("length", ["ONCE", "SAMPLE PERIOD 4 s FOR 8 s", "SAMPLE PERIOD 4 s"])
@pytest.mark.parametrize(
    ("period", "asked", "now", "begins"),
    [("2 s", 100.0, 1003.2, 1012), ("2 s", 995.0, 1003.2, 1016), ("10 s", 100.0, 1003.2, 1016), ("10 s", 100.0, 1007.5, 1032)],
)  # fmt: skip
def test_queries_wait_until_a_slow_network_has_listened(
    period: str, asked: float, now: float, begins: int, length: str
) -> None:
    demand = Demand()
    # What has but one epoch waits for a window more there.
    begins += 16 if length == "ONCE" and begins > 1012 else 0
    demand.add_user("a", rows("temp", period), asked)
    (installed,) = demand.add_user("b", plan(f"SELECT AVG(temp) FROM sensors {length}"), now).install
    assert installed.start == begins
    assert demand.begins_ms("b", now) == demand.feeds("b")[0].since_ms == begins * 1000


def test_once_is_one_epoch_of_its_own_query() -> None:
    demand = Demand(lead_seconds=8)
    demand.add_user("a", rows("light"), 0)
    (installed,) = demand.add_user("b", plan("SELECT temp FROM sensors ONCE"), 100.4).install
    program = decode_program(installed.program)
    assert (program.flags, program.start, program.end, program.period) == (2, 109, 110, 1000)
    feed = demand.feeds("b")[0]
    assert [t for t in range(100_000, 120_000, 1000) if feed.passes(t)] == [109_000]


def test_once_is_the_next_epoch_of_a_query_that_has_all_it_asks() -> None:
    demand = Demand()
    demand.add_user("a", rows("temp, light", "5 s"), 0)
    demand.add_user("b", rows("AVG(temp)", "10 s", "light > 3"), 0)
    demand.advance(30)
    texts = [
        "temp FROM sensors",
        "light FROM sensors WHERE temp > 20",
        "AVG(temp) FROM sensors WHERE light > 3",
    ]
    for number, (text, first) in enumerate(zip(texts, (105_000, 105_000, 110_000), strict=True)):
        assert demand.add_user(str(number), plan(f"SELECT {text} ONCE"), 100.4) == Difference()
        (feed,) = demand.feeds(str(number))
        assert [t for t in range(100_000, 130_000, 5_000) if feed.passes(t)] == [first]
    assert demand.advance(121).finished == ("0", "1")
    # What an aggregate waits for comes later.
    assert demand.advance(126).finished == ("2",)


def test_of_users_who_came_together_each_is_refused_alone() -> None:
    demand = Demand()
    demand.add_user("a", rows("temp"), 0)
    demand.add_user("b", rows("light"), 0)
    demand.refused(demand.query_of("a") or 0)
    demand.advance(1)
    assert demand.query_of("a") != demand.query_of("b")


def test_ids_are_reused_late() -> None:
    demand = Demand(forget_seconds=0)
    used = []
    for i in range(600):
        used.append(demand.add_user("a", rows("temp"), i * 100).install[0].query)
        demand.remove_user("a", i * 100 + 50)
        demand.advance(i * 100 + 60)
    assert used[:255] == list(range(1, 256))
    assert used[255:300] == list(range(1, 46))


CONDITIONS = [
    "",
    "temp > 25",
    "temp BETWEEN 20 AND 22",
    "temp < 30 AND light > 3",
    "light = 7",
    "temp * light > 3",
    "epoch > 3",
]
plain = st.builds(
    rows,
    st.sampled_from(["temp", "light", "nodeid", "temp, voltage"]),
    st.sampled_from(["10 s", "4 s", "1 min"]),
    st.sampled_from(CONDITIONS) | st.integers(0, 900).map("light BETWEEN {0} AND {0} + 50".format),
)
aggregates = st.sampled_from(["AVG(temp)", "SUM(temp), COUNT(*)", "MAX(light)", "COUNT(light)"]).map(rows)


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(st.lists(plain, min_size=1, max_size=60), st.lists(aggregates, min_size=1, max_size=8)),
    st.randoms(),
)
def test_what_serves_all_is_the_same_whoever_has_gone(plans: list[QueryPlan], random: Random) -> None:
    kind = need_of(plans[0], "").kind
    group, left = Group(1, kind), dict[str, QueryPlan]()
    for number, one in enumerate(plans):
        group.add(str(number), need_of(one, ""))
        left[str(number)] = one
        if len(left) > 1 and random.random() < 0.4:
            gone = random.choice([*left])
            group.remove(gone)
            del left[gone]
        assert group.query() == merge([*left.values()])
        assert group.query_with([need_of(plans[0], "")]) == merge([*left.values(), plans[0]])
        assert group.query() == merge([*left.values()])


def test_name_taken_and_unknown_user() -> None:
    demand = Demand()
    demand.add_user("a", rows("temp"), 0)
    with pytest.raises(ValueError, match="'a' has a query already"):
        demand.add_user("a", rows("temp"), 0)
    with pytest.raises(KeyError):
        demand.remove_user("b", 0)


periods = st.sampled_from([1000, 1500, 2000, 3000, 5000, 7000, 10_000, 60_000])


@given(st.integers(0, 10**6), periods, periods, st.lists(periods, min_size=1))
def test_a_cut_skips_no_epoch(earliest: int, old: int, new: int, users: list[int]) -> None:
    readings = [Reading(period, old, new) for period in users if period >= old]
    cut = choose_cut(earliest, readings)
    assert earliest <= cut <= ceiling(earliest, new)
    assert all(reading.loses_none(cut) for reading in readings)


def test_a_query_between_two_cuts_that_has_no_sample_of_an_epoch_says_nothing_of_it() -> None:
    """Of one that follows soon its last sample was taken to be the user's: he had an epoch twice, or not at all."""
    demand = Demand(lead_seconds=0)
    demand.add_user("a", rows("nodeid", "20 s"), 100)
    demand.add_user("b", rows("light", "7 s"), 117)
    demand.add_user("c", rows("temp", "1 s"), 122)
    feeds = demand.feeds("a")
    had = [
        t
        for f in feeds
        for t in range(f.since_ms, 150_000, 1000)
        if not t % f.stream_period_ms and f.passes(t)
    ]
    assert [f.stream_period_ms for f in feeds] == [20_000, 7000, 1000]
    assert had == [120_000, 140_000]
    # An old query of 5 s from 122 s on: its sample at 120 s was nobody's.
    reading = Reading(20_000, 5000, 3000, 122_000, 119_000)
    assert reading.last_ms(124_000) == 119_000
    assert reading.last_ms(126_000) == 125_000


PERIODS = ["1 s", "1500 ms", "2 s", "3 s", "5 s", "7 s", "20 s"]
PLANS = [
    rows(what, period, where)
    for what in ("temp", "light, epoch", "nodeid")
    for period in PERIODS
    for where in ("", "level > 1")
] + [plan(f"SELECT {what} FROM sensors SAMPLE PERIOD 3 s") for what in ("AVG(temp)", "MAX(light)")]

steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "remove", "wait"]),
        st.integers(0, 4),
        st.sampled_from(PLANS),
        st.integers(0, 40),
    ),
    max_size=25,
)


@settings(max_examples=300)
@given(steps, st.integers(0, 9))
def test_every_user_sees_each_epoch_once_whatever_others_do(
    actions: list[tuple[str, int, QueryPlan, int]], lead: int
) -> None:
    """A network that samples what is installed from the program's start until it is stopped."""
    demand = Demand(lead_seconds=lead, linger_seconds=3, forget_seconds=10**6)
    sampled: dict[int, set[int]] = {}  # query → sample times
    seen: dict[str, list[tuple[int, int]]] = {}  # user's life → (sample time, epoch)
    plans: dict[str, QueryPlan] = {}
    lives: dict[int, str] = {}
    now = 100

    def live_until(end: int) -> None:
        nonlocal now
        while now < end:
            for installation in demand.installations():
                period = installation.mote_query.period_ms
                for t in range(ceiling(now * 1000, period), (now + 1) * 1000, period):
                    if t >= installation.start * 1000:
                        sampled[installation.query].add(t)
            now += 1
            note(demand.advance(now))
        collect()

    def note(change: Difference) -> None:
        for installation in change.install:
            sampled.setdefault(installation.query, set())
        active = {i.query for i in demand.installations()}
        assert len(active) <= QUERIES_MAXIMUM
        assert not active & set(change.stop)

    def collect() -> None:
        for user in plans:
            if user in demand.users():
                found = [
                    (t, t // feed.period_ms)
                    for feed in demand.feeds(user)
                    for t in sampled[feed.query]
                    if feed.passes(t)
                ]
                seen[user] = sorted(found)

    for step, (action, number, chosen, seconds) in enumerate(actions):
        if action == "add" and number not in lives:
            user = f"{number}.{step}"
            try:
                note(demand.add_user(user, chosen, now))
            except QueryError:
                continue
            lives[number], plans[user] = user, chosen
        elif action == "remove" and number in lives:
            collect()
            note(demand.remove_user(lives.pop(number), now))
        live_until(now + seconds)
    live_until(now + 60)

    for user, found in seen.items():
        epochs = [epoch for _, epoch in found]
        assert epochs == list(range(epochs[0], epochs[0] + len(epochs))) if epochs else True
        if user in demand.users():
            period = plans[user].period_ms
            assert epochs, "a user who stayed for a minute sees rows"
            assert (now * 1000 - found[-1][0]) <= 2 * max(period, 3000)


@pytest.mark.parametrize(
    ("what", "snoops"),
    [
        ("MAX(temp)", True),
        ("TOP(3, temp), MIN(light), BOTTOM(2, light)", True),
        ("MAX(temp), AVG(temp)", False),
        ("COUNT(*)", False),
        ("HISTOGRAM(temp, 0, 10, 5)", False),
        ("temp", False),
    ],
)
def test_only_aggregates_that_allow_it_are_withheld(what: str, snoops: bool) -> None:
    difference = Demand().add_user("a", rows(what), 100)
    assert [i.mote_query.snoop for i in difference.install] == [snoops]


@pytest.mark.parametrize(
    ("first", "second", "others"),
    [
        ("WINAVG(10, temp)", "light, WINAVG(10, temp)", ("", "")),
        ("DELTA(1, temp)", "level, DELTA(1, temp)", ("", "")),
        ("EXPAVG(3, temp)", "EXPAVG(3, temp)", ("FOR 1 h", "")),
        ("WINAVG(10, temp)", "WINAVG(10, temp)", ("FOR 1 h", "FOR 1 h")),
        (
            "WINAVG(10, temp)",
            "WINAVG(10, temp)",
            ("FOR 1 h OUTPUT ACTION leds(1)", "FOR 1 h OUTPUT ACTION leds(1)"),
        ),
    ],
)
def test_windows_do_not_begin_anew_because_others_come_and_go(
    first: str, second: str, others: tuple[str, str]
) -> None:
    demand = Demand()
    (own,) = demand.add_user("a", rows(first, length=others[0]), 100).install
    change = demand.add_user("b", rows(second, length=others[1]), 200)
    assert demand.feeds("b")[0].query != own.query
    assert demand.remove_user("b", 300).stop == (change.install[0].query,)
    assert [feed.query for feed in demand.feeds("a")] == [own.query]
    assert demand.installations() == (own,)


def test_windows_of_one_program_are_shared() -> None:
    demand = Demand()
    demand.add_user("a", plan("SELECT temp, WINAVG(10, temp) FROM sensors SAMPLE PERIOD 2 s"), 100)
    text = "SELECT nodeid, WINAVG(10, temp) - temp AS off FROM sensors HAVING WINAVG(10, temp) > 5 SAMPLE PERIOD 2 s"
    assert demand.add_user("b", plan(text), 200) == Difference()


def test_who_asks_what_an_event_has_ended_has_a_query_of_his_own() -> None:
    text = "SELECT temp FROM sensors SAMPLE PERIOD 2 s STOP ON EVENT hot"
    demand = Demand()
    demand.add_user("a", plan(text), 100)
    assert len(demand.add_user("b", plan(text), 4000).install) == 1
    assert demand.feeds("b")[0].query != demand.feeds("a")[0].query


@pytest.mark.parametrize("now", range(100, 106))
@pytest.mark.parametrize(
    ("period", "length", "number"),
    [("1500 ms", "FOR 3", 3), ("1500 ms", "FOR 3 s", 2), ("1500 ms", "FOR 3200 ms", 3), ("2 s", "FOR 5 s", 3),
     ("2500 ms", "FOR 1", 1), ("1001 ms", "FOR 9", 9), ("250 ms", "FOR 3 s", 12)],
)  # fmt: skip
def test_motes_run_as_many_epochs_as_for_says(now: int, period: str, length: str, number: int) -> None:
    """Where the last one ends within a second, too: they keep and act on rows that the gateway never sees."""
    text = f"CREATE STORAGE POINT p SIZE 20 AS SELECT accel_x FROM sensors SAMPLE PERIOD {period} {length}"
    statement = plan_query(text)
    assert isinstance(statement, CreatePoint)
    demand = Demand()
    (made,) = demand.add_user("a", plan_point(statement, 1)[1], now).install
    period_ms = made.mote_query.period_ms
    first = -(-made.start * 1000 // period_ms)
    epochs = [n for n in range(first, first + 50) if n * period_ms // 1000 < made.end]
    assert len(epochs) == number
    (feed,) = demand.feeds("a")
    assert epochs == [n for n in range(first, first + 50) if feed.passes(n * period_ms)]


def test_the_rows_of_a_storage_point_are_waited_for_while_they_come() -> None:
    """ONCE has an epoch of a second, and a long log takes the radio minutes."""
    statement = plan_query("CREATE STORAGE POINT p SIZE 200 (n uint16)")
    assert isinstance(statement, CreatePoint)
    point, _ = plan_point(statement, 1)
    fetch = plan_query("SELECT n FROM p ONCE", {"p": point})
    assert isinstance(fetch, QueryPlan)
    demand = Demand(lead_seconds=8, linger_seconds=10)
    (made,) = demand.add_user("a", fetch, 100).install
    for second in range(110, 300, 35):
        demand.row_came(made.query, second)
        assert not demand.advance(second + 39)
    assert demand.advance(second + 40) == Difference(stop=(made.query,), finished=("a",))
    demand.add_user("b", fetch, 300)
    until_ms = demand.feeds("b")[0].until_ms
    assert until_ms is not None
    assert demand.advance(until_ms / 1000 + 10).finished == ("b",), "nothing has come"
