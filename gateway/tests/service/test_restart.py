"""What a gateway knows when it starts again on a data directory."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.process import SQL, queue_rows, wait_for
from skerry.service.gateway import Gateway
from skerry.service.queries import UnknownQueryError, UserQuery
from skerry.storage.state import DataError
from skerry_protocol import codec
from skerry_protocol.packets import QUERIES_MAXIMUM, PacketType


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


def changed(data: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """What the gateway remembers, edited."""
    file = data / "gateway.json"
    state = json.loads(file.read_text())
    change(state)
    file.write_text(json.dumps(state))


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
    changed(
        tmp_path,
        lambda state: [
            state["queries"][query.id].update(sql=query.sql.replace("temp", "tmep"))
            for query in (first, alone, outer)
        ],
    )
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
        ("gateway.json", "{"),
        ("gateway.json", "[]"),
        ("gateway.json", "{}"),
        ("gateway.json", '{"saved": "x", "queries": {}}'),
        ("gateway.json", '{"queries": [], "catalog": {}}'),
        ("gateway.json", '{"queries": {"1": {"id": "1"}}, "catalog": {"motes": []}}'),
        ("gateway.changes", "{\n"),
        ("gateway.changes", '["saved"]\n'),
        ("gateway.changes", '{"saved": 1000, "changed queries": 3}\n'),
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


def test_copies_beside_the_log_are_passed_over(peer: RootPeer, tmp_path: Path) -> None:
    for name in ("root-0.old", "root-0"):
        (tmp_path / "log" / name).mkdir(parents=True)
        (tmp_path / "log" / name / "00000000000000000000.copy.rows").touch()
    with opened(peer, tmp_path) as gateway:
        assert gateway.delivery.rows == 0
