"""What is known of sources stands in the catalog, also after a restart, and planners of joins go by it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.process import wait_for
from gateway.tests.sources.one_source import SHORT, again, come, one_source
from skerry.service import kept_statistics
from skerry.service.gateway import Gateway
from skerry.service.queries import UserQuery
from skerry.sql.errors import QueryError

ROWS = 40
JOIN = "SELECT a.rain FROM weather a, weather b WINDOW {} WHERE a.place = b.place LATENESS 0 s"
SOURCES = "SELECT rows, round(rate, 3), errors FROM sources WHERE sensors = 'weather'"
FIELDS = "SELECT field, type, bytes, least, greatest FROM source_fields WHERE sensors = 'weather'"


def known(gateway: Gateway) -> list[list[list[Any]]]:
    return [gateway.inventory.select(sql)[1] for sql in (SOURCES, FIELDS)]


def test_a_column_may_take_the_place_of_one_of_another_type(peer: RootPeer, tmp_path: Path) -> None:
    (tmp_path / "streams").mkdir()
    file = tmp_path / "streams" / "rain.csv"
    file.touch()
    with opened(peer, tmp_path) as gateway:
        for text in (
            SHORT,
            "INSERT INTO weather VALUES (1, 'file:rain.csv?format=csv&from=start')",
            "ALTER SENSORS weather ADD x INT",
            "UPDATE weather SET x = 3",
        ):
            gateway.queries.ask(text, "ada")
        query = gateway.queries.ask("SELECT rain FROM weather", "ada")
        assert isinstance(query, UserQuery)
        gateway.sources.start()
        file.write_text("1,,\n")
        come(gateway, query, 1)
        process = gateway.sources.pid
        for text in (
            "ALTER SENSORS weather DROP x",
            "ALTER SENSORS weather ADD x TIMESTAMP",
            "UPDATE weather SET x = '2002-11-06'",
        ):
            gateway.queries.ask(text, "ada")
        for number in range(2, 5):
            with file.open("a") as growing:
                growing.write(f"{number},,\n")
            assert come(gateway, query, number)[-1] == (number,)
        ranges = {row[0]: row[3:] for row in known(gateway)[1]}
        assert ranges["x"] == ["2002-11-06T00:00:00.000Z"] * 2
        assert gateway.sources.pid == process, "nothing has gone wrong that had it start anew"


def test_what_is_known_of_sources_outlives_a_restart(
    peer: RootPeer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    streams = tmp_path / "streams"
    streams.mkdir()
    lines = [
        json.dumps({"rain": n / 4, "place": "quay", "moment": f"2002-11-06 12:00:{n:02}"})
        for n in range(ROWS)
    ]
    (streams / "rain.jsonl").write_text("\n".join(["nonsense", *lines, ""]))
    with one_source(peer, tmp_path, "file:rain.jsonl?format=json&from=start", SHORT) as (gateway, query):
        assert len(come(gateway, query, ROWS)) == ROWS
        # The row that does not fit is told with how the source is.
        wait_for(lambda: known(gateway)[0][0][2])
        before = known(gateway)
        assert before[0] == [[ROWS, 1.0, 1]]
        fields = {name: (kind, least, greatest) for name, kind, _, least, greatest in before[1]}
        assert fields["feed.rain"] == ("DOUBLE", 0.0, (ROWS - 1) / 4)
        assert fields["feed.moment"][1:] == ("2002-11-06T12:00:00.000Z", f"2002-11-06T12:00:{ROWS - 1}.000Z")
    with again(peer, tmp_path) as (gateway, _):
        assert known(gateway) == before
        assert f"windows keep about {3600:,} rows of a" in gateway.queries.explain(JOIN.format("1 h"))["text"]
        with pytest.raises(QueryError, match="more than the limit"):
            gateway.queries.ask(JOIN.format("10000 day"), "ada")
    (tmp_path / kept_statistics.FILE).write_text("[[1, 2]]")
    with caplog.at_level(logging.WARNING), again(peer, tmp_path) as (gateway, _):
        assert f"{kept_statistics.FILE} is damaged" in caplog.text
        assert gateway.queries.explain(JOIN.format("10000 day"))["text"].endswith(
            "have brought rows for long enough to know what windows keep of them"
        )
