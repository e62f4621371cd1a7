"""In-network aggregates of two networks are one answer, though their epochs begin at different times."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
from construct import Container
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from gateway.tests.logs import plan_of
from skerry.delivery.engine import Engine
from skerry.ingest.ingest import Ingest
from skerry.network.link.stamp import Stamp
from skerry.network.network import Common, Network
from skerry.network.networks import Networks
from skerry.storage.log.record import Block, Kind
from skerry.storage.log.stream_log import StreamLog, read
from skerry.streams.stream import StreamEpoch
from skerry_protocol import codec
from skerry_protocol.codes import Aggregate, PacketType
from skerry_protocol.limits import TICKS_PER_SECOND

ASKED = "SELECT AVG(temp), COUNT(*), MIN(light), MAX(light) FROM sensors SAMPLE PERIOD"
#: AVG(temp) of readings in 0.01 °C, in 0.00001 °C, half away from zero.
MEAN = "CAST(sign(sum(temp)) * ((2000 * abs(sum(temp)) + count(*)) // (2 * count(*))) AS BIGINT)"
#: How long the first root has run, in s.
RUN_S = 3600


def two_networks(later_ms: int) -> tuple[Networks, Common]:
    """The second root booted so much later than the first."""
    common = Common()
    made = Networks([Network(lambda _: None, common) for _ in range(2)], common)
    booted = time.time() - RUN_S
    for number, network in enumerate(made.all):
        network.greet(
            Container(node=100 * number, session=1, seconds=0, ticks=0, query_version=0, queries=b"")
        )
        network.clock.restart(0, 0, booted + number * later_ms / 1000)
    return made, common


def said(network: Network, epoch: int, readings: list[tuple[int, int]]) -> codec.Packet:
    """What a root says of an epoch in which its motes read these, in 0.01 °C and lx."""
    [feed] = network.demand.feeds("u")
    stream = network.current[feed.query]
    states = []
    for column in stream.mote_query.columns:
        temps, lights = zip(*readings, strict=True)
        kind = column.aggregate
        value = {Aggregate.AVG: sum(temps), Aggregate.MIN: min(lights), Aggregate.MAX: max(lights)}.get(
            kind, 0
        )
        states.append({"count": len(readings), "value": value})
    values = {"query": stream.query, "epoch": epoch, "motes": len(readings), "overflow": 0, "states": states}
    return codec.decode(codec.encode(PacketType.PARTIAL, **values))


def tell(network: Network, seconds: float) -> None:
    """Its root says that this is its time, and that nothing from before it waits."""
    body = Container(seconds=int(seconds), ticks=int(seconds % 1 * TICKS_PER_SECOND), more=0)
    at = network.clock.utc(round(seconds * 1000))
    assert at is not None
    network.hear([Stamp(PacketType.TIME, body, at)])


readings = st.lists(st.tuples(st.integers(-4000, 8000), st.integers(0, 30_000)), min_size=1, max_size=4)


@settings(max_examples=60)
@given(
    st.sampled_from([1000, 2000, 7000]),
    st.integers(-90_000, 90_000),
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 11), readings),
        min_size=1,
        max_size=24,
        unique_by=lambda one: one[:2],
    ),
    st.integers(1, 40),
)
@example(1000, 400, [(False, 0, [(1, 1)]), (True, 0, [(2, 2)])], 1)
def test_the_last_revision_of_an_epoch_is_what_duckdb_answers(
    period_ms: int, later_ms: int, states: list[tuple[bool, int, list[tuple[int, int]]]], restart_after: int
) -> None:
    # Half a period off, both neighbours are as near.
    assume((2 * later_ms) % period_ms or not later_ms % period_ms)
    plan = plan_of(f"{ASKED.replace(' FROM', ', revision FROM')} {period_ms} ms")
    networks, common = two_networks(later_ms)
    networks.add_user("u", plan)
    engine, ingest = Engine(common.streams.get), Ingest(roll=networks)
    engine.subscribe("u", plan)
    engine.set_feeds("u", networks.feeds("u"))
    read_by_motes = []
    with tempfile.TemporaryDirectory() as directory:
        log = StreamLog(Path(directory))
        for second, number, values in states:
            network, booted_ms = networks.all[second], later_ms if second else 0
            epoch = (RUN_S * 1000 + 200_000 - booted_ms) // period_ms + number
            ingest.store([said(network, epoch, values)], networks.source(network), log)
            read_by_motes += [(booted_ms + epoch * period_ms, *value) for value in values]
            if restart_after == len(read_by_motes):
                ingest = Ingest(roll=networks)
                ingest.restore(log, common.streams, networks.source_of, networks.session_of)
        for network in networks.all:
            tell(network, 2 * RUN_S)
        ingest.tell(log)
        stored = read(log.path, 0, log.rows)
        engine.process(Block(0, stored))
        log.close()
    subscriber = engine.subscriber("u")
    assert subscriber is not None
    rows = subscriber.buffer.after(-1)
    assert rows is not None
    newest: dict[int, tuple[int, ...]] = {}
    revisions: dict[int, list[int]] = {}
    for number, row in rows:
        mean, *others, revision = row.values()
        epoch = int(stored[number]["epoch"])
        newest[epoch] = (round(mean * 10**5), *others)
        revisions.setdefault(epoch, []).append(revision)
    assert all(
        numbers == list(range(numbers[0], numbers[0] + len(numbers))) for numbers in revisions.values()
    )
    table = ", ".join(map(str, read_by_motes))
    found = duckdb.sql(
        f"SELECT CAST(floor((ms + {period_ms} / 2) / {period_ms}) AS BIGINT) AS epoch, {MEAN}, "
        f"count(*), min(light), max(light) FROM (VALUES {table}) AS t(ms, temp, light) GROUP BY epoch"
    ).fetchall()
    assert newest == {epoch: tuple(values) for epoch, *values in found}


def test_an_epoch_is_told_once_when_all_have_said_theirs_or_its_time_is_over(tmp_path: Path) -> None:
    networks, common = two_networks(400)
    networks.add_user("u", plan_of(f"{ASKED} 1 s"))
    first, second = networks.all
    for number, network in enumerate(networks.all):
        common.roster.hear([100 * number], network.session, 3990)
        tell(network, 3990)
    ingest, log = Ingest(roll=networks), StreamLog(tmp_path)

    def heard(do: Callable[[], None]) -> list[tuple[int, int, Kind]]:
        """The epochs that are told meanwhile: with how many motes, and as what."""
        before = log.rows
        do()
        parts = Block(0, read(log.path, before, log.rows)).streams()
        return [(int(r["epoch"]), int(r["motes"]), Kind(r["kind"])) for _, _, rs in parts for r in rs]

    def say(network: Network, epoch: int) -> list[tuple[int, int, Kind]]:
        packet = said(network, epoch, [(0, 0)])
        return heard(lambda: ingest.store([packet], networks.source(network), log))

    def at(seconds: float) -> list[tuple[int, int, Kind]]:
        tell(first, seconds)
        return heard(lambda: ingest.tell(log))

    assert say(first, 4000) == []
    assert say(second, 4000) == [(4000, 2, Kind.TOLD)]
    assert say(second, 4001) == []
    assert say(second, 4002) == []
    assert say(first, 4002) == [], "it is complete, and comes behind the one before it"
    assert say(first, 4003) == []
    assert at(4012.9) == []
    assert at(4013.1) == [(4001, 1, Kind.TOLD), (4002, 2, Kind.TOLD)]
    assert say(first, 4001) == [(4001, 2, Kind.REVISED)], "it is late"
    assert say(second, 4003) == [(4003, 2, Kind.TOLD)]
    assert say(first, 4004) == []
    second.reachable = False
    assert say(first, 4005) == [(4004, 1, Kind.TOLD), (4005, 1, Kind.TOLD)], (
        "nobody waits for a root that is lost"
    )


def test_a_pairing_stays_while_the_clocks_jitter_and_moves_when_they_have_drifted() -> None:
    networks, _ = two_networks(400)
    first, second = networks.all
    networks.add_user("u", plan_of(f"{ASKED} 1 s"))
    [feed] = second.demand.feeds("u")
    stream = second.current[feed.query]

    def placed(epoch: int, off_s: float) -> StreamEpoch:
        began = first.clock.utc(0)
        assert began is not None
        second.clock.restart(0, 0, began + off_s)
        return networks.source(second).placed(stream, epoch)

    assert (placed(4000, 0.4).stream.root, placed(4000, 0.4).epoch) == (0, 4000)
    assert placed(4001, 0.7).epoch == 4001
    assert placed(4002, 0.8).epoch == 4003
    assert placed(4003, 0.4).epoch == 4004


def test_without_the_first_root_the_second_answers_alone() -> None:
    common = Common()
    networks = Networks([Network(lambda _: None, common) for _ in range(2)], common)
    second = networks.all[1]
    second.greet(Container(node=100, session=1, seconds=500, ticks=0, query_version=0, queries=b""))
    networks.add_user("u", plan_of(f"{ASKED} 1 s"))
    [feed] = second.demand.feeds("u")
    place = networks.source(second).placed(second.current[feed.query], 600)
    assert (place.stream.root, place.epoch) == (100, 600)
