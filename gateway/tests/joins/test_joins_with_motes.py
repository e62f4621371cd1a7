"""Motes as a stream of joins, without Spark: rows that a played root brings beside those of a source, cut into batches anywhere, give what
DuckDB answers; and what is asked of motes for a join comes and goes with it."""

from __future__ import annotations

import random
import re
import struct
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from scipy.signal import find_peaks

from gateway.tests.joins import mote_oracle
from gateway.tests.joins.mote_oracle import Question
from gateway.tests.joins.test_joins_of_log import Running
from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.process import wait_for
from gateway.tests.sources.one_source import rows as rows_of
from skerry.execution.join_buckets import GroupNow, Joined
from skerry.execution.source_matching import delivered
from skerry.execution.source_matching import read as read_sources
from skerry.planner.model import source_plans as plans
from skerry.planner.planner import plan_query
from skerry.sensors.definitions import define
from skerry.sensors.evaluate import MOMENT
from skerry.sensors.planning import planned
from skerry.service.gateway import Gateway
from skerry.service.queries import UserQuery
from skerry.sql import sensor_statements
from skerry.sql.errors import QueryError
from skerry.sql.sensor_statements import CreateSensors
from skerry.storage.log import stream_log
from skerry.storage.log.source_batches import SourceBatch, SourceFiles
from skerry.storage.state import DataError
from skerry.streams.stream import Stream
from skerry_protocol import codec
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codes import PacketType

SECOND = 1_000_000
CREATE = (
    "CREATE SENSORS weather (id INT, sky STREAM (rain DOUBLE, n INT, at TIMESTAMP FORMAT 'unix us' TIME))"
)
PAIRS = (
    "SELECT time, s.nodeid AS one, t.nodeid AS other, s.epoch AS e, t.epoch AS f FROM sensors AS s, sensors AS t WINDOW 3 ROWS "
    "WHERE s.room = t.room AND s.nodeid < t.nodeid AND s.light > 100 AND s.temp - t.temp > 2 LATENESS 3 s SAMPLE PERIOD 1 s"
)
RAIN = (
    "SELECT time, s.nodeid AS node, s.epoch AS e, w.n AS n FROM sensors AS s, weather AS w WINDOW 2 s "
    "WHERE s.temp > w.rain AND (s.light > 100 OR s.light IS NULL) AND w.id = 1 LATENESS 3 s SAMPLE PERIOD 1 s"
)
#: The same aliases' rows by another condition: it shares an operator with the one before.
DRY = RAIN.replace("s.temp > w.rain", "s.temp <= w.rain")
EQUAL = (
    "SELECT time, a.nodeid AS one, b.nodeid AS other, a.epoch AS e FROM sensors AS a, sensors AS b WINDOW 500 ms "
    "WHERE a.room = b.room AND a.epoch = b.epoch AND a.nodeid < b.nodeid LATENESS 3 s SAMPLE PERIOD 1 s"
)
#: With an attribute that a user has made, and with functions.
NEAR = (
    "SELECT time, s.nodeid AS one, t.nodeid AS other, s.epoch AS e, s.shelf AS f FROM sensors AS s, sensors AS t WINDOW 500 ms "
    "WHERE s.shelf = t.shelf AND dist(s.loc, t.loc) < 2.5 m AND abs(s.temp - t.temp) > 1 AND s.nodeid < t.nodeid AND s.shelf >= 0 "
    "AND hash(s.nodeid) >= 0 LATENESS 3 s SAMPLE PERIOD 1 s"
)


def send(peer: RootPeer, stream: Stream, node: int, epoch: int, row: Mapping[str, int | None]) -> None:
    """A row as a mote has it."""
    columns = [(column.name, BY_NAME[column.name].format.letter) for column in stream.mote_query.columns]
    nulls = sum((row[name] is None) << place for place, (name, _) in enumerate(columns))
    values = struct.pack(
        "<" + "".join(letter for _, letter in columns), *(row[name] or 0 for name, _ in columns)
    )
    peer.waiting.append(
        codec.encode(
            PacketType.RESULT, query=stream.query, node=node, epoch=epoch, nulls=nulls, values=values
        )
    )


