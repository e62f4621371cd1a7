"""Users come and go while motes listen for queries seldom: what the gateway asks of them begins when all have heard of it."""

from __future__ import annotations

from collections import Counter

import pytest

from hil_tests.soaked import soaked
from hil_tests.users import Users
from skerry_protocol.codes import PacketType
from skerry_testbed.pytest import MakeNetwork, disc, grid, line_of
from skerry_testbed.queries import ask, create_srt, rows


def seen(users: Users, user: str) -> Counter[tuple[int, int]]:
    """How often a user has had each (mote, ms of the sample)."""
    found = Counter[tuple[int, int]]()
    for feed in users.demand.feeds(user):
        installation = users.demand.installation(feed.query)
        assert installation is not None
        for row in rows(users.net.line, feed.query, installation.mote_query):
            sample_ms = row["epoch"] * feed.stream_period_ms
            if feed.passes(sample_ms):
                found[row["nodeid"], sample_ms // feed.period_ms] += 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("idle_s", [251, *soaked([257, 263])])
def test_nobody_misses_an_epoch_of_a_slow_network_when_others_come_and_go(
    network: MakeNetwork, idle_s: int
) -> None:
    net = network(line_of(7, spacing=10), radio=disc(12), seed=idle_s)
    net.advance("30s")
    users = Users(net)
    users.add("ada", "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 15 s")
    users.advance(idle_s)
    users.add(
        "grace", "SELECT nodeid, light, humidity, voltage FROM sensors WHERE light < 900 SAMPLE PERIOD 15 s"
    )
    users.advance(180)
    users.remove("grace")
    users.advance(180)
    had = seen(users, "ada")
    last = max(epoch for _, epoch in had)
    expected = {(node, epoch) for node in net.motes for epoch in range(last - 25, last)}
    assert sorted(expected - had.keys()) == []
    assert max(had.values()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, *soaked(range(3, 7))])
def test_all_motes_of_a_deep_network_answer_once_at_rest(network: MakeNetwork, seed: int) -> None:
    net = network(grid(9, 2, spacing=10), radio=disc(12, reception=0.9), seed=seed)
    users = Users(net)
    users.advance(250 + 7 * seed)
    users.add("ada", "SELECT nodeid, temp FROM sensors ONCE")
    users.advance(130)
    feeds = [installation.query for installation in users.demand.installations()]
    assert feeds == [], "it is over"
    answered = {record.body.node for record in net.line.of(PacketType.RESULT, 1)}
    assert answered == set(net.motes)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rare",
    [
        "SELECT light FROM sensors SAMPLE PERIOD 4 s QUEUE NAIVE SEND PERIOD 1 min",
        "SELECT light FROM sensors WHERE nodeid < 2 SAMPLE PERIOD 4 s",
    ],
)
@pytest.mark.parametrize("seed", [1, 3, *soaked([2, *range(4, 8)])])
def test_all_motes_answer_once_beside_what_few_hold_or_is_sent_rarely(
    network: MakeNetwork, rare: str, seed: int
) -> None:
    """With seeds 1, 3, 4 and 7 one window was not enough beside a routed query: those that hold it flood while others are asleep."""
    net = network(line_of(4, spacing=10), radio=disc(12), seed=seed)
    net.advance("40s")
    users = Users(net)
    tree = create_srt(net, 100, "CREATE SRT places ON sensors (nodeid)", lambda _: [*net.motes])
    users.demand.route_by([tree])
    users.advance(60)
    users.add("grace", rare)
    # The last window in which all are awake was two seconds ago.
    users.advance(306 - int(net.line.network_time()))
    users.add("ada", "SELECT nodeid, temp FROM sensors ONCE")
    users.advance(100)
    assert {record.body.node for record in net.line.of(PacketType.RESULT, 2)} == set(net.motes)


