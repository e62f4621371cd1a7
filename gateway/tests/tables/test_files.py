"""Files that cannot be used: each is its own trouble, said by name, and nobody else's."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry.sql.errors import QueryError
from skerry.tables import files as files_module
from skerry.tables import store as store_module
from skerry.tables.columns import TableError, column_of
from skerry.tables.jdbc import connection_of
from skerry.tables.store import TableStore

JOIN = "SELECT s.nodeid, p.* FROM sensors s, {} p WHERE p.node = s.nodeid SAMPLE PERIOD 1 s"


@pytest.fixture(autouse=True)
def look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "LOOK_S", -1.0)


def good(directory: Path) -> None:
    """A table that sorts behind those of the tests."""
    (directory / "zones.csv").write_text("node,name\n1,lab\n")


def troubles(store: TableStore) -> dict[str, str | None]:
    """By name. As the API would: what it says is JSON."""
    described = json.loads(json.dumps(store.described()).encode("utf-8"))
    return {f"{one['name']} of {one['file']}": one["trouble"] for one in described}


def database(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def refused(store: TableStore, table: str) -> str:
    with pytest.raises(QueryError) as raised:
        plan_query(
            f"SELECT s.nodeid FROM sensors s, {table} p WHERE p.node = s.nodeid ONCE", tables=store.schemas()
        )
    assert raised.value.span is not None
    return f"{raised.value.message}: {raised.value.hint}"


@pytest.mark.parametrize(
    ("header", "trouble"),
    [
        ("a,b,a", "columns 1 and 3 are both called a: rename one"),
        ("node,name,Node", "columns 1 and 3 are both called node: rename one"),
        ("a,a,b,a", "columns 1, 2 and 4 are all called a: rename all but one"),
        ("node,name,,", "columns 3 and 4 have no name: name them, or take them out"),
        ("node,,name,,", "columns 2, 4 and 5 have no name: name them, or take them out"),
        ("node;name", "its columns are separated by semicolons: save it with commas"),
        ("node\tname", "its columns are separated by tabs: save it with commas"),
    ],
)
def test_columns_that_cannot_be_told_apart_are_said_and_the_other_files_are_read(
    tmp_path: Path, header: str, trouble: str
) -> None:
    (tmp_path / "places.csv").write_text(f"{header}\n{','.join('1' for _ in header.split(','))}\n")
    good(tmp_path)
    store = TableStore(tmp_path)
    assert troubles(store) == {"zones of zones.csv": None, "places of places.csv": trouble}
    assert store.get("zones").rows == 1
    with pytest.raises(TableError, match=f"^table places cannot be read: {trouble}$"):
        store.get("places")
    assert refused(store, "places") == f"table places cannot be read: {trouble}"


def test_no_table_takes_the_name_of_the_stream(tmp_path: Path) -> None:
    (tmp_path / "Sensors.csv").write_text("node\n1\n")
    good(tmp_path)
    said = "sensors is the stream of motes' rows: give the table another name"
    assert troubles(TableStore(tmp_path)) == {"zones of zones.csv": None, "sensors of Sensors.csv": said}


def test_one_column_without_a_name_does_no_harm(tmp_path: Path) -> None:
    """What writes the numbers of rows in front gives them no name."""
    (tmp_path / "places.csv").write_text(",node,name\n0,1,lab\n")
    assert list(TableStore(tmp_path).get("places").columns) == ["", "node", "name"]


def test_names_of_columns_in_another_encoding_are_said(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_bytes("node,höhe\n1,2\n".encode("latin-1"))
    good(tmp_path)
    store = TableStore(tmp_path)
    assert store.get("zones").rows == 1
    assert troubles(store)["places of places.csv"] == "names of its columns are not UTF-8: save it as UTF-8"


def test_what_nobody_thought_of_is_the_trouble_of_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def read(path: Path, **_: object) -> pa.Table:
        raise RuntimeError(f"nobody thought\nof {path.stem}")

    monkeypatch.setattr(files_module.pq, "read_table", read)
    (tmp_path / "places.parquet").write_bytes(b"")
    good(tmp_path)
    store = TableStore(tmp_path)
    assert troubles(store) == {
        "zones of zones.csv": None,
        "places of places.parquet": "RuntimeError: nobody thought of places",
    }
    assert "Traceback" in caplog.text, "a fault of the gateway can be found"


def test_files_that_cannot_be_looked_at_are_trouble_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "gone.csv").symlink_to("nowhere.csv")
    # Who opens it waits for a writer.
    os.mkfifo(tmp_path / "pipe.csv")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/pl\xe4tze.csv")).write_text("node\n1\n")
    good(tmp_path)
    store = TableStore(tmp_path)
    for _ in range(2):
        assert store.get("zones").rows == 1
        assert troubles(store) == {
            "zones of zones.csv": None,
            "loop of loop.csv": "Too many levels of symbolic links",
            "pipe of pipe.csv": "it is no file",
            r"pl\xe4tze of pl\xe4tze.csv": "its name is not UTF-8: rename it",
        }
    with pytest.raises(TableError) as missing:
        store.get("plätze")
    assert r"pl\xe4tze.csv: its name is not UTF-8" in str(missing.value)
    str(missing.value).encode()
    (tmp_path / "loop.csv").unlink()
    (tmp_path / "loop.csv").write_text("node\n1\n")
    assert store.get("loop").rows == 1


def test_a_directory_that_cannot_be_listed_is_said(tmp_path: Path) -> None:
    path = tmp_path / "tables"
    path.write_text("")
    store = TableStore(path)
    assert troubles(store) == {"tables of tables": "Not a directory"}
    with pytest.raises(
        TableError, match=r"table places is not there: no file of .* \(tables: Not a directory\)"
    ):
        store.get("places")


@pytest.mark.parametrize("others", [("places.parquet",), ("Places.csv",), ("site.db",)])
def test_a_table_of_two_files_is_refused_when_a_query_is_planned(
    tmp_path: Path, others: tuple[str, ...]
) -> None:
    (tmp_path / "places.csv").write_text("node,name\n1,lab\n")
    for name in others:
        match Path(name).suffix:
            case ".parquet":
                pq.write_table(pa.table({"number": [1]}), tmp_path / name)
            case ".csv":
                (tmp_path / name).write_text("number\n1\n")
            case _:
                database(tmp_path / name, "CREATE TABLE Places (number)")
    good(tmp_path)
    store = TableStore(tmp_path)
    names = " and ".join(sorted(["places.csv", *others]))
    said = f"table places is in {names}: rename one"
    assert refused(store, "places") == said
    assert refused(store, "PLACES") == said
    with pytest.raises(TableError, match=f"^{said}$"):
        store.get("places")
    assert troubles(store) == {
        "zones of zones.csv": None, "places of places.csv": said, f"places of {others[0]}": said
    }  # fmt: skip
    assert isinstance(
        plan_query(JOIN.format("zones").replace("p.*", "p.name"), tables=store.schemas()), QueryPlan
    )
    (tmp_path / others[0]).unlink()
    assert store.get("places").rows == 1
    assert isinstance(
        plan_query(JOIN.format("places").replace("p.*", "p.name"), tables=store.schemas()), QueryPlan
    )


def test_what_can_be_used_is_offered_where_a_table_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "broken.csv").write_text("a,a\n")
    good(tmp_path)
    said = refused(TableStore(tmp_path), "elsewhere")
    assert said.endswith("; and the files zones")


def test_one_table_of_a_database_that_cannot_be_used_leaves_the_others(tmp_path: Path) -> None:
    database(
        tmp_path / "site.db",
        "CREATE TABLE odd (node INTEGER, code)",
        "INSERT INTO odd VALUES (1, NULL), (2, 'x12'), (3, 12)",
        "CREATE TABLE vague (node INTEGER, level)",
        "INSERT INTO vague VALUES (1, 7), (2, x'00')",
        "CREATE TABLE source (node INTEGER)",
        "CREATE VIEW orphan AS SELECT * FROM source",
        "DROP TABLE source",
        "CREATE TABLE latin (node INTEGER, name TEXT)",
        "INSERT INTO latin VALUES (1, CAST(x'ff41' AS TEXT))",
        "CREATE TABLE huge (Far REAL)",
        "INSERT INTO huge VALUES (1e300)",
        "CREATE TABLE places (node INTEGER, high)",
        "INSERT INTO places VALUES (1, 2), (2, 2.5), (3, NULL)",
    )
    store = TableStore(tmp_path)
    assert store.get("places").rows == 3
    said = troubles(store)
    assert said.pop("places of site.db") is None
    assert said.pop("latin of site.db", "").startswith("Could not decode to UTF-8 column 'name'")
    assert said == {
        "odd of site.db": "column code has values of several types, as 'x12' and 12: store numbers or texts in it",
        "vague of site.db": "column level has values of several types, as 7 and b'\\x00': store numbers or texts in it",
        "orphan of site.db": "no such table: main.source",
        "huge of site.db": "column far has numbers beyond 1e+15 in their last decimal place",
    }
    with pytest.raises(
        TableError, match=r"^table odd cannot be read: column code has values of several types"
    ):
        store.get("odd")
    with pytest.raises(TableError, match=r"site\.db, table orphan: no such table"):
        store.get("elsewhere")


@pytest.mark.parametrize(
    ("kind", "numbers", "digits"),
    [
        (pa.decimal128(10, 2), ["1.50", "-2"], 2),
        (pa.decimal128(38, 10), ["1.5", "-2.25"], 10),
        (pa.decimal128(38, 18), ["1.5", "-20.25"], 6),
        (pa.decimal128(38, 18), ["1.12345678", None], 8),
        (pa.decimal256(60, 4), ["1.5"], 4),
        (pa.decimal128(38, 18), ["1234567.1234567891"], None),
        (pa.decimal128(38, 0), ["1e17"], None),
        (pa.int64(), [1, -(2**63)], None),
        (pa.int64(), [-(10**15), 10**15], 0),
    ],
)
def test_numbers_have_the_places_that_there_is_room_for(
    kind: pa.DataType, numbers: list[Any], digits: int | None
) -> None:
    """As databases have them: a number of no declared places comes with 18 of them."""
    values = [Decimal(number) if isinstance(number, str) else number for number in numbers]
    array = pa.chunked_array([pa.array(values, kind)])
    if digits is None:
        with pytest.raises(
            TableError, match=r"^column x has numbers beyond 1e.15 in their last decimal place$"
        ):
            column_of("x", array)
        return
    column = column_of("x", array)
    assert column.described.digits == digits
    found = zip(column.values.tolist(), column.known.tolist(), strict=True)
    assert [Decimal(value).scaleb(-digits) if known else None for value, known in found] == values


def test_a_database_that_is_none_is_trouble_under_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "site.db").write_text("no database at all, and long enough to be taken for a header\n" * 20)
    store = TableStore(tmp_path)
    assert troubles(store) == {"site of site.db": "file is not a database"}


@pytest.mark.parametrize("name", ["site#2.db", "a?b.db", "a%41b.db", "a b.db", "ä.db"])
def test_any_name_of_a_database_does(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "what #1? 100%41"
    directory.mkdir()
    database(directory / name, "CREATE TABLE places (node INTEGER)", "INSERT INTO places VALUES (1), (2)")
    monkeypatch.chdir(tmp_path)
    assert TableStore(Path(directory.name)).get("places").rows == 2
    assert [path.name for path in directory.iterdir()] == [name], "nothing is made"
    assert [path.name for path in tmp_path.iterdir()] == [directory.name]


def test_a_password_in_another_encoding_is_said_without_it(tmp_path: Path) -> None:
    (tmp_path / "driver.jar").write_bytes(b"")
    secret = tmp_path / "site.password"
    secret.write_bytes(b"p\xe4ssword")
    secret.chmod(0o600)
    path = tmp_path / "site.jdbc"
    path.write_text(
        'url = "jdbc:h2:site"\ntables = ["places"]\njar = "driver.jar"\ndriver = "D"\npassword_file = "site.password"\n'
    )
    with pytest.raises(TableError, match=r"^the password in site\.password is not UTF-8: write it in UTF-8$"):
        connection_of(path)


def test_changes_that_wait_in_a_write_ahead_log_are_read(tmp_path: Path) -> None:
    database(tmp_path / "site.db", "PRAGMA journal_mode = WAL", "CREATE TABLE zones (node INT, name TEXT)")
    store = TableStore(tmp_path)
    assert store.get("zones").rows == 0
    version = store.get("zones").version
    assert store.get("zones").version == version, "reading is no change"
    with closing(sqlite3.connect(tmp_path / "site.db", isolation_level=None)) as writer:
        for rows in (1, 2, 3):
            writer.execute("INSERT INTO zones VALUES (1, 'lab')")
            assert store.get("zones").rows == rows
    assert store.get("zones").rows == 3


def test_a_database_that_somebody_writes_to_is_read_once_he_is_done(tmp_path: Path) -> None:
    good(tmp_path)
    database(tmp_path / "site.db", "CREATE TABLE places (node INT)", "INSERT INTO places VALUES (1)")
    store = TableStore(tmp_path)
    with closing(sqlite3.connect(tmp_path / "site.db", isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()
        assert troubles(store)["site of site.db"] == "database is locked"
        assert time.monotonic() - began < 2, "nobody else waits for it"
        # Nothing of the file changes.
        writer.execute("ROLLBACK")
    assert troubles(store) == {"zones of zones.csv": None, "places of site.db": None}
