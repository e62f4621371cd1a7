"""JOIN AT ANCESTOR, as far as the gateway has a part in it: what it tells motes, what becomes of what comes, and what it refuses."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from gateway.tests.joins.test_joins_with_motes import ask, report
from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.process import wait_for
from skerry.planner.model.pairing import hosts_of, pairs_clause
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry.sensors.planning import planned
from skerry.service import pair_service
from skerry.sql.errors import QueryError
from skerry.storage.log import stream_log
from skerry_protocol import codec
from skerry_protocol.bytecode import Op
from skerry_protocol.codes import Aggregate, PacketType

JOIN = (
    "SELECT s.nodeid, t.nodeid, s.temp - t.temp AS difference FROM sensors AS s, sensors AS t WINDOW 3 ROWS "
    "WHERE s.room = t.room AND s.nodeid < t.nodeid AND s.temp - t.temp > 2 SAMPLE PERIOD 1 s JOIN AT ANCESTOR"
)


def logged(log: Path, stream: int) -> set[tuple[int, ...]]:
    """s, t, how far behind the later row each is, and both temperatures, by epoch."""
    _, records = stream_log.read_there(log, 0, stream_log.length(log))
    mine = records[records["stream"] == stream]
    return {
        (int(r["epoch"]), int(r["node"]), *(int(value) for value in r["value"][[0, 1, 2, 4, 5]]))
        for r in mine
    }


def test_pairs_are_placed_told_delivered_and_placed_anew(
    peer: RootPeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 - 1 - 2, below which are 3 and 4; 5, of their room, too, is below 1; 8 and 9 are pairs that only the root is above."""
    monkeypatch.setattr(pair_service, "LOOK_S", 1)
    monkeypatch.setattr(pair_service, "SILENT_EPOCHS", 1)
    with opened(peer, tmp_path) as gateway:
        for node, parent, level, room in (
            (1, 0, 1, None), (2, 1, 2, None), (3, 2, 3, 9), (4, 2, 3, 9), (5, 1, 2, 9), (8, 1, 2, 7), (9, 0, 1, 7),
        ):  # fmt: skip
            report(peer, node, parent, level, room)
        wait_for(lambda: len(gateway._network.catalog.all()) == 7)
        explained = gateway.queries.explain(JOIN)
        assert explained["placed"]["runs"] == "at ancestor"
        assert explained["placed"]["hosts"] == [
            {"mote": 2, "pairs": [[3, 4]], "passed_on": None},
            {"mote": 1, "pairs": [[3, 5], [4, 5]], "passed_on": None},
        ]  # fmt: skip
        assert "1 at 2: 3 with 4" in explained["text"]
        assert "at the gateway, as no mote but the root is above both: 8 with 9" in explained["text"]
        query = ask(gateway, JOIN)
        wait_for(lambda: len(peer.programs()) == 1)
        [(number, program)] = peer.programs().items()
        fields = codec.decode_program(program).fields
        assert [field.aggregate for field in fields] == [0, 0, Aggregate.PAIRS]
        [stream] = [s for s in gateway._network.streams.values() if s.query == number]
        told = pairs_clause(stream.mote_query)
        assert told is not None
        assert bytes(told.values) == fields[2].code
        assert {host: pairs for host, (_, pairs) in hosts_of(told).items()} == {
            2: ((3, 4),),
            1: ((3, 5), (4, 5)),
        }
        assert told.pairs == ((8, 9),)

        [status] = gateway.site.status()["joins"]
        assert (status["query"], status["kind"], status["past_their_host"]) == (query.id, "at ancestor", 0)
        assert status["base"] == [{"pair": [8, 9], "why": "no mote but the root is above both"}]

        epoch = int(peer.now()) + 1
        for _ in range(2):
            peer.waiting.append(
                codec.encode(
                    PacketType.JOINED, query=number, s=3, s_epoch=epoch - 1, s_nulls=0, t=4, t_epoch=epoch, t_nulls=0,
                    values=struct.pack("<2h", 2500, 2200),
                )
            )  # fmt: skip
        for node, at, temp in (
            (8, epoch, 2500),
            (9, epoch, 2000),
            (8, epoch + 1, 2100),
            (3, epoch, 2300),
            (5, epoch, 2000),
        ):
            values = struct.pack("<Bh", 3, temp)
            peer.waiting.append(
                codec.encode(PacketType.RESULT, query=number, node=node, epoch=at, nulls=0, values=values)
            )
        # What came past its host (3 with 5) is joined, too, where its window can only be what it is; so is 5 with the row of 3 of which an
        # answer of its host tells.
        wanted = {
            (epoch, 3, 4, 1, 0, 2500, 2200),
            (epoch, 8, 9, 0, 0, 2500, 2000),
            (epoch, 3, 5, 0, 0, 2300, 2000),
            (epoch, 3, 5, 1, 0, 2500, 2000),
        }
        wait_for(lambda: logged(gateway.log.path, stream.number) == wanted, 60)
        assert gateway.site.status()["joins"][0]["past_their_host"] == 2

        # Of 4 no row has come, and nobody says that it has any.
        def silent() -> dict[tuple[int, int], str]:
            return {tuple(one["pair"]): one["why"] for one in gateway.site.status()["joins"][0]["silent"]}

        wait_for(lambda: (4, 5) in silent(), 60)
        assert silent()[4, 5].startswith("no two rows have matched in ")
        assert (
            "  no answers of 4 with 5: no two rows have matched in " in gateway.queries.explain(JOIN)["text"]
        )

        report(peer, 3, 1, 2, 9)
        wait_for(lambda: len(peer.programs()) == 2, 60)
        [moved] = [s for s in gateway._network.streams.values() if s.query not in (number,)]
        anew = pairs_clause(moved.mote_query)
        assert anew is not None
        assert {host: pairs for host, (_, pairs) in hosts_of(anew).items()} == {1: ((3, 4), (3, 5), (4, 5))}


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (JOIN.replace("s.room = t.room AND s.nodeid < t.nodeid AND ", ""), "no condition is of attributes alone that never change"),
        (JOIN.replace("sensors AS t", "sensors AS t, sensors AS u"), "JOIN AT ANCESTOR is for two motes"),
        ("SELECT nodeid FROM sensors JOIN AT ANCESTOR", "JOIN AT ANCESTOR is for two motes"),
        (JOIN.replace("3 ROWS", "9 ROWS"), "WINDOW 9 ROWS is too large for motes"),
        (JOIN.replace("3 ROWS", "9 s"), "a window of 9 sample periods is too large"),
        (JOIN.replace("WINDOW 3 ROWS ", ""), "a join of motes has one window"),
        (JOIN + " GROUP BY s.room", "GROUP BY is not for rows that motes join"),
        (JOIN + " ORDER BY difference", "ORDER BY is not for rows that motes join"),
        (JOIN + " OUTPUT ACTION (SELECT temp FROM sensors ONCE)", "OUTPUT ACTION (SELECT …) is not for rows that motes join"),
        (JOIN.replace("ANCESTOR", "BASE") + " OUTPUT ACTION leds(1)", "and with JOIN AT BASE none does write JOIN AT ANCESTOR"),
        (JOIN.replace("ANCESTOR", "BASE") + " OUTPUT ACTION SIGNAL near", "SIGNAL is for the mote that joins, and with JOIN AT BASE"),
        (JOIN.replace("AT ANCESTOR", "NAIVE") + " OUTPUT ACTION leds(1)", "say where motes join, as in JOIN AT ANCESTOR"),
        (JOIN.replace("JOIN AT ANCESTOR", "") + " OUTPUT ACTION leds(1)", "say where motes join, as in JOIN AT ANCESTOR"),
        (JOIN.replace("JOIN", "OUTPUT ACTION leds(1) JOIN") + " LEARNING ON", "LEARNING ON may have the gateway join"),
        (JOIN + " OUTPUT ACTION SIGNAL near(s.nodeid)", "this is in every event, and is not of s or t there"),
        (JOIN + " OUTPUT ACTION leds(9)", "leds(9) is out of range"),
        (JOIN + " OUTPUT ACTION leds(temp)", "'temp' is in several tables"),
        (JOIN + " OUTPUT ACTION power_off(s.nodeid)", "write power_off: it acts on the mote that joins"),
        (JOIN.replace("temp > 2", "tmep > 2"), "unknown attribute 'tmep' did you mean 'temp'? attributes are nodeid, "),
        (JOIN.replace("temp > 2", "temp > joined_at"), "unknown attribute 'joined_at' two rows that motes join say together"),
        (JOIN + " OUTPUT ACTION leds(joined_at % 8)", "unknown attribute 'joined_at' two rows that motes join say together"),
        (JOIN + " OUTPUT ACTION SIGNAL near(joined_at)", "unknown attribute 'joined_at' two rows that motes join say together"),
        (JOIN.replace("SELECT", "SELECT s.joined_at,"), "select joined_at there, as a column"),
        ("SELECT joined_at FROM sensors SAMPLE PERIOD 1 s", "select joined_at there, as a column"),
        (JOIN + " LATENESS 3 s", "LATENESS is not for rows that motes join"),
        (JOIN.replace("SAMPLE PERIOD 1 s", "ONCE"), "motes join rows of a sample period"),
        (JOIN.replace("s.temp - t.temp > 2", "s.time > t.time"), "motes do not know s.time > t.time"),
        (JOIN.replace("AT ANCESTOR", "BY HASH").replace("s.room = t.room AND ", ""), "no condition says that an attribute"),
        (JOIN.replace("s.temp - t.temp AS difference", "COUNT(*)"), "name it in GROUP BY"),
    ],
)  # fmt: skip
def test_what_motes_cannot_is_refused_by_name(sql: str, said: str) -> None:
    with pytest.raises(QueryError) as refused:
        _ = planned(sql, {}) or plan_query(sql)
    assert said in f"{refused.value.message} {refused.value.hint}"


