"""What a gateway knows when it starts again on a data directory."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.process import SQL, queue_rows, wait_for
from skerry.delivery import window_snapshots
from skerry.planner.planner import plan_query
from skerry.service import restore
from skerry.service.gateway import Gateway
from skerry.service.queries import UnknownQueryError, UserQuery
from skerry.storage.state import DataError
from skerry_protocol import codec
from skerry_protocol.codes import PacketType
from skerry_protocol.limits import QUERIES_MAXIMUM


def ask(gateway: Gateway, sql: str = SQL, user: str = "ada") -> UserQuery:
    query = gateway.queries.ask(sql, user)
    assert isinstance(query, UserQuery)
    return query


def test_ids_of_queries_that_were_stopped_are_not_given_again(peer: RootPeer, tmp_path: Path) -> None:
    with opened(peer, tmp_path) as gateway:
        assert [ask(gateway).id for _ in range(3)] == ["1", "2", "3"]
        gateway.queries.stop("3")
        gateway.queries.stop("2")
    with opened(peer, tmp_path) as gateway:
        assert ask(gateway).id == "4"
        for query in ("1", "4"):
            gateway.queries.stop(query)
    with opened(peer, tmp_path) as gateway:
        assert gateway.queries.all() == []
        assert ask(gateway).id == "5"


@pytest.mark.parametrize(
    ("select", "rows_of_window"),
    [
        ("SELECT nodeid, temp FROM sensors", None),
        ("SELECT nodeid, MAX(temp, 2 s) AS most FROM sensors GROUP BY nodeid", 3),
        ("SELECT MAX(temp, start, 2 s) AS most FROM sensors", 1),
    ],
)
def test_what_has_ended_is_read_after_a_restart_too(
    peer: RootPeer, tmp_path: Path, select: str, rows_of_window: int | None
) -> None:
    with opened(peer, tmp_path) as gateway:
        query = ask(gateway, f"{select} SAMPLE PERIOD 1 s FOR 4 s")
        wait_for(peer.programs)
        [(number, program)] = peer.programs().items()
        first = codec.decode_program(program).start
        # Windows of 2 s end at even seconds: of four epochs that begin with an odd one, one of them is whole.
        windows = 2 - first % 2
        # Motes sample on behind FOR until a row is 12 s behind the last window, which that row brings.
        queue_rows(peer, number, range(first, first + 17), program)
        wait_for(lambda: gateway.delivery.rows == 51)
        clock = gateway.roots[0].network.clock
        clock.restart(round(clock.now()) + 1000, 0, time.time())
        wait_for(lambda: query.finished)
    with opened(peer, tmp_path) as gateway:
        query = gateway.queries.get(query.id, "ada")
        assert query.finished
        portion = gateway.delivery.reader(query, None).read()
        rows = [values for part in portion.deliveries for _, values in part.values()]
        last = first + 3 if rows_of_window is None else first + windows + 1
        assert len(rows) == (12 if rows_of_window is None else rows_of_window * windows)
        assert max(row.get("most", row.get("temp")) for row in rows) == (2000 + last * 10 + 3) / 100


def test_windows_are_there_before_spark_is(
    peer: RootPeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_snapshots, "AGAIN_MAXIMUM", 1)
    text = "SELECT nodeid, MAX(temp, 2 s) AS most FROM sensors GROUP BY nodeid SAMPLE PERIOD 1 s"

    def rows(gateway: Gateway, position: int) -> list[tuple[int, dict[str, object]]]:
        portion = gateway.delivery.reader(query, position).read()
        assert portion.position == gateway.delivery.rows - 1
        return [row for part in portion.deliveries for row in part.values()]

    with opened(peer, tmp_path) as gateway:
        query = ask(gateway, text)
        wait_for(peer.programs)
        [(number, program)] = peer.programs().items()
        first = codec.decode_program(program).start
        queue_rows(peer, number, range(first, first + 40), program)
        wait_for(lambda: gateway.delivery.rows == 120)
        gateway.delivery.deliver()
        live = rows(gateway, -1)
        queue_rows(peer, number, range(first + 40, first + 60), program)
        wait_for(lambda: gateway.delivery.rows == 180)
    assert live
    with opened(peer, tmp_path) as gateway:
        query = gateway.queries.get(query.id, "ada")
        subscriber = gateway.delivery.engine.subscriber(query.id)
        assert subscriber is not None
        assert subscriber.buffer.deliveries(119, through=180) is not None, "in memory"
        later = rows(gateway, 119)
        assert later
        assert live + later == rows(gateway, -1)
        gateway.delivery.deliver()
        assert rows(gateway, 119) == later


def test_what_many_ask_in_the_same_words_is_planned_once(
    peer: RootPeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(peer, tmp_path) as gateway:
        asked = {query.id: query.plan for query in (ask(gateway, SQL, f"user-{n % 3}") for n in range(6))}
        other = ask(gateway, f"{SQL} FOR 1 h")
    planned = []

    def counted(sql: str, *beside: Any, **named: Any) -> Any:
        planned.append(sql)
        return plan_query(sql, *beside, **named)

    monkeypatch.setattr(restore, "plan_query", counted)
    with opened(peer, tmp_path) as gateway:
        found = {query.id: query for query in gateway.queries.all()}
        assert sorted(planned) == sorted([SQL, other.sql])
        assert {name: found[name].plan for name in asked} == asked
        assert found[other.id].plan == other.plan
        assert {name: found[name].user for name in asked} == {
            name: f"user-{n % 3}" for n, name in enumerate(asked)
        }


def test_explain_says_when_motes_have_no_room_for_a_query(peer: RootPeer, tmp_path: Path) -> None:
    with opened(peer, tmp_path) as gateway:
        for i in range(QUERIES_MAXIMUM):
            query = f"ON EVENT hot{i}: SELECT light FROM sensors SAMPLE PERIOD 1 s FOR 10 s"
            assert gateway.queries.explain(query)["refused"] is None
            ask(gateway, query)
        assert gateway.queries.explain(query)["refused"] is None, "which it shares"
        explained = gateway.queries.explain(SQL)
        why = f"motes run at most {QUERIES_MAXIMUM} queries at once, and {QUERIES_MAXIMUM} that nobody else"
        assert explained["refused"].startswith(why)
        assert explained["text"].splitlines()[-1] == f"refused now: {explained['refused']}"
        with pytest.raises(ValueError, match=why):
            ask(gateway)


def changed(data: Path, statement: str, *values: str) -> None:
    """What the gateway remembers, edited."""
    with closing(sqlite3.connect(data / "state.sqlite")) as state:
        state.execute(statement, values)
        state.commit()


def test_a_query_that_cannot_be_planned_any_more_ends_alone_and_says_why(
    peer: RootPeer, tmp_path: Path
) -> None:
    """As one of an extension that this gateway was started without."""
    with opened(peer, tmp_path) as gateway:
        first = ask(gateway, "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s")
        second = ask(gateway, "SELECT light FROM sensors SAMPLE PERIOD 4 s", "bob")
        alone = ask(gateway, "SELECT AVG(temp) FROM sensors SAMPLE PERIOD 8 s")
        outer = ask(
            gateway, "SELECT nodeid WHERE temp > 50 OUTPUT ACTION (SELECT light ONCE) SAMPLE PERIOD 9 s"
        )
        (inner,) = [query.id for query in gateway.queries.all() if query.started_by == outer.id]
        streams = gateway.site.status()["streams"]
        wait_for(lambda: peer.programs().keys() >= {stream["query"] for stream in streams})
    misspelt = "UPDATE queries SET sql = replace(sql, 'temp', 'tmep') WHERE id IN (?, ?, ?)"
    changed(tmp_path, misspelt, first.id, alone.id, outer.id)
    with opened(peer, tmp_path) as gateway:
        assert [query.id for query in gateway.queries.all()] == [second.id]
        ended = gateway.queries.ended("ada")
        assert [one.id for one in ended] == [first.id, alone.id, outer.id, inner]
        assert "unknown attribute 'tmep'" in ended[0].why
        assert f"it was started by query {outer.id}, which has ended" in ended[3].why
        assert gateway.queries.ended("bob") == []
        with pytest.raises(UnknownQueryError, match=f"query {first.id} has ended: it could not be planned"):
            gateway.queries.get(first.id, "ada")
        with pytest.raises(UnknownQueryError, match=f"no query {first.id}: "):
            gateway.queries.get(first.id, "bob")
        # What motes ran for the others is stopped, and what they shared gives way to what bob asks.
        wait_for(lambda: stopped(peer) == peer.programs().keys() - {max(peer.programs())})
        assert gateway.site.status()["streams"][-1]["columns"] == ["light"]
        assert gateway.site.status()["streams"][-1]["period_ms"] == 4000
    with opened(peer, tmp_path) as gateway:
        assert gateway.queries.ended() == ended, "until their user has stopped them"
        with pytest.raises(UnknownQueryError, match="has ended"):
            gateway.queries.stop(first.id, "ada")
        assert gateway.queries.ended() == ended[1:]
        gateway.queries.ask("DROP ALL", "ada")
        assert gateway.queries.ended() == []
        assert int(ask(gateway).id) == int(inner) + 1


def stopped(peer: RootPeer) -> set[int]:
    """Mote queries that the root was told to stop."""
    return {p.body.query for p in list(peer.received) if p.type is PacketType.QUERY_STOP and p.body.query}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("state.sqlite", ""),
        ("state.sqlite", "{"),
        ("state.sqlite", "{" * 5000),
        ("history/manifest.json", "[]"),
        ("history/manifest.json", '{"version": 2, "rows": "x", "files": [], "streams": {}, "gone": null}'),
    ],
)
def test_what_is_not_as_the_gateway_wrote_it_is_named(
    peer: RootPeer, tmp_path: Path, name: str, text: str
) -> None:
    with opened(peer, tmp_path) as gateway:
        ask(gateway)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError) as refused:
        Gateway([peer.url], tmp_path)
    said = str(refused.value)
    assert name.rpartition("/")[2] in said
    assert "put it back from a copy" in said or "take it away" in said
    assert "\n" not in said


def test_a_state_that_was_taken_away_is_missed(peer: RootPeer, tmp_path: Path) -> None:
    with opened(peer, tmp_path) as gateway:
        ask(gateway)
    (tmp_path / "state.sqlite").unlink()
    for _ in range(2):
        with pytest.raises(
            DataError, match="it is not there, though a gateway has saved one: put it back from a copy"
        ):
            Gateway([peer.url], tmp_path)


def test_copies_beside_the_log_are_passed_over(peer: RootPeer, tmp_path: Path) -> None:
    (tmp_path / "log" / "old").mkdir(parents=True)
    (tmp_path / "log" / "00000000000000000000.copy.rows").touch()
    with opened(peer, tmp_path) as gateway:
        assert gateway.delivery.rows == 0


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("UPDATE queries SET tables = '{'", "JSONDecodeError"),
        ("UPDATE streams SET mote_query = '[]'", "TypeError"),
        ("UPDATE sharing_groups SET kind = 'none'", "'none' is not a valid Kind"),
        ("DELETE FROM links", "a row of .* belongs to one of links that is not there"),
        ("DROP TABLE pairings", "no such table|pairings"),
    ],
)
def test_tables_that_somebody_has_edited_are_named(
    peer: RootPeer, tmp_path: Path, statement: str, why: str
) -> None:
    with opened(peer, tmp_path) as gateway:
        ask(gateway)
    changed(tmp_path, statement)
    with pytest.raises(DataError, match=f"state.sqlite.*is not as the gateway wrote it .*({why})") as refused:
        Gateway([peer.url], tmp_path)
    assert "put it back from a copy, or take another data directory" in str(refused.value)