def weather(number: int, n: int, at_us: int, rain: float | None) -> SourceBatch:
    """As intake makes it."""
    times = pa.array([at_us]).cast(MOMENT)
    made = pa.table({
        plans.SOURCE: pa.array([1]), plans.TIME: times, plans.ARRIVAL: times, "id": pa.array([1]),
        "sky.rain": pa.array([rain], pa.float64()), "sky.n": pa.array([n]), "sky.at": times,
    })  # fmt: skip
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    return SourceBatch(plans.STREAMS + number, 1, at_us, at_us, bytes(sink.getvalue()))


def questions_of(gateway: Gateway, query: UserQuery) -> list[UserQuery]:
    return [one for one in gateway.queries.all() if one.started_by == query.id]


def ask(gateway: Gateway, sql: str) -> UserQuery:
    found = gateway.queries.ask(sql, "ada")
    assert isinstance(found, UserQuery)
    return found


def given(log: Path, query: UserQuery) -> Counter[tuple[object, ...]]:
    """What the log has for a user."""
    plan = query.plan.sources
    assert plan is not None
    first, records = stream_log.read_there(log, 0, stream_log.length(log))
    numbers, mine = np.arange(first, first + len(records)), records["stream"] == plan.stream
    found = Counter[tuple[object, ...]]()
    for rows in read_sources(SourceFiles(log), numbers[mine], records[mine]).values():
        delivery = delivered(plan, rows)
        for row in delivery.columns.to_pylist() if delivery is not None else []:
            time, *rest = row.values()
            found[round(time.timestamp() * 1e6), *rest] += 1
    return found


#: What is mined of motes comes each so many rows of one.
EVERY, PROMINENCE, SURROUNDINGS = 4, 1, 3
PEAKS = (
    f"SELECT peak AS time, nodeid, height, prominence FROM PEAKS(sensors.temp, {PROMINENCE}, {SURROUNDINGS}) EVERY {EVERY} ROWS "
    "WHERE sensors.light > 100 AND height > 19 SAMPLE PERIOD 1 s"
)
PAST = (
    f"SELECT peak, nodeid, height, prominence FROM PEAKS(sensors.temp, {PROMINENCE}, {SURROUNDINGS}) WHERE height > 19 "
    "HISTORY 1 day ONLY"
)
RECORDED = "SELECT time, nodeid, temp FROM sensors HISTORY 1 day ONLY"
#: What DuckDB is asked, beside each alias's own condition.
ASKED = {
    PAIRS: (
        Question(
            {"s": "s", "t": "t"},
            ("s.nodeid", "t.nodeid", "s.epoch", "t.epoch"),
            "s.room = t.room AND s.nodeid < t.nodeid AND s.temp - t.temp > 2",
            3 * SECOND,
            rows=3,
        ),
        {"s": "light > 100", "t": "TRUE"},
    ),
    RAIN: (
        Question(
            {"s": "s", "w": "w"}, ("s.nodeid", "s.epoch", "w.n"), "s.temp > w.rain", 3 * SECOND, 2 * SECOND
        ),
        {"s": "light > 100 OR light IS NULL"},
    ),
    DRY: (
        Question(
            {"s": "s", "w": "w"}, ("s.nodeid", "s.epoch", "w.n"), "s.temp <= w.rain", 3 * SECOND, 2 * SECOND
        ),
        {"s": "light > 100 OR light IS NULL"},
    ),
    EQUAL: (
        Question(
            {"a": "a", "b": "a"},
            ("a.nodeid", "b.nodeid", "a.epoch"),
            "a.room = b.room AND a.epoch = b.epoch AND a.nodeid < b.nodeid",
            3 * SECOND,
            SECOND // 2,
        ),
        {"a": "TRUE"},
    ),
    NEAR: (
        Question(
            {"s": "s", "t": "t"},
            ("s.nodeid", "t.nodeid", "s.epoch", "s.static_0"),
            "s.static_0 = t.static_0 AND round(sqrt((s.xpos - t.xpos) ** 2 + (s.ypos - t.ypos) ** 2), 2) < 2.5 "
            "AND abs(s.temp - t.temp) > 1 AND s.nodeid < t.nodeid",
            3 * SECOND,
            SECOND // 2,
        ),
        {"s": "static_0 >= 0", "t": "TRUE"},
    ),
}