def test_what_two_rows_do_is_told_of_attributes_that_both_carry() -> None:
    """Light is asked for by the command alone, and is carried for it; motes read of pairs before they read what these do."""
    plan = plan_query(JOIN + " OUTPUT ACTION leds(s.light % 8) OUTPUT ACTION SIGNAL near(t.temp)")
    assert isinstance(plan, QueryPlan)
    program = codec.decode_program(encode(merge([plan]), 0))
    pairs, action, signal = program.fields[-3:]
    assert (pairs.aggregate, action.aggregate, signal.aggregate) == (
        Aggregate.PAIRS,
        Aggregate.ACTION,
        Aggregate.SIGNAL,
    )
    told = pairs_clause(merge([plan]))
    assert told is not None
    assert told.name == "temp light"
    assert bytes([Op.STORED, 0 << 4 | 2]) in action.code
    assert bytes([Op.STORED, 1 << 4 | 1]) in signal.code


def test_for_pairs_at_the_gateway_nobody_acts_and_that_is_said(peer: RootPeer, tmp_path: Path) -> None:
    """1 and 2, of one room, have only the root above them; 4 and 5 of another are below 3."""
    with opened(peer, tmp_path) as gateway:
        for node, parent, level, room in (
            (1, 0, 1, 7),
            (2, 0, 1, 7),
            (3, 0, 1, None),
            (4, 3, 2, 9),
            (5, 3, 2, 9),
        ):
            report(peer, node, parent, level, room)
        wait_for(lambda: len(gateway._network.catalog.all()) == 5)
        query = ask(gateway, JOIN + " OUTPUT ACTION leds(1)")
        wait_for(lambda: len(peer.programs()) == 1)
        [program] = peer.programs().values()
        fields = codec.decode_program(program).fields
        assert [field.aggregate for field in fields][-2:] == [Aggregate.PAIRS, Aggregate.ACTION]
        told = gateway.pairs.told()[query.id]
        assert "1 at 3: 4 with 5" in told
        assert told.endswith("; for pairs at the gateway no mote acts")


def test_a_naive_join_is_the_gateways() -> None:
    plan = planned(JOIN.replace("AT ANCESTOR", "NAIVE"), {})
    assert plan is not None
    assert plan.sources is not None
    assert plan.sources.join is not None
