"""Tables of sensors that are no motes, over HTTP: made, filled, changed, asked, over restarts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import skerry
from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.served import served
from skerry.client.errors import GatewayError

CREATE = "CREATE SENSORS detectors (id INT, place TEXT, reading STREAM (gas TEXT, level DECIMAL 'ppm', at TIMESTAMP TIME))"
INSERT = "INSERT INTO detectors VALUES (1, 'gate A', 'tcp://127.0.0.1:5001?format=json'), (2, 'gate B', 'http://127.0.0.1:5002/now?every=2s')"


def rows(client: skerry.Client, sql: str) -> list[dict[str, Any]]:
    return list(client.query(sql))


def test_static_columns_are_asked_without_opening_anything_and_survive_a_restart(
    peer: RootPeer, tmp_path: Path
) -> None:
    with opened(peer, tmp_path) as gateway, served(gateway) as url:
        ada = skerry.connect(url, user="ada")
        assert "no sensors yet" in ada.execute(CREATE)["done"]
        assert ada.execute(INSERT)["done"] == "2 rows inserted into detectors"
        assert (
            ada.execute("INSERT INTO detectors (place, id) VALUES ('gate C', 3)")["done"]
            == "1 row inserted into detectors"
        )
        asked = ada.query(
            "SELECT d.id, place FROM detectors AS d WHERE d.id IN (1, 3) OR place LIKE '%B' ORDER BY id DESC"
        )
        assert [column["type"] for column in asked.columns] == ["integer", "text"]
        assert list(asked) == [
            {"d.id": 3, "place": "gate C"},
            {"d.id": 2, "place": "gate B"},
            {"d.id": 1, "place": "gate A"},
        ]
        assert asked.status()["finished"]
        assert rows(ada, "SELECT id + 1 AS next FROM detectors WHERE reading IS NULL") == [{"next": 4}]
        assert rows(ada, "SELECT place FROM detectors WHERE id > 100") == []
    with opened(peer, tmp_path) as gateway, served(gateway) as url:
        ada = skerry.connect(url, user="ada")
        # Who has not read his answer yet has it after the restart, too.
        assert [row["d.id"] for row in ada.resume(asked.id)] == [3, 2, 1]
        assert (
            ada.execute("UPDATE detectors SET place = 'gate D' WHERE id = 3")["done"]
            == "1 row of detectors updated"
        )
        assert ada.execute("DELETE FROM detectors WHERE id = 2")["done"] == "1 row of detectors deleted"
        ada.execute("ALTER SENSORS detectors ADD floor INT 'm'")
        assert rows(ada, "SELECT id, place, floor FROM detectors ORDER BY id") == [
            {"id": 1, "place": "gate A", "floor": None}, {"id": 3, "place": "gate D", "floor": None},
        ]  # fmt: skip
    with opened(peer, tmp_path) as gateway, served(gateway) as url:
        ada = skerry.connect(url, user="ada")
        ada.execute("ALTER SENSORS detectors DROP floor")
        assert ada.execute("SHOW SENSORS")["rows"] == [
            ["detectors", "ada", 2, "id, place, reading", 0, 0.0, 0]
        ]
        described = ada.execute("DESCRIBE detectors")
        assert described["columns"] == ["column", "type", "unit", "what", "least", "greatest"]
        assert ["reading.level", "DECIMAL", "ppm", "", None, None] in described["rows"]
        assert ["reading.at", "TIMESTAMP", "", "the row's time, format iso", None, None] in described["rows"]
        assert "dropped" in ada.execute("DROP SENSORS detectors")["done"]
    with opened(peer, tmp_path) as gateway, served(gateway) as url:
        ada = skerry.connect(url, user="ada")
        assert ada.execute("SHOW SENSORS")["rows"] == []


def test_only_the_owner_changes_a_table_and_all_read_it(peer: RootPeer, tmp_path: Path) -> None:
    with opened(peer, tmp_path) as gateway, served(gateway) as url:
        ada, eve = (skerry.connect(url, user=user) for user in ("ada", "eve"))
        ada.execute(CREATE)
        ada.execute(INSERT)
        for sql in (INSERT, "UPDATE detectors SET id = 1", "DELETE FROM detectors", "DROP SENSORS detectors",
                    "ALTER SENSORS detectors DROP id",
                    "COPY detectors FROM 'x.csv'"):  # fmt: skip
            with pytest.raises(GatewayError, match="another user's"):
                eve.execute(sql)
        assert len(rows(eve, "SELECT id FROM detectors")) == 2


def test_a_csv_file_of_the_streams_folder_is_copied_whole_or_not_at_all(
    peer: RootPeer, tmp_path: Path
) -> None:
    with opened(peer, tmp_path) as gateway, served(gateway) as url:
        ada = skerry.connect(url, user="ada")
        ada.execute(CREATE)
        folder = tmp_path / "streams"
        folder.mkdir(exist_ok=True)
        (folder / "some.csv").write_text('place,id,reading\n"gate, the 1st",1,tcp://127.0.0.1:1\n,2,\n')
        assert ada.execute("COPY detectors FROM 'some.csv'")["done"] == "2 rows copied into detectors"
        assert rows(ada, "SELECT id, place FROM detectors") == [
            {"id": 1, "place": "gate, the 1st"}, {"id": 2, "place": None},
        ]  # fmt: skip
        (folder / "wrong.csv").write_text("id,place\n3,x\nfour,y\n")
        (folder / "twice.csv").write_text("id,place,ID\n3,x,4\n")
        (folder / "round.csv").symlink_to("round.csv")
        os.mkfifo(folder / "pipe.csv")
        for sql, why in (
            ("COPY detectors FROM 'round.csv'", "'round.csv' names no file: its links lead in a circle"),
            ("COPY detectors FROM 'a\0b.csv'", "names no file: embedded null byte"),
            ("COPY detectors FROM 'pipe.csv'", "'pipe.csv': it is no file"),
            ("COPY detectors FROM 'wrong.csv'", "line 3: column id is INT, which 'four' is not"),
            ("COPY detectors FROM 'twice.csv'", "its first line names 'ID' twice"),
            ("COPY detectors FROM 'none.csv'", "No such file"),
            ("COPY detectors FROM '../state.sqlite'", "is elsewhere"),
        ):
            with pytest.raises(GatewayError, match=why):
                ada.execute(sql)
        assert len(rows(ada, "SELECT id FROM detectors")) == 2


WRONG = [
    ("CREATE SENSORS detectors (a INT)", "there is a table 'detectors' already"),
    ("CREATE SENSORS x (a INTT)", "unknown type 'INTT'.*did you mean 'int'"),
    ("CREATE SENSORS x (a INT, A TEXT)", "two columns are called 'A'"),
    ("CREATE SENSORS x (a STREAM)", "a stream has no fields"),
    ("CREATE SENSORS x (a STREAM (b TEXT), c STREAM (d TEXT))", "one stream"),
    ("CREATE SENSORS x (a STREAM (b TEXT TIME))", "'b' is no time"),
    ("CREATE SENSORS x (a STREAM (b TIMESTAMP FORMAT 'unix'))", "unknown format 'unix'"),
    ("CREATE SENSORS x (a STREAM (b TEXT[]))", "arrays are of numbers"),
    ("CREATE SENSORS x (a STREAM (b INT FROM 'a.b'))", "begins with \\$"),
    ("CREATE SENSORS x (a STREAM (b INT FROM '$.b..c'))", r"'\$\.b\.\.c' is no path"),
    ("CREATE SENSORS x (a STREAM (b INT FROM '$'))", r"'\$' is no path"),
    (
        "CREATE SENSORS x (a STREAM (b TIMESTAMP FORMAT '%Q.%Y'))",
        "'%Q.%Y' is no pattern: 'Q' is a bad directive",
    ),
    ("CREATE SENSORS x (a STREAM (b TIMESTAMP FORMAT '%d %d %Y'))", "'%d %d %Y' is no pattern: redefinition"),
    ("CREATE SENSORS x (a STREAM (b TIMESTAMP FORMAT '%H:%M'))", "'%H:%M' names no year"),
    (f"INSERT INTO curves VALUES ('{'[' * 30_000}')", r"column points is DOUBLE\[\], which '\[+…' is not"),
    ("INSERT INTO detectors VALUES (1, 2, 'x')", "column place is TEXT, which 2 is not"),
    ("INSERT INTO detectors VALUES (1.5, 'a', 'x')", "column id is INT, which '1.5' is not"),
    ("INSERT INTO detectors VALUES (1, 'a')", "2 values for 3 columns"),
    ("INSERT INTO detector VALUES (1, 'a')", "did you mean 'detectors'"),
    ("INSERT INTO detectors (plac) VALUES ('a')", "did you mean 'place'"),
    ("UPDATE detectors SET place = 'x' WHERE level > 3", "a field of a stream is no column of a tuple"),
    ("DELETE FROM detectors WHERE place", "no condition"),
    ("SELECT plac FROM detectors", "did you mean 'place'"),
    ("SELECT place FROM detectors WHERE place = 3", "a text is compared with a number"),
    ("SELECT place FROM detectors SAMPLE PERIOD 10 s", "motes are sampled, other sensors are not"),
    ("SELECT level FROM detectors WINDOW = 1 h", "WINDOW is for joins.*one stream meets nobody"),
    ("SELECT level FROM detectors LATENESS 1 min", "LATENESS is for joins"),
    (
        "SELECT s.nodeid, d.place FROM sensors AS s, detectors AS d",
        "no window bounds how far apart rows of s and of d may be.*such as WINDOW.s, d. = 10 min",
    ),
    ("SELECT s.name, d.place FROM places AS s, detectors AS d", "'places' is no table of sensors"),
]


def test_what_is_wrong_is_told_with_what_would_be_right(peer: RootPeer, tmp_path: Path) -> None:
    with opened(peer, tmp_path) as gateway, served(gateway) as url:
        ada = skerry.connect(url, user="ada")
        ada.execute(CREATE)
        ada.execute("CREATE SENSORS curves (points DOUBLE[])")
        for sql, why in WRONG:
            ask = ada.query if sql.startswith("SELECT") else ada.execute
            with pytest.raises(GatewayError, match=why):
                ask(sql)


def test_two_values_at_once_are_told_to_be_never_true(peer: RootPeer, tmp_path: Path) -> None:
    with opened(peer, tmp_path) as gateway, served(gateway) as url:
        ada = skerry.connect(url, user="ada")
        ada.execute(
            "CREATE SENSORS Sensors (SensorID INT, SensorLocation TEXT, SensorValue STREAM (temperature DOUBLE))"
        )
        ada.execute(
            "INSERT INTO Sensors VALUES (2, 'tcp://127.0.0.1:5002', ''), (4, 'tcp://127.0.0.1:5004', '')"
        )
        asked = ada.query("Select S.SensorID FROM Sensors S WHERE S.SensorID=2 AND S.SensorID=4")
        assert list(asked) == []
        assert asked.notes == [
            "S.SensorID = 2 AND S.SensorID = 4 is never true, so that no row can come: write OR for either"
        ]
        pairs = "SELECT a.SensorID FROM Sensors a, Sensors b WINDOW 1 h WHERE a.SensorID = 2 AND {} = 4"
        assert ada.query(pairs.format("b.SensorID")).notes == []
        [note] = ada.query(pairs.format("a.SensorID")).notes
        assert note.startswith("a.SensorID = 2 AND a.SensorID = 4 is never true")
        explained = ada.explain(pairs.format("a.SensorID"))
        assert explained["notes"] == [note]
        assert explained["text"].splitlines()[-1] == f"note: {note}"
        # The motes' table has the same name, and other columns.
        assert ada.query("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s").columns[0]["name"] == "nodeid"


def test_what_is_done_at_once_has_no_plan(peer: RootPeer, tmp_path: Path) -> None:
    done = (
        "UPDATE t SET id = 2",
        "DROP SENSORS t",
        "DROP STREAM high",
        "SHOW STREAMS",
        "CREATE ATTRIBUTE rack",
    )
    with opened(peer, tmp_path) as gateway, served(gateway) as url:
        ada = skerry.connect(url, user="ada")
        for statement in done:
            with pytest.raises(GatewayError, match=r"is done at once, and has no plan.*: explain a SELECT"):
                ada.explain(statement)


def test_addresses_that_cannot_be_opened_are_told_as_they_come(peer: RootPeer, tmp_path: Path) -> None:
    with opened(peer, tmp_path) as gateway, served(gateway) as url:
        ada = skerry.connect(url, user="ada")
        ada.execute(CREATE)
        assert ada.execute(INSERT)["done"] == "2 rows inserted into detectors"
        (tmp_path / "streams").mkdir(exist_ok=True)
        (tmp_path / "streams" / "some.csv").write_text("id,reading\n8,nowhere\n9,\n")
        unknown = "there is no type of streams 'tpc': did you mean 'tcp'? there are file, folder"
        for sql, said in (
            ("INSERT INTO detectors VALUES (3, 'c', 'tpc://127.0.0.1:5001')", f"detectors; an address cannot be opened: {unknown}"),
            ("INSERT INTO detectors VALUES (4, 'd', 'tcp://h:1'), (5, 'e', 'file:/etc/passwd')",
             "detectors; 2 addresses, the first one cannot be opened: the operator allows no tcp://h:1: "),
            ("UPDATE detectors SET reading = 'file:a\0b' WHERE id = 4", "cannot be opened: 'a\0b' names no file: embedded null byte"),
            ("UPDATE detectors SET reading = 'tcp//x' WHERE id = 4", "updated; an address cannot be opened: 'tcp//x' is no address"),
            ("COPY detectors FROM 'some.csv'", "an address cannot be opened: 'nowhere' is no address: write scheme://host:port"),
        ):  # fmt: skip
            assert said in ada.execute(sql)["done"]
        assert ada.execute("UPDATE detectors SET id = 7 WHERE id = 3")["done"].startswith(
            "1 row of detectors updated; "
        )
        assert (
            ada.execute("UPDATE detectors SET place = 'f' WHERE id = 1")["done"]
            == "1 row of detectors updated"
        )
        assert len(rows(ada, "SELECT id FROM detectors")) == 7