def test_joins_of_motes_beside_each_other_answer_what_duckdb_does(
    peer: RootPeer, tmp_path: Path, drawn_seed: int
) -> None:
    chance = random.Random(drawn_seed)
    with opened(peer, tmp_path) as gateway:
        ask_of_weather(gateway)
        gateway.queries.ask("CREATE ATTRIBUTE shelf", "ada")
        # Of those that ask the same the oldest goes.
        oldest = ask(gateway, RAIN.replace("w.n AS n", "w.n"))
        joins = {sql: ask(gateway, sql) for sql in ASKED}
        mined = ask(gateway, PEAKS)
        wait_for(lambda: peer.programs().keys() >= {stream.query for stream in now_running(gateway)})
        running = Running(tmp_path)
        start = max(codec.decode_program(program).start for program in peer.programs().values())
        number = gateway.sensors.store.tables()["weather"].number
        for epoch in range(start, start + 40):
            bring(peer, gateway, chance, epoch, number)
            if epoch == start + 20:
                gateway.queries.stop(oldest.id)
                gateway.sources.look()
            if chance.random() < 0.4:
                go_on(running, gateway)
        while go_on(running, gateway):
            pass
        connection = duckdb.connect()
        for sql, query in joins.items():
            expected = answers(gateway, sql, query, connection)
            assert given(gateway.log.path, query) == expected, f"seed {drawn_seed}: {sql}"
            assert expected.total() > 5, f"seed {drawn_seed}: {sql}"
        expected = peaks(gateway, mined)
        assert given(gateway.log.path, mined) == expected, f"seed {drawn_seed}: {PEAKS}"
        assert expected.total() > 5, f"seed {drawn_seed}: {PEAKS}"
        assert sorted(rows_of(gateway, ask(gateway, PAST))) == past_peaks(
            rows_of(gateway, ask(gateway, RECORDED))
        )
        status = {one["query"]: one for one in gateway.joins.status()}
        assert status[mined.id]["kind"] == "mined"
        assert status[mined.id]["motes"] == [one.id for one in questions_of(gateway, mined)]
        groups = {sql: status[query.id]["group"] for sql, query in joins.items()}
        assert groups[RAIN] == groups[DRY], "they share an operator"
        assert len(set(groups.values())) == 4
        assert status[joins[RAIN].id]["greatest_us"].keys() == {"s", "w"}
        assert None not in status[joins[RAIN].id]["greatest_us"].values()
        assert status[joins[PAIRS].id]["motes"] == [one.id for one in questions_of(gateway, joins[PAIRS])]


def ask_of_weather(gateway: Gateway) -> None:
    gateway.queries.ask(CREATE, "ada")
    gateway.queries.ask("INSERT INTO weather VALUES (1, 'tcp://127.0.0.1:9')", "ada")


def now_running(gateway: Gateway) -> list[Stream]:
    return [stream for stream in gateway._network.streams.values() if stream.until_ms is None]


def bring(peer: RootPeer, gateway: Gateway, chance: random.Random, epoch: int, number: int) -> None:
    """Rows of an epoch in drawn order, some of which are missing or late, and weather of about its time."""
    for stream in now_running(gateway):
        nodes = [node for node in range(1, 5) if chance.random() < 0.9]
        chance.shuffle(nodes)
        for node in nodes:
            light = chance.choice([None, 50, 100, 101, 300, 300])
            row = {
                "nodeid": node, "temp": chance.randrange(1800, 2600), "light": light, "room": node % 2,
                "xpos": 100 * node, "ypos": 150 * (node % 2), "static_0": chance.choice([None, 3, 3, 3, -1]),
            }  # fmt: skip
            late = chance.choice([0, 0, 0, 1, 2])
            send(peer, stream, node, epoch - late if chance.random() < 0.1 else epoch, row)
    wait_for(lambda: not peer.waiting)
    _, records = stream_log.read_there(gateway.log.path, 0, gateway.log.rows)
    latest = int(records["sample"][records["stream"] < plans.STREAMS].max())
    for n in range(chance.randrange(3)):
        at = latest + round(chance.uniform(-3, 1) * SECOND)
        rain = chance.choice([None, 18.0, 22.0, 24.5])
        gateway.log.append_sources([weather(number, 10 * epoch + n, at, rain)])


