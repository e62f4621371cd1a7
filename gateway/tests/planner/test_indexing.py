"""CREATE INDEX: what is said of an index, who stores it, and what of a condition its motes are told."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from skerry.catalog.catalog import Catalog, Mote
from skerry.index.code import NULL
from skerry.index.questions import point
from skerry.network.index_asks import IndexAsk, IndexAsks
from skerry.planner.cost import radio
from skerry.planner.cost.index_prices import CAPACITY, energy, upkeep
from skerry.planner.features.indexing import Index
from skerry.planner.model.source_plans import Term
from skerry.planner.physical.merge import merge
from skerry.planner.physical.mote_memory import bytes_taken
from skerry.planner.physical.program import encode, program_size
from skerry.planner.planner import plan_index
from skerry.sensors.index_tables import StoredTuple, answered, box_of, question_of, table_of
from skerry.sensors.planning import planned
from skerry.service.explain import explain, explain_text
from skerry.sql import index_statements
from skerry.sql.errors import QueryError
from skerry.sql.index_statements import CreateIndex
from skerry_protocol import codec, limits, mac, programs, records, ways
from skerry_protocol.attributes import BY_NAME, EVENT_BY_NAME, ValueFormat
from skerry_protocol.bytecode import Op
from skerry_protocol.codec import decode_program
from skerry_protocol.codes import Aggregate, EventFlag, PacketType
from skerry_protocol.commands import event_number
from skerry_protocol.limits import FOREVER, PROGRAM_MAXIMUM

CLIMATE = "CREATE INDEX climate ON sensors (JOINT (light FROM 0 TO 2000, temp FROM 10 TO 35)) SAMPLE PERIOD 30 s KEEP 1 day"


def motes(boards: Sequence[str] = ("iris", "cc2538"), count: int = 9, spacing: int = 1000) -> list[Mote]:
    catalog = Catalog()
    fields = records.Status.parse(bytes(120))
    for node in range(count):
        status = {**fields, "node": node, "x": node % 3 * spacing, "y": node // 3 * spacing, "statics": []}
        status["board"] = {"iris": 1, "cc2538": 2}[boards[node % len(boards)]]
        catalog.update(status, 0.0)
    return catalog.all()


def made(sql: str, of: list[Mote] | None = None) -> Index:
    statement = index_statements.parse(sql)
    assert isinstance(statement, CreateIndex)
    index, _ = plan_index(statement, 7, {"sensors", "taken"}, motes() if of is None else of)
    return index


def test_an_index_is_a_query_whose_program_names_who_stores() -> None:
    statement = index_statements.parse(CLIMATE)
    assert isinstance(statement, CreateIndex)
    index, plan = plan_index(statement, 7, (), motes())
    assert [(axis.entry.name, axis.low, axis.high) for axis in index.axes] == [
        ("light", 0, 2000),
        ("temp", 1000, 3500),
    ]
    assert sorted(index.storing) == [1, 3, 5, 7]
    assert (index.period_ms, index.keep_ms) == (30_000, 86_400_000)
    program = decode_program(encode(merge([plan]), 0, FOREVER))
    [clause] = [field for field in program.fields if field.aggregate == Aggregate.INDEX]
    sent = programs.Index.parse(clause.code)
    assert (sent.index, sent.revision, sent.parts, sent.keep) == (7, 0, 1, 86_400)
    assert len(sent.more) == 4 + 2 * 8 + 4 * 6
    assert sent.more[:4] == bytes([0b11, 4, 0, 0])
    assert sent.more[20:26] == struct.pack("<Hhh", 1, 100, 0)
    assert Index.from_list(index.to_list()) == index
    # Ten tuples wait.
    assert bytes_taken(merge([plan])) - program_size(merge([plan])) == 2 + 10 * (10 + 4)


HEATS = "CREATE INDEX heats ON EVENT hot(temp) (temp FROM 10 TO 60, light FROM 0 TO 2000) KEEP 1 day"


def test_an_index_of_an_event_has_a_tuple_with_each() -> None:
    statement = index_statements.parse(HEATS)
    assert isinstance(statement, CreateIndex)
    index, plan = plan_index(statement, 7, (), motes())
    assert [(axis.entry.name, axis.low, axis.high, axis.of_event) for axis in index.axes] == [
        ("temp", 1000, 6000, True),
        ("light", 0, 2000, False),
    ]
    assert (index.event, index.period_ms, plan.awaited) == ("hot", 1000, ("hot",))
    program = decode_program(encode(merge([plan]), 0, FOREVER))
    [clause] = [field for field in program.fields if field.aggregate == Aggregate.ON_EVENT]
    on = programs.OnEvent.parse(clause.code)
    assert (on.event, on.lasts, on.flags) == (
        event_number("hot"), 1, EventFlag.ALIGNED | EventFlag.EACH | EventFlag.HEARD | EventFlag.OWN,
    )  # fmt: skip
    # What the event says, as integers of what it says it of; and what the mote samples.
    columns = [(field.format, bytes(field.code)) for field in program.fields if not field.aggregate]
    said, light = EVENT_BY_NAME["event.value"].number, BY_NAME["light"].number
    assert columns == [
        (ValueFormat.I16.code, bytes([Op.ATTR, said])),
        (ValueFormat.U16.code, bytes([Op.ATTR, light])),
    ]
    assert Index.from_list(index.to_list()) == index
    assert (index.to_dict()["event"], index.to_dict()["period_ms"]) == ("hot", None)
    assert [column.name for column in table_of(index).columns][3:] == ["temp", "light"]
    # Ten tuples wait, and four events.
    assert bytes_taken(merge([plan])) - program_size(merge([plan])) == 2 + 10 * (10 + 4) + 4 * 24
    known = upkeep(index, motes(), {}, 0.0, raised=1 / 300)
    assert known.tuples_a_day == pytest.approx(288)
    assert "288 tuples a day take" in known.energy_line()
    assumed = upkeep(index, motes(), {}, 0.0)
    assert "144 tuples a day, as many as are assumed of an event" in assumed.energy_line()
    text = explain_text(explain(plan))
    assert "with each event hot of their own acquire light" in text
    for sql, names in {
        "CREATE INDEX i ON EVENT button (light, temp)": [False, False],
        "CREATE INDEX i ON EVENT battery-low (JOINT (voltage, temp))": [False, False],
        "CREATE INDEX i ON EVENT hot(nodeid, light) (JOINT (temp, light)) KEEP 1 h": [False, True],
    }.items():
        assert [axis.of_event for axis in made(sql).axes] == names, sql


SIX = ("light", "temp", "humidity", "voltage", "mag_x", "mag_y")


@pytest.mark.parametrize("count", range(1, 7))
def test_each_part_has_motes_of_its_own_in_proportion(count: int) -> None:
    for joint in range(1, count + 1):
        names = [f"JOINT ({', '.join(SIX[:joint])})", *SIX[joint:count]]
        made_of = motes(("cc2538",), 9)
        index = made(f"CREATE INDEX i ON sensors ({', '.join(names)}) SAMPLE PERIOD 1 min", made_of)
        columns = [part.columns for part in index.parts]
        assert columns == [tuple(range(joint)), *((column,) for column in range(joint, count))]
        assert sum(len(part.owners) for part in index.parts) == len(index.storing)
        for part in index.parts:
            share = len(index.storing) * len(part.columns) / count
            # Of columns of three motes each, in which lines leave no other choice.
            assert max(1, share - 2) <= len(part.owners) <= share + 2
        for one in index.parts:
            for other in index.parts:
                assert one is other or not set(one.owners) & set(other.owners)


def test_a_hot_part_has_more_motes_where_its_weight_says_so() -> None:
    field = motes(("cc2538",), 9)
    for weights in ((1, 2), (2, 1), (1, 8), (100, 100)):
        light, temp = weights
        sql = f"CREATE INDEX i ON sensors (light FROM 0 TO 2000 WEIGHT {light}, JOINT (temp, humidity) WEIGHT {temp}) SAMPLE PERIOD 1 min"
        sizes = [len(part.owners) for part in made(sql, field).parts]
        # Of columns of three motes each, in which lines leave no other choice.
        assert abs(sizes[0] - 9 * light / sum(weights)) <= 2, weights
    even = made("CREATE INDEX i ON sensors (light, JOINT (temp, humidity)) SAMPLE PERIOD 1 min", field)
    said = made(
        "CREATE INDEX i ON sensors (light WEIGHT 1, JOINT (temp, humidity) WEIGHT 2) SAMPLE PERIOD 1 min",
        field,
    )
    assert said.parts == even.parts


def test_parts_are_asked_one_after_the_other_for_what_the_first_had() -> None:
    index = made(
        CLIMATE.replace(
            "JOINT (light FROM 0 TO 2000, temp FROM 10 TO 35)", "light FROM 0 TO 2000, temp FROM 10 TO 35"
        )
    )
    plan = planned(
        "SELECT COUNT(*) FROM climate WHERE light > 100 AND temp > 34 AND epoch > 9",
        {"climate": table_of(index)},
    )
    assert plan is not None
    assert plan.sources is not None
    ask = IndexAsk(index, *question_of(plan.sources, index))
    asks, sent = IndexAsks(iter(range(1, 99)).__next__), list[tuple[int, int, bytes]]()
    asks.add(ask)

    def answer(node: int, tuples: bytes) -> None:
        body = {"node": node, "token": sent[-1][1], "part": 0, "last": 1, "tuples": tuples}
        asks.hear(records.Stored.parse(records.Stored.build(body)), 0.0)

    asks.advance(0.0, lambda *one: sent.append(one))
    # Fewer are as warm as that than as bright, by the ranges.
    [(target, _, told)] = sent
    assert (target, ask.step.part.columns) == (limits.BROADCAST, (1,))
    assert struct.unpack("<H", told[:2]) == (7 + 8192,)
    assert struct.unpack("<IH", told[5:11]) == (10, 0xFFFF)
    for node in ask.step.motes:
        found = [(3, 1, 12, 0, 3450), (4, 1, 20, 0, 3460)] if node == ask.step.motes[-1] else []
        answer(node, b"".join(struct.pack("<HHIBh", *one) for one in found))
    assert ask.step.part.columns == (0,)
    asks.advance(1.0, lambda *one: sent.append(one))
    told = sent[-1][2]
    assert len(told) == 20
    assert struct.unpack("<IH", told[5:11]) == (12, 8)
    assert int.from_bytes(told[11:], "little") == 1 << 3 | 1 << 4
    for node in ask.step.motes:
        # Another one of the motes and epochs that were asked for is not joined.
        found = [(3, 1, 12, 0, 500), (3, 1, 20, 0, 500)] if node == ask.step.motes[0] else []
        answer(node, b"".join(struct.pack("<HHIBH", *one) for one in found))
    assert ask.over
    assert ask.complete
    assert [(one.node, one.epoch, one.values) for one in ask.tuples()] == [(3, 12, (500, 3450))]


def test_where_a_part_has_nothing_the_next_is_not_asked() -> None:
    index = made(CLIMATE.replace("JOINT (light FROM 0 TO 2000, temp FROM 10 TO 35)", "light, temp"))
    ask = IndexAsk(index, [(0, 100), (0, NULL)])
    asks, sent = IndexAsks(iter(range(1, 99)).__next__), list[tuple[int, int, bytes]]()
    asks.add(ask)
    asks.advance(0.0, lambda *one: sent.append(one))
    for node in ask.step.motes:
        body = {"node": node, "token": sent[-1][1], "part": 0, "last": 1, "tuples": b""}
        asks.hear(records.Stored.parse(records.Stored.build(body)), 0.0)
    assert len(sent) == 1
    assert (ask.over, ask.complete, ask.tuples()) == (True, True, [])
    silent = IndexAsk(index, [(0, 100), (0, NULL)])
    asks.add(silent)
    for second in range(0, 400, 10):
        asks.advance(second, lambda *_: None)
    assert silent.over
    assert silent.missing == sorted(ask.step.motes)


def test_who_is_heard_is_waited_for_however_long_others_are_silent() -> None:
    index = made(CLIMATE)
    ask = IndexAsk(index, [(0, NULL), (0, NULL)])
    asks, sent = IndexAsks(iter(range(1, 99)).__next__), list[tuple[int, int, bytes]]()
    asks.add(ask)
    speaking, *silent = ask.step.motes
    parts = iter(range(99))
    for second in range(0, 400, 10):
        asks.advance(second, lambda *one: sent.append(one))
        body = {"node": speaking, "token": sent[0][1], "part": next(parts), "last": 0, "tuples": bytes(11)}
        asks.hear(records.Stored.parse(records.Stored.build(body)), second)
    assert not ask.over
    assert sent[0][0] == limits.BROADCAST
    assert sorted(target for target, *_ in sent[1:]) == sorted(silent * 2)
    asks.hear(records.Stored.parse(records.Stored.build({**body, "part": next(parts), "last": 1})), 400)
    asks.advance(400, lambda *one: sent.append(one))
    assert (ask.over, ask.missing) == (True, sorted(silent))


def test_records_of_two_attempts_are_no_answer_as_a_page_may_have_gone_between_them() -> None:
    ask = IndexAsk(made(CLIMATE), [(0, NULL), (0, NULL)])
    asks, sent = IndexAsks(iter(range(1, 99)).__next__), list[tuple[int, int, bytes]]()
    asks.add(ask)
    [node, *others] = ask.step.motes

    def answer(of: int, part: int, last: int, epochs: list[int]) -> None:
        tuples = b"".join(struct.pack("<HHIBHh", 3, 1, epoch, 0, 50, 2000) for epoch in epochs)
        body = {"node": of, "token": sent[-1][1], "part": part, "last": last, "tuples": tuples}
        asks.hear(records.Stored.parse(records.Stored.build(body)), 0.0)

    asks.advance(0.0, lambda *one: sent.append(one))
    for other in others:
        answer(other, 0, 1, [])
    # The second of three is lost; when it is asked again, the two oldest tuples have been evicted.
    answer(node, 0, 0, [1, 2])
    answer(node, 2, 1, [5, 6])
    asks.advance(100.0, lambda *one: sent.append(one))
    assert sent[-1][0] == node
    answer(node, 1, 0, [5, 6])
    assert not ask.over
    answer(node, 0, 0, [3, 4])
    answer(node, 2, 1, [])
    assert (ask.over, ask.complete) == (True, True)
    # What has come of the first time, and is gone there, is part of it all the same.
    assert [one.epoch for one in ask.tuples()] == [1, 2, 3, 4, 5, 6]


def test_a_question_goes_on_where_network_time_begins_anew() -> None:
    ask = IndexAsk(made(CLIMATE), [(0, NULL), (0, NULL)])
    asks, sent = IndexAsks(iter(range(1, 99)).__next__), list[tuple[int, int, bytes]]()
    asks.add(ask)
    for second in (90_000.0, 3.0):
        asks.advance(second, lambda *one: sent.append(one))
    assert [target for target, *_ in sent] == [limits.BROADCAST] * 2


def test_a_program_names_as_many_as_it_has_room_for() -> None:
    for named in (f"JOINT ({', '.join(SIX)})", ", ".join(SIX)):
        statement = index_statements.parse(f"CREATE INDEX i ON sensors ({named}) SAMPLE PERIOD 1 min")
        assert isinstance(statement, CreateIndex)
        index, plan = plan_index(statement, 7, (), motes(("cc2538",), 90))
        assert 6 < len(index.storing) < 20
        # Two more come in, where owners are away or new.
        assert PROGRAM_MAXIMUM - 18 < program_size(merge([plan])) <= PROGRAM_MAXIMUM - 12


@pytest.mark.parametrize(
    ("sql", "of", "said"),
    [
        (CLIMATE, motes(spacing=0), "the motes' positions are not known"),
        (CLIMATE, motes(count=0), "no mote is known yet, and an index needs several"),
        (CLIMATE, motes(count=1), "only one mote is known yet"),
        (CLIMATE, motes(("iris",)), "no mote of this network can store: all are iris"),
        (CLIMATE, motes(spacing=100_000), "a mote stands 2000 m away"),
        (CLIMATE.replace("climate", "taken"), None, "there is a table 'taken' already"),
        (CLIMATE.replace("temp", "warmth"), None, "'warmth' cannot be indexed"),
        (CLIMATE.replace("temp FROM 10 TO 35", "level"), None, "the attribute 'level' has no range"),
        (CLIMATE.replace("10 TO 35", "35 TO 10"), None, "FROM 35 TO 10 is no range of temp"),
        (CLIMATE.replace("10 TO 35", "10 TO 9000"), None, "FROM 10 TO 9000 is no range of temp"),
        (CLIMATE.replace("temp FROM 10 TO 35", "light"), None, "'light' is said twice"),
        (CLIMATE.replace("30 s", "100 ms"), None, "SAMPLE PERIOD 100 ms is out of range"),
        (CLIMATE.replace("1 day", "3 year"), None, "is out of range"),
        (CLIMATE.replace("1 day", "1 parsec"), None, "unknown unit 'parsec'"),
        (CLIMATE.replace("sensors", "motes"), None, "an index over 'motes'"),
        (CLIMATE.replace("JOINT (", "JOINT (JOINT ("), None, "unexpected '('"),
        (CLIMATE.replace("JOINT (", "humidity, voltage, mag_x, mag_y, JOINT ("), None, "5 parts are too many for 4 motes"),
        (CLIMATE.replace("35))", "35) WEIGHT 0)"), None, "WEIGHT 0 is out of range"),
        (CLIMATE.replace("35))", "35) WEIGHT 2.5)"), None, "WEIGHT 2.5 is out of range"),
        (CLIMATE.replace("2000,", "2000 WEIGHT 2,"), None, "unexpected 'WEIGHT'"),
        (CLIMATE.replace("KEEP", "FOR"), None, "unexpected 'FOR'"),
        (HEATS.replace("EVENT", "ALIGNED EVENT"), None, "ALIGNED is for queries"),
        (HEATS.replace("hot(temp)", "hot AND wet"), None, "AND is for queries that wait for events"),
        (HEATS.replace("hot(temp)", "hot(temp) OR wet"), None, "OR is for queries that wait for events"),
        (HEATS.replace("hot(temp)", "hot NO OVERLAP"), None, "NO OVERLAP is for queries that wait for events"),
        (HEATS.replace("hot(temp)", "every(1 h)"), None, "a timer is no event that a mote raises"),
        (HEATS.replace("KEEP", "SAMPLE PERIOD 10 s KEEP"), None, "an index of events has no SAMPLE PERIOD"),
        (HEATS.replace("hot(temp)", "hot(temp, light)"), None, "these are too many parameters of an event"),
        (HEATS.replace("hot(temp)", "hot(warmth)"), None, "unknown attribute 'warmth'"),
        (HEATS.replace("hot(temp)", "(temp)"), None, "unexpected '('"),
        ("CREATE INDEX i ON EVENT hot", None, "the statement ends too early"),
        ("CREATE INDEX i ON sensors (light, temp", None, "the statement ends too early"),
        (
            "CREATE INDEX i ON sensors (light, temp, humidity, voltage, mag_x, mag_y, accel_x) SAMPLE PERIOD 1 min",
            None,
            "7 attributes are too many",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(sql: str, of: list[Mote] | None, said: str) -> None:
    with pytest.raises(QueryError) as refused:
        made(sql, of)
    assert said in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("SAMPLE PERIOD 30 s", "an index is asked once"),
        ("HAVING COUNT(*) > 3 OUTPUT ACTION siren", "OUTPUT ACTION is for motes"),
        ("AT MOTE 7", "AT MOTE does not belong here"),
    ],
)
def test_what_an_index_is_not_asked_is_named(clause: str, said: str) -> None:
    with pytest.raises(QueryError) as refused:
        planned(
            f"SELECT COUNT(*) FROM climate WHERE temp > 40 {clause}", {"climate": table_of(made(CLIMATE))}
        )
    assert said in refused.value.message
    assert refused.value.hint


def condition(where: str, index: Index) -> Term | None:
    plan = planned(f"SELECT nodeid FROM climate WHERE {where}", {"climate": table_of(index)})
    assert plan is not None
    assert plan.sources is not None
    return plan.sources.where


@pytest.mark.parametrize(
    ("where", "light", "temp"),
    [
        ("light BETWEEN 100 AND 200 AND temp > 22", (100, 200), (2201, 2**31 - 1)),
        ("22.5 >= temp AND nodeid = 3", None, (-(2**31), 2250)),
        ("light = 7", (7, 7), None),
        ("light < 7 OR temp < 3", None, None),
        ("temp < 20.004 AND temp >= 19.996", None, (2000, 2000)),
        ("temp > 22 C AND light IS NOT NULL", None, (2201, 2**31 - 1)),
    ],
)
def test_ranges_of_what_and_joins_are_told(
    where: str, light: tuple[int, int] | None, temp: tuple[int, int] | None
) -> None:
    index = made(CLIMATE)
    box = box_of(condition(where, index), index)
    assert box is not None
    for axis, bounds, found in zip(index.axes, (light, temp), box, strict=True):
        low, high = (0, NULL) if bounds is None else (point(axis.low, axis.high, bound) for bound in bounds)
        assert found == (low & ~15, high | 15)


def test_nothing_is_asked_of_an_empty_range() -> None:
    index = made(CLIMATE)
    assert box_of(condition("light > 5 AND light < 5.5", index), index) is None


def test_tuples_are_a_table() -> None:
    index = made(CLIMATE)
    sql = "SELECT nodeid, epoch, time, temp FROM climate WHERE temp > 20.5 ORDER BY temp LIMIT 2"
    plan = planned(sql, {"climate": table_of(index)})
    assert plan is not None
    assert plan.sources is not None
    tuples = [StoredTuple(n, 1, 100 + n, (None, 2000 + 30 * n)) for n in range(5)]
    rows = answered(plan.sources, index, tuples, lambda one: one.epoch if one.node > 2 else None).to_pylist()
    assert [(row["nodeid"], row["epoch"], row["temp"]) for row in rows] == [(2, 102, 20.6), (3, 103, 20.9)]
    assert [None if row["time"] is None else row["time"].timestamp() for row in rows] == [None, 103.0]
    assert Decimal(str(rows[0]["temp"])) == Decimal("20.6")


def test_what_an_index_takes_a_day_and_for_how_long_there_is_room() -> None:
    index, day = made(CLIMATE), 86_400_000
    found = upkeep(index, motes(), {}, 1e-4)
    assert found.tuples_a_day == 9 * day / 30_000
    assert found.sampling == pytest.approx(found.tuples_a_day * 1e-4)
    # A tuple is a record's head, its name with its time, and two values of 16 bits.
    tuples = 4 * CAPACITY / 24
    assert found.kept_ms == pytest.approx(tuples / found.tuples_a_day * day, abs=2)
    assert found.room(index.keep_ms) == (
        "there is room for 1.81 days of tuples, where these fall evenly on the motes that store them: KEEP 1 day fits"
    )
    assert found.room(2 * day).endswith("KEEP 2 day does not fit, the oldest go before")
    assert upkeep(index, motes(), {1: 0}, 0).kept_ms == pytest.approx(found.kept_ms * 3 / 4, abs=2)
    # Twice as far apart in the middle, as far as the tree says: no farther in hops.
    wide = upkeep(made(CLIMATE, motes(spacing=2000)), motes(spacing=2000), {}, 0)
    assert wide.radio == pytest.approx(found.radio)
    assert wide.radio > 0


def on_air(type: PacketType, **fields: Any) -> int:
    """Bytes of a packet and of what acknowledges it, from preamble to FCS."""
    return radio.ACK_BYTES + 6 + len(mac.encode(mac.MacFrame(1, 2, 3, codec.encode(type, **fields))))


def test_ways_that_lapse_between_tuples_are_opened_anew() -> None:
    place = ways.WayPlace.build(
        dict.fromkeys(
            (
                "x",
                "y",
                "sender_x",
                "sender_y",
                "entered_x",
                "entered_y",
                "crossed",
                "first",
                "second",
                "left",
            ),
            0,
        )
    )
    way = {"source": 1, "number": 0}
    there = on_air(PacketType.WAY_OPEN, **way, flags=2, destination=2, hop=1, every=2, more=place)
    # Of two frames one goes twice.
    hop = 1.5 * (there + on_air(PacketType.WAY_STATE, **way, state=2))
    # A hop is 20 m, as the tree's are in the median. Of nine motes on a grid of 10 m four store: it takes two hops from each of four
    # corners to two of these, none from each to itself, and one elsewhere.
    hops = (4 * (2 * 2 + 2 * 1) + 4 * 3 + 4) / (9 * 4)
    # Where the way to the owner of the tuple before is still open, it is of use for one tuple in four.
    for period, anew in (("30 s", 3 / 4), ("59 s", 3 / 4), ("1 min", 1), ("1 day", 1)):
        found = upkeep(made(CLIMATE.replace("30 s", period)), motes(), {}, 0)
        assert found.opening == pytest.approx(found.tuples_a_day * energy(hop * hops * anew))
        assert f"{found.opening:.3g} J to open ways, which lapse after 60 s" in found.energy_line()
    # Three ways are more than a mote keeps.
    three = CLIMATE.replace("JOINT (", "").replace("35))", "35, humidity)")
    often, seldom = (
        upkeep(made(three.replace("30 s", period)), motes(), {}, 0) for period in ("30 s", "1 day")
    )
    assert often.opening / often.tuples_a_day == pytest.approx(seldom.opening / seldom.tuples_a_day)
