"""A gateway that has no motes serves sources; and what is told when the process that reads them does not live."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from gateway.tests.opened import opened
from gateway.tests.process import wait_for
from gateway.tests.sources.one_source import SHORT, come, state
from skerry.service.queries import UserQuery
from skerry.sql.errors import QueryError

MOTES = "SELECT nodeid FROM sensors SAMPLE PERIOD 1 s"


def test_sources_are_served_and_read_again_when_their_process_dies(tmp_path: Path) -> None:
    (tmp_path / "streams").mkdir()
    file = tmp_path / "streams" / "rain.csv"
    file.write_text("1,hill,\n2,hill,\n")
    with opened([], tmp_path) as gateway:
        gateway.queries.ask(SHORT, "ada")
        gateway.queries.ask("INSERT INTO weather VALUES (1, 'file:rain.csv?format=csv&from=start')", "ada")
        query = gateway.queries.ask("SELECT rain FROM weather", "ada")
        second = gateway.queries.ask("SELECT rain, place FROM weather WHERE rain > 1", "eve")
        assert isinstance(query, UserQuery)
        assert isinstance(second, UserQuery)
        for ask in (gateway.queries.ask, gateway.queries.explain):
            with pytest.raises(QueryError, match="this gateway has no motes"):
                ask(*([MOTES, "ada"] if ask == gateway.queries.ask else [MOTES]))  # type: ignore[arg-type, operator]
        gateway.sources.start()
        assert come(gateway, query, 2) == [(1,), (2,)]
        wait_for(lambda: state(gateway)["rows"] == 2)
        found = state(gateway)
        assert (found["readers"], found["waiting"]) == (2, 0)
        assert found["bytes"] > 0
        assert gateway.site.status()["roots"] == []
        os.kill(gateway.sources.pid or 0, signal.SIGKILL)
        wait_for(lambda: gateway.sources.trouble is not None)
        assert (
            gateway.sources.trouble
            == "the process that reads sources ended, exit code -9; it starts again in 1 s"
        )
        file.write_text("1,hill,\n2,hill,\n3,hill,\n")
        assert come(gateway, query, 3) == [(1,), (2,), (3,)]
        wait_for(lambda: gateway.sources.trouble is None)
        assert come(gateway, second, 2) == [(2, "hill"), (3, "hill")]
    with opened([], tmp_path) as gateway:
        assert len(gateway.queries.all()) == 2