def go_on(running: Running, gateway: Gateway) -> bool:
    """A batch; whether there was one."""
    found = running.batch()
    if found is None:
        return False
    assert not [now.trouble for now in found.groups.values() if now.trouble is not None]
    assert gateway.joins._take(found)
    running.through |= {batch.stream: batch.through for batch in found.answers}
    return True


def answers(
    gateway: Gateway, sql: str, query: UserQuery, connection: duckdb.DuckDBPyConnection
) -> Counter[tuple[object, ...]]:
    """What DuckDB answers; of windows of rows, as far as progress has come."""
    asked, own = ASKED[sql]
    assert query.plan.sources is not None
    assert query.plan.sources.join is not None
    questions = {one.alias: one.motes for one in query.plan.sources.join.tables}
    tables: dict[str, pa.Table] = {}
    for alias, condition in own.items():
        [question] = [one for one in questions_of(gateway, query) if one.sql == questions[alias]]
        rows = mote_oracle.rows_of_motes(gateway.log.path, question.feeds, gateway._network.streams)
        assert rows.num_rows > 100
        tables[alias] = connection.sql(f"SELECT * FROM rows WHERE {condition}").to_arrow_table()
    if "w" in asked.streams:
        tables["w"] = mote_oracle.rows_of_source(gateway.log.path, "sky.n", "sky.rain")
    found = mote_oracle.answers(asked, tables, connection)
    latest = max(max(table["time"].to_pylist()) for table in tables.values())
    if asked.rows is None:
        return found
    return Counter({row: count for row, count in found.items() if row[0] <= latest - asked.lateness_us})  # type: ignore[operator]


def peaks(gateway: Gateway, query: UserQuery) -> Counter[tuple[object, ...]]:
    """What scipy finds in the rows of each mote, of which the last are not certain yet."""
    [question] = questions_of(gateway, query)
    rows = mote_oracle.rows_of_motes(gateway.log.path, question.feeds, gateway._network.streams)
    found = Counter[tuple[object, ...]]()
    for node in range(1, 5):
        # In the order of the log, as they came.
        own = [row for row in rows.to_pylist() if row["nodeid"] == node and (row["light"] or 0) > 100]
        values = np.array([row["temp"] for row in own])
        places, known = find_peaks(
            values, height=19, prominence=PROMINENCE, wlen=SURROUNDINGS, plateau_size=(None, SURROUNDINGS)
        )
        certain = places < len(own) // EVERY * EVERY - SURROUNDINGS
        for place, prominence in zip(places[certain], known["prominences"][certain], strict=True):
            if values[place] > 19:
                found[own[place]["time"], node, values[place], float(prominence)] += 1
    return found