@pytest.mark.parametrize("seed", [1, *soaked([2, 3])])
def test_queries_take_the_places_of_those_that_stop_in_the_same_window(
    network: MakeNetwork, seed: int
) -> None:
    """Motes whose eight places are taken hear of three stops and three queries at once: no stop is lost behind the next."""
    net = network(grid(4, 3, spacing=10), radio=disc(15), seed=seed)
    net.advance("40s")
    users = Users(net)
    for number in range(1, 9):
        users.add(f"old {number}", f"SELECT EXPAVG({number}, temp) FROM sensors SAMPLE PERIOD 5 s")
    users.advance(30)
    for number in range(1, 4):
        users.remove(f"old {number}")
    for number in range(1, 4):
        users.add(f"new {number}", f"SELECT EXPAVG({number}, light) FROM sensors SAMPLE PERIOD 5 s")
    users.advance(60)
    for number in range(1, 4):
        (feed,) = users.demand.feeds(f"new {number}")
        sent = {
            (record.body.node, record.body.epoch) for record in net.line.of(PacketType.RESULT, feed.query)
        }
        first = feed.since_ms // 5000
        assert sent >= {(node, epoch) for node in net.motes for epoch in range(first, first + 3)}


@pytest.mark.parametrize(
    ("periods", "seed"),
    [
        (("5 s", "10 s"), 1),
        (("10 s", "60 s"), 2),
        (("2 s", "10 s"), 1),
        *soaked((("5 s", "10 s"), seed) for seed in range(2, 5)),
    ],
)
def test_nobody_takes_a_parent_for_lost_that_has_heard_earlier_of_a_query_s_end(
    network: MakeNetwork, periods: tuple[str, str], seed: int
) -> None:
    """The root had gone over to the windows of a slow network, to which its children came 14 s later, and did not listen for what they
    sent meanwhile: they looked for other parents, and rows of the query that went on were up to 42 s late."""
    leaving, staying = periods
    net = network(grid(3, 2, spacing=10), radio=disc(12), seed=seed)
    net.advance("30s")
    query = ask(net, 1, f"SELECT nodeid, temp FROM sensors SAMPLE PERIOD {staying}")
    net.advance("130s")
    for number in range(2, 5):
        ask(net, number, f"SELECT nodeid, light FROM sensors SAMPLE PERIOD {leaving}", lead_s=20)
        # Stops at several places between two windows of a slow network.
        net.advance("53s")
        net.line.stop(number)
        net.advance("48s")
    parents = {
        (sent.source, told.body.parent)
        for frame, sent, told in net.packets()
        if told.type is PacketType.BEACON and frame.start_ns > 120e9
    }
    assert len(parents) == len(net.motes), parents
    unheard = Counter(
        round(frame.start_ns / 1e9)
        for frame, _, told in net.packets()
        if told.type is PacketType.BUNDLE and not frame.received_by
    )
    # What collides goes again in the same slot.
    assert max(unheard.values(), default=0) <= 4, unheard
    start = net.now - net.line.network_time()
    late = [
        row
        for row in rows(net.line, 1, query)
        if row["at"] - start - row["epoch"] * int(staying.split()[0]) > 5
    ]
    assert not late


def test_rows_of_a_for_come_before_its_end_though_another_query_ends_shortly_before(
    network: MakeNetwork,
) -> None:
    """As in the set of thirty users on one network (test_everybody): a mote had lost its parent, and its last rows came when the query
    was over."""
    net = network(grid(3, 2, spacing=10), radio=disc(12), seed=12)
    net.advance("40s")
    users = Users(net)
    users.add("ada", "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 10 s FOR 190 s")
    users.add("grace", "SELECT COUNT(*) FROM sensors SAMPLE PERIOD 5 s")
    users.advance(212 - int(users.now))
    users.remove("grace")
    had = Counter[tuple[int, int]]()
    while users.demand.has("ada"):
        had = seen(users, "ada")
        users.advance(1)
    first = min(epoch for _, epoch in had)
    assert had == {(node, epoch): 1 for node in net.motes for epoch in range(first, first + 19)}
