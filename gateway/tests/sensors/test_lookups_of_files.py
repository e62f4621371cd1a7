"""Tables of files that streams are joined with: of what type their columns are, and which table a name stands for."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.tests.opened import opened
from gateway.tests.process import wait_for
from gateway.tests.sensors.test_table_lookups import CREATE, START, ask, got, make, write_limits
from gateway.tests.sources.line_server import LineServer
from gateway.tests.sources.one_source import rows
from skerry.sql.errors import QueryError


def test_an_empty_table_has_the_types_that_the_file_beside_it_says_and_is_told_when_it_has_others(
    tmp_path: Path,
) -> None:
    server, tables = LineServer(), tmp_path / "tables"
    tables.mkdir()
    for name in ("said", "unsaid"):
        (tables / f"{name}.csv").write_text("gas,label,since\n")
    (tables / "said.csv.toml").write_text('[types]\ngas = "text"\nlabel = "text"\nsince = "time"\n')
    with opened([], tmp_path) as gateway:
        make(gateway, [server] * 3, ["('gate A', 1, 1.5, 0.5, TRUE, NULL)"])
        sql = "SELECT d.counted, t.label, t.since FROM detectors d LEFT JOIN {} t ON t.gas = d.gas WHERE d.id = 1"
        said, unsaid = ask(gateway, sql.format("said")), ask(gateway, sql.format("unsaid"))
        gateway.sources.start()
        server.send({"gas": "CO", "counted": 1, "moment": START})
        wait_for(lambda: len(rows(gateway, said)) == 1)
        notes = tmp_path / "tables.versions" / "notes"
        before = notes.read_text().count("\n")
        for name in ("said", "unsaid"):
            write_limits(
                tables / f"{name}.csv", [{"gas": "CO", "label": "one", "since": "2002-11-06 12:00:10"}]
            )
        wait_for(lambda: gateway.delivery.deliver() or notes.read_text().count("\n") == before + 2)
        server.send({"gas": "CO", "counted": 2, "moment": START + 1})
        wait_for(lambda: len(rows(gateway, said)) == 2)
        assert got(gateway, said) == Counter([(1, None, None), (2, "one", datetime(2002, 11, 6, 12, 0, 10, tzinfo=UTC))])  # fmt: skip
        assert gateway.delivery.paused(said) is None
        assert got(gateway, unsaid) == Counter([(1, None, None), (2, None, None)])
        trouble = gateway.delivery.paused(unsaid) or ""
        assert "table unsaid: column gas had nothing in it" in trouble
        assert "ask it again" in trouble
    server.close()


def test_a_query_goes_on_with_a_file_after_a_restart_where_a_table_of_sensors_is_called_like_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "limits.csv").write_text("gas,label\nCO,one\n")
    server = LineServer()
    with opened([], tmp_path) as gateway:
        make(gateway, [server] * 3, ["('gate A', 1, 1.5, 0.5, TRUE, NULL)"])
        query = ask(
            gateway, "SELECT d.counted, l.label FROM detectors d, limits l WHERE l.gas = d.gas AND d.id = 1"
        )
        gateway.queries.ask("CREATE SENSORS limits (gas TEXT, other INT)", "ada")
    with opened([], tmp_path) as gateway:
        [again] = gateway.queries.all()
        assert again.id == query.id
        gateway.sources.start()
        server.send({"gas": "CO", "counted": 1, "moment": START})
        wait_for(lambda: got(gateway, again) == Counter([(1, "one")]))
        with pytest.raises(QueryError, match="unknown column 'label'"):
            gateway.queries.ask(query.sql, "ada")
    server.close()


def test_a_column_of_a_file_that_cannot_be_used_is_told_with_why(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    spectra = pa.table({"gas": ["CO"], "lines": [[1.0, 2.0]]})
    pq.write_table(spectra, tmp_path / "tables" / "spectra.parquet")
    with opened([], tmp_path) as gateway:
        gateway.queries.ask(CREATE, "ada")
        for column in ("s.lines", "lines"):
            with pytest.raises(QueryError, match=r"column lines of table spectra cannot be used.*type list"):
                gateway.queries.ask(f"SELECT {column} FROM detectors d, spectra s WHERE s.gas = d.gas", "ada")