def past_peaks(recorded: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """What scipy finds in all rows of each mote."""
    found: list[tuple[Any, ...]] = []
    for node in range(1, 5):
        own = [row for row in recorded if row[1] == node]
        values = np.array([temp for _, _, temp in own])
        places, known = find_peaks(
            values, prominence=PROMINENCE, wlen=SURROUNDINGS, plateau_size=(None, SURROUNDINGS)
        )
        told = zip(places, known["prominences"], strict=True)
        found += [(own[place][0], node, values[place], out) for place, out in told if values[place] > 19]
    assert len(found) > 5
    return sorted(found)


def test_what_motes_are_asked_lives_as_long_as_the_join(peer: RootPeer, tmp_path: Path) -> None:
    with opened(peer, tmp_path) as gateway:
        join = ask(gateway, PAIRS)
        questions = {one.id: one.sql for one in questions_of(gateway, join)}
        assert [text.partition(" SAMPLE")[0] for text in questions.values()] == [
            "SELECT nodeid, epoch, temp, room FROM sensors WHERE (light > 100)",
            "SELECT nodeid, epoch, temp, room FROM sensors",
        ]
        told = gateway.queries.explain(PAIRS)
        assert {one["alias"]: one["motes"] for one in told["aliases"]} == dict(
            zip("st", questions.values(), strict=True)
        )
        assert all(text in told["text"] for text in questions.values())
    with opened(peer, tmp_path) as gateway:
        again = gateway.queries.get(join.id)
        assert {one.id: one.sql for one in questions_of(gateway, again)} == questions
        gateway.sources.look()
        assert gateway.sources.trouble_of(again) is None
        with pytest.raises(
            QueryError, match=f"is what motes are asked for query {join.id}: stop query {join.id}"
        ):
            gateway.queries.stop(max(questions))
        gateway.queries.ask("DROP ALL", "ada")
        assert gateway.queries.all() == []
        gateway.sources.look()
        assert gateway.joins.status() == []
    (tmp_path / "joins" / "changes").write_text('[1, "since"\n')
    with pytest.raises(
        DataError, match=r"joins/changes is not as the gateway wrote it .* take .*/joins away"
    ):
        Gateway([], tmp_path)


def report(peer: RootPeer, node: int, parent: int, level: int, room: int | None) -> None:
    """A mote's STATUS. Room is the motes' attribute 32."""
    peer.waiting.append(
        codec.encode(
            PacketType.STATUS, node=node, uptime=20, x=node * 100, y=0, boots=1, reset_cause=1, invariant=0, board=1, attributes=0x3FFF,
            parent=parent, level=level, link=255, neighbours=2, query_version=0, voltage=2950, free_ram=900, queue_length=0, seconds=20,
            radio_on=1000, rows=5, dropped=0, sent=9, repeated=0, malformed=0, loops=0, factory=node,
            statics=[] if room is None else [{"attribute": BY_NAME["room"].number, "value": room}],
        )
    )  # fmt: skip


def test_explain_says_what_each_way_to_join_pairs_of_motes_would_cost(peer: RootPeer, tmp_path: Path) -> None:
    """0 - 1 - 2, below which are 3 and 4 in one room; 5 is in it, too, below 1; 6 has none, and 7 is alone in its."""
    with opened(peer, tmp_path) as gateway:
        told = gateway.queries.explain(PAIRS)["placed"]
        assert (told["pairs"], told["strategies"]) == (0, [])
        assert "no two motes that the gateway knows are a pair" in told["why"]
        for node, parent, level, room in (
            (1, 0, 1, None), (2, 1, 2, None), (3, 2, 3, 9), (4, 2, 3, 9), (5, 1, 2, 9), (6, 1, 2, None), (7, 1, 2, 3),
        ):  # fmt: skip
            report(peer, node, parent, level, room)
        wait_for(lambda: len(gateway._network.catalog.all()) == 7)
        explained = gateway.queries.explain(PAIRS)
        told = explained["placed"]
        assert (told["pairs"], told["motes"], told["why"], told["runs"]) == (
            3,
            {"s": 7, "t": 7},
            None,
            "naive",
        )
        assert told["estimates"] == {"s": 1.0, "t": 1.0, "pair": 1.0, "window": 3.0}
        ways = {way["strategy"]: way for way in told["strategies"]}
        assert {name: way["joined_at"] for name, way in ways.items()} == {
            "naive": {0: 3}, "at base": {0: 3}, "at ancestor": {2: 1, 1: 2}, "through base": {4: 1, 5: 2}, "in network": {0: 3},
        }  # fmt: skip
        assert [way["strategy"] for way in told["strategies"][:2]] == ["at base", "in network"], (
            "all rows pass and meet"
        )
        assert ways["naive"]["cost"] > ways["at base"]["cost"], "6 and 7 send, too"
        for line in (
            "3 pairs of 7 motes as s with 7 as t", "estimates: s 100%, t 100%, pair 100%, 3 rows in a window",
            "mJ  naive         taken", "at ancestor   pairs: 2 at 1, 1 at 2",
        ):  # fmt: skip
            assert line in explained["text"]
        own = gateway.queries.explain(PAIRS.replace("s.light > 100", "s.nodeid < 4 AND s.light > 100"))[
            "placed"
        ]
        assert (own["pairs"], own["motes"]) == (2, {"s": 3, "t": 7}), (
            "what never changes of one alias counts, too"
        )
        near = PAIRS.replace("s.room = t.room", "t.xpos - s.xpos < 2.5")
        assert gateway.queries.explain(near)["placed"]["pairs"] == 6 + 5
        rows_alone = gateway.queries.explain(
            PAIRS.replace("s.room = t.room AND s.nodeid < t.nodeid AND ", "")
        )["placed"]
        assert "any two motes may be a pair" in rows_alone["why"]


def test_a_join_that_has_lost_rows_stays_stopped_over_a_restart(peer: RootPeer, tmp_path: Path) -> None:
    """What failed in an executor kept less than there was: its answers would lack rows for ever after."""
    text = "a join keeps 513 MB, at most 512: a shorter WINDOW, or fewer rows by WHERE"
    with opened(peer, tmp_path) as gateway:
        first, second = ask(gateway, EQUAL), ask(gateway, EQUAL)
        assert [one["trouble"] for one in gateway.joins.status()] == [None, None]
        groups = {one["group"]: GroupNow(trouble=text) for one in gateway.joins.status()}
        assert len(groups) == 1
        assert gateway.spark.take_joined(Joined(0, 0, 2, 0, groups=groups))
        assert [gateway.sources.trouble_of(one) for one in (first, second)] == [text, text]
    with opened(peer, tmp_path) as gateway:
        again = [gateway.queries.get(one.id) for one in (first, second)]
        assert [gateway.sources.trouble_of(one) for one in again] == [text, text]
        third = ask(gateway, EQUAL)
        assert gateway.sources.trouble_of(third) is None, "nobody shares what lacks rows"
        gateway.queries.stop(first.id)
    with opened(peer, tmp_path) as gateway:
        gateway.sources.look()
        assert {one["query"]: one["trouble"] for one in gateway.joins.status()} == {
            second.id: text,
            third.id: None,
        }


def test_a_join_ends_when_motes_are_asked_no_more(peer: RootPeer, tmp_path: Path) -> None:
    with opened(peer, tmp_path) as gateway:
        join = ask(gateway, f"{EQUAL} FOR 5 s")
        [question] = questions_of(gateway, join)
        assert question.sql.endswith("SAMPLE PERIOD 1000 ms FOR 5000 ms")
        running = Running(tmp_path)
        gateway.sources.look()
        assert not join.finished
        question.finished = True
        gateway.sources.look()
        while go_on(running, gateway):
            pass
        gateway.sources.look()
        assert join.finished


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (f"{PAIRS} SIGNAL hot", "SIGNAL is for queries over motes alone"),
        (f"{PAIRS} OUTPUT ACTION leds(1)", "OUTPUT ACTION is for queries over motes alone"),
        (f"ON EVENT hot {RAIN}", "ON EVENT is for queries over motes alone"),
        (f"{RAIN} STOP ON EVENT cold", "STOP ON is for queries over motes alone"),
        (RAIN.replace("SAMPLE PERIOD 1 s", "ONCE"), "ONCE is for queries over motes alone"),
        (RAIN.replace("SAMPLE PERIOD 1 s", "LIFETIME 1 year"), "LIFETIME is for queries over motes alone"),
        (RAIN.replace("s.epoch AS e", "s.epohc AS e"), "unknown attribute 'epohc'"),
        (RAIN.replace("s.light > 100", "s.light > 100 V"), "unit mismatch"),
        (RAIN.replace("s.temp > w.rain", "s.temp > w.rain + 1 V"), "unit 'V' does not fit"),
        (RAIN.replace("WINDOW 2 s", ""), "window"),
        (f"{PAIRS} GROUP BY s.room", "'nodeid' is of a row, and this one is of many"),
        (PAIRS.replace("s.room = t.room", "SQRT(s.room) = t.room"), "'SQRT' is no function over sensors"),
        (NEAR, "unknown attribute 'shelf'"),
        (PAIRS.replace("s.room = t.room", "dist(s.loc, t.room) < 5 m"), "this is no position"),
        (PAIRS.replace("sensors AS t", "places AS t"), "WINDOW is for joins of streams"),
    ],
)
def test_what_cannot_be_is_refused_by_name(sql: str, said: str) -> None:
    with pytest.raises(QueryError, match=re.escape(said)):
        plan_with_weather(sql)


def test_a_column_of_a_file_may_be_called_window() -> None:
    sql = "SELECT s.nodeid FROM sensors AS s, places AS p WHERE p.node = s.nodeid AND window > 3 SAMPLE PERIOD 1 s"
    assert planned(sql, {}) is None


def plan_with_weather(sql: str) -> object:
    statement = sensor_statements.parse(CREATE)
    assert isinstance(statement, CreateSensors)
    return planned(sql, {"weather": define(statement, "ada", 1)}) or plan_query(sql)
