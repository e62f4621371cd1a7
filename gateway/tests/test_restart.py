"""What a gateway knows when it starts again on a data directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.process import SQL
from skerry.daemon import Gateway
from skerry.queries import UserQuery
from skerry_protocol.packets import QUERIES_MAXIMUM


def asked(gateway: Gateway, sql: str = SQL, user: str = "ada") -> UserQuery:
    query = gateway.ask(sql, user)
    assert isinstance(query, UserQuery)
    return query


def test_ids_of_queries_that_were_stopped_are_not_given_again(peer: RootPeer, tmp_path: Path) -> None:
    with opened(peer, tmp_path) as gateway:
        assert [asked(gateway).id for _ in range(3)] == ["1", "2", "3"]
        gateway.stop("3")
        gateway.stop("2")
    with opened(peer, tmp_path) as gateway:
        assert asked(gateway).id == "4"
        for query in ("1", "4"):
            gateway.stop(query)
    with opened(peer, tmp_path) as gateway:
        assert gateway.queries() == []
        assert asked(gateway).id == "5"


def test_explain_says_when_motes_have_no_room_for_a_query(peer: RootPeer, tmp_path: Path) -> None:
    with opened(peer, tmp_path) as gateway:
        for i in range(QUERIES_MAXIMUM):
            query = f"SELECT AVG(temp) FROM sensors SAMPLE PERIOD {i + 1} s"
            assert gateway.explain(query)["refused"] is None
            asked(gateway, query)
        assert gateway.explain(query)["refused"] is None, "which it shares"
        explained = gateway.explain(SQL)
        why = f"motes run at most {QUERIES_MAXIMUM} queries at once, and {QUERIES_MAXIMUM} run already"
        assert explained["refused"].startswith(why)
        assert explained["text"].splitlines()[-1] == f"refused now: {explained['refused']}"
        with pytest.raises(ValueError, match=why):
            asked(gateway)
