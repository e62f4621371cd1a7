"""CREATE STREAM x AS SELECT …: a name for what a query fills, under which it is read and joined further."""

from __future__ import annotations

from pathlib import Path

import pytest

import skerry
from gateway.tests.opened import opened
from gateway.tests.sensors.test_tables import CREATE, INSERT
from gateway.tests.served import served
from skerry.client.errors import GatewayError

ALONE = (
    "CREATE STREAM alone AS SELECT a.gas, a.level, b.level AS other FROM detectors a LEFT JOIN detectors b "
    "ON b.id = 2 AND a.gas = b.gas WINDOW 10 min WHERE a.id = 1"
)


def refused(client: skerry.Client, sql: str) -> str:
    with pytest.raises(GatewayError) as error:
        (client.query if sql.startswith("SELECT") else client.execute)(sql)
    return str(error.value).split("\n")[0]


def test_a_stream_of_a_join_has_a_name_also_after_a_restart_and_goes_when_nobody_reads_it(
    tmp_path: Path,
) -> None:
    with opened([], tmp_path) as gateway, served(gateway) as url:
        ada, bob = skerry.connect(url, user="ada"), skerry.connect(url, user="bob")
        ada.execute(CREATE)
        ada.execute(INSERT)
        assert (
            ada.execute(ALONE)["done"]
            == "stream alone has 3 fields, and query 1 fills it: SELECT … FROM alone"
        )
        assert (
            "query 2 fills it"
            in ada.execute("create stream High as select * from detectors where level > 0.5 ppm")["done"]
        )
        assert ada.execute(
            "CREATE STREAM both AS SELECT x.gas FROM alone x JOIN high y ON x.gas = y.gas WINDOW 1 h"
        )
        explained = str(gateway.queries.explain("SELECT a.gas FROM alone, high a WINDOW 5 min"))
        assert "alone: 1 of the 1 sources of alone" in explained
        assert "LATENESS 30 min" in explained, "its own ten minutes, and those of alone with its window"
        assert "note: there is a table 'alone' already" in str(gateway.queries.explain(ALONE))
        assert refused(ada, ALONE).endswith("drop it first, with DROP STREAM alone, or take another name")
        assert "what a query fills is not changed" in refused(ada, "DELETE FROM alone")
        assert "'alone' is another user's" in refused(bob, "DROP STREAM alone")
    with opened([], tmp_path) as gateway, served(gateway) as url:
        ada = skerry.connect(url, user="ada")
        shown = [[row[0], row[2]] for row in ada.execute("SHOW STREAMS")["rows"]]
        assert shown == [["alone", "1"], ["High", "2"], ["both", "3"]]
        assert [row[0] for row in ada.execute("SHOW SENSORS")["rows"]] == ["detectors"]
        assert [row[:4] for row in ada.execute("DESCRIBE alone")["rows"]] == [
            ["row", "STREAM", "", "address"], ["row.gas", "TEXT", "", ""], ["row.level", "DECIMAL", "ppm", ""],
            ["row.other", "DECIMAL", "ppm", ""],
        ]  # fmt: skip
        reading = ada.query("SELECT gas FROM alone WHERE other IS NULL", linger_s=None)
        assert reading.columns == [{"name": "gas", "type": "text", "unit": "", "digits": None}]
        assert refused(ada, "DROP STREAM alone").startswith(
            f"query {reading.id} and stream both read stream alone"
        )
        with pytest.raises(GatewayError, match=f"query {reading.id} and stream both read stream alone"):
            ada.stop("1")
        assert refused(ada, "DROP SENSORS detectors").startswith("streams alone, High read 'detectors'")
        reading.stop()
        assert ada.execute("DROP STREAM both")["done"] == "stream both dropped"
        assert ada.execute("DROP STREAM alone")["done"] == "stream alone dropped"
        assert ada.stop_by("STOP QUERY 2") == ["2"]
    with opened([], tmp_path) as gateway, served(gateway) as url:
        ada = skerry.connect(url, user="ada")
        assert ada.execute("SHOW STREAMS")["rows"] == []
        assert not gateway.queries.all()
        assert (
            refused(ada, "DROP STREAM alone")
            == "unknown stream 'alone' at column 13: CREATE STREAM makes one"
        )


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("CREATE STREAM x AS SELECT level + 1 FROM detectors",
         "'level + 1' is no name for a field at column 27: give it one with AS: letters, digits and _, and not time or row"),
        ("CREATE STREAM x AS SELECT AVG(level, 1 min) FROM detectors",
         "a stream is made of rows at column 27: make the stream of rows, and ask for aggregates or the newest rows of that"),
        ("CREATE STREAM x AS SELECT level FROM detectors LIMIT 5",
         "LIMIT is for rows that have an end at column 54: leave it out, as rows come as they come"),
        ("CREATE STREAM x AS SELECT temp FROM sensors SAMPLE PERIOD 1 s",
         "a stream is made of streams at column 15: make it of tables of sensors, or of other streams, "
         "which SHOW SENSORS and SHOW STREAMS list"),
        ("CREATE STREAM sensors AS SELECT level FROM detectors", "motes are called 'sensors' at column 15: take another name"),
        ("CREATE STREAM x SELECT level FROM detectors",
         "this says nothing of a stream at column 1: write CREATE STREAM name AS SELECT …, DROP STREAM name or SHOW STREAMS"),
        ("SELECT a.gas FROM detectors a LEFT JOIN detectors b ON a.gas = b.gas WINDOW 5 s WHERE b.id = 1",
         "a condition on b in WHERE leaves no row with NULLs of a LEFT JOIN at column 87: "
         "write it behind ON, where it says which rows are met"),
        ("SELECT a.gas FROM detectors a LEFT JOIN detectors b ON a.gas = b.gas AND a.id = 1 WINDOW 5 s",
         "a condition behind ON is on a alone at column 56: all rows of a are in answers, and what chooses among them stands in WHERE"),
        ("SELECT a.gas FROM detectors a ASOF JOIN detectors b ON a.time < b.time WINDOW 5 s",
         "ASOF JOIN does not look ahead at column 56: it finds the latest row at its time or before, as if ON said a.time >= b.time"),
        ("SELECT a.gas FROM detectors a ASOF JOIN detectors b ON a.gas = b.gas WINDOW 5 ROWS",
         "ASOF JOIN within a window of ROWS at column 77: its window is one of time, such as WINDOW 10 min"),
        ("SELECT a.gas FROM detectors a LEFT JOIN detectors b ON a.gas = c.gas LEFT JOIN detectors c ON b.gas = c.gas WINDOW 5 s",
         "ON of b asks for c, which is joined behind it at column 56: only a, b stand there already, "
         "so say it behind ON of c, or in WHERE"),
        ("SELECT a.gas FROM detectors a LEFT JOIN detectors b ON a.gas = b.gas ASOF JOIN detectors c ON b.gas = c.gas "
         "WINDOW(a, c) = 5 s AND WINDOW(b, c) = 5 s",
         "LEFT JOIN of b has no window with what stands before it at column 115: say one, such as WINDOW(a, b) = 10 min"),
        ("SELECT a.gas FROM detectors a LEFT JOIN detectors b ON a.gas = b.gas",
         "no window bounds how far apart rows of a and of b may be: add one between them, such as WINDOW(a, b) = 10 min"),
        ("SELECT a.gas FROM detectors a ASOF JOIN detectors b ON a.gas = b.gas WINDOW 5 s USING NLW",
         "NLW has rows in no order of time at column 87: ASOF JOIN runs by HW or MW"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(client: skerry.Client, sql: str, said: str) -> None:
    assert refused(client, sql) == said


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> object:
    with opened([], tmp_path_factory.mktemp("data")) as gateway, served(gateway) as url:
        made = skerry.connect(url, user="ada")
        made.execute(CREATE)
        yield made
