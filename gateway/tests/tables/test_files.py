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
        ("node;name", "its columns are separated by semicolons: save it with commas"),
        ("node\tname", "its columns are separated by tabs: save it with commas"),
        ("a,a", "column a: columns 1 and 2 are both called a: rename one"),
    ],
)
def test_a_file_without_a_column_that_can_be_used_is_said_and_the_other_files_are_read(
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


@pytest.mark.parametrize(
    ("header", "column", "trouble"),
    [
        ("a,node,a", "a", "columns 1 and 3 are both called a: rename one"),
        ("name,node,Name", "name", "columns 1 and 3 are both called name: rename one"),
        ("a,a,node,a", "a", "columns 1, 2 and 4 are all called a: rename all but one"),
        ("node,name,,", "", "columns 3 and 4 have no name: name them, or take them out"),
        ("node,,name,,", "", "columns 2, 4 and 5 have no name: name them, or take them out"),
    ],
)
def test_columns_that_cannot_be_told_apart_leave_the_others(
    tmp_path: Path, header: str, column: str, trouble: str
) -> None:
    (tmp_path / "places.csv").write_text(f"{header}\n{','.join('1' for _ in header.split(','))}\n")
    store = TableStore(tmp_path)
    assert troubles(store) == {"places of places.csv": None}
    assert store.get("places").troubles == {column: trouble}
    sql = "SELECT s.nodeid, p.{} FROM sensors s, places p WHERE p.node = s.nodeid SAMPLE PERIOD 1 s"
    assert isinstance(plan_query(sql.format("node"), tables=store.schemas()), QueryPlan)
    if column:
        with pytest.raises(QueryError) as raised:
            plan_query(sql.format(column), tables=store.schemas())
        assert raised.value.message == f"column {column} of table places cannot be used"
        assert raised.value.hint == trouble


def csv(directory: Path, text: str, said: str | None = None) -> dict[str, tuple[str, list[Any]]]:
    """Types and values of a CSV file's columns, with what stands beside it."""
    (directory / "places.csv").write_text(text)
    if said is not None:
        (directory / "places.csv.toml").write_text(said)
    table = TableStore(directory).get("places")
    found: dict[str, tuple[str, list[Any]]] = {}
    for name, column in table.columns.items():
        if column.text is not None:
            found[name] = column.type, column.text.to_pylist()
            continue
        numbers = (column.values / 10**column.described.digits).tolist()
        found[name] = column.type, [n if k else None for n, k in zip(numbers, column.known, strict=True)]
    return found


def test_texts_of_a_csv_file_are_what_sqlites_table_of_them_has(tmp_path: Path) -> None:
    rows = [
        ("007", "NA", "1", "1.5"),
        ("42", "null", "-2", "2e3"),
        ("1e5", "", "+3", ".25"),
        ("nan", "x", "0", "-0"),
    ]
    text = "plot,state,level,height\n" + "".join(f"{','.join(row)}\n" for row in rows)
    database(tmp_path / "other.db", "CREATE TABLE texts (plot TEXT, state TEXT)")
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.executemany(
            "INSERT INTO texts VALUES (?, ?)", [(plot, state or None) for plot, state, *_ in rows]
        )
        connection.commit()
    other = TableStore(tmp_path).get("texts").columns
    found = csv(tmp_path, text)
    for name in ("plot", "state"):
        texts = other[name].text
        assert texts is not None
        assert found[name] == ("text", texts.to_pylist())
    assert found["level"] == ("number", [1, -2, 3, 0])
    assert found["height"] == ("number", [1.5, 2000, 0.25, 0])


def test_sqlites_times_are_those_of_a_csv_file(tmp_path: Path) -> None:
    columns = ("day", "moment", "zoned", "none", "mixed")
    rows = [
        ("2024-05-01", "2024-05-01 10:00", "2024-05-01T10:00:00+02:00", "2024-13-01", "2024-05-01"),
        ("2024-05-02", "2024-05-02", "2024-05-01T10:00:00.125Z", "x", "later"),
    ]
    database(
        tmp_path / "other.db",
        f"CREATE TABLE times ({', '.join(columns)}, unix DATETIME, whole INTEGER)",
        *(f"INSERT INTO times VALUES ({', '.join(map(repr, row))}, 1714557600, 1714557600)" for row in rows),
    )
    found = csv(tmp_path, f"{','.join(columns)}\n" + "".join(f"{','.join(row)}\n" for row in rows))
    table = TableStore(tmp_path).get("times")
    seconds = {
        name: (column.values / 10**column.described.digits).tolist()
        for name, column in table.columns.items()
        if column.type == "time"
    }
    assert {name: found[name][1] for name in ("day", "moment", "zoned")} | {
        "unix": [1714557600] * 2
    } == seconds
    assert {name: column.type for name, column in table.columns.items()} == {
        **{name: kind for name, (kind, _) in found.items()}, "unix": "time", "whole": "number"
    }  # fmt: skip
    assert [found[name][0] for name in columns] == ["time", "time", "time", "text", "text"]
    assert seconds["zoned"] == [1714550400, 1714557600.125]


def test_a_column_of_numbers_but_for_one_text_says_why_it_is_of_texts(tmp_path: Path) -> None:
    assert csv(tmp_path, "node,height\n1,2\n2,NA\n3,5\n")["height"] == ("text", ["2", "NA", "5"])
    [described] = TableStore(tmp_path).described()
    assert described["columns"] == [
        {"name": "node", "type": "number", "trouble": None, "note": None},
        {"name": "height", "type": "text", "trouble": None, "note": "a text, as 'NA' in row 2 is no number"},
    ]


def test_what_stands_beside_a_csv_file_says_what_its_columns_are(tmp_path: Path) -> None:
    text = "plot,height,day,when\n7,2,2024-05-01,2024-05-01T10:00:00Z\n8,NA,2024-05-02,2024-05-01T12:30:00+02:00\n"
    assert csv(tmp_path, text)["plot"] == ("number", [7, 8])
    said = 'missing = ["NA"]\n[types]\nplot = "text"\nday = "text"\n'
    found = csv(tmp_path, text, said)
    assert found["plot"] == ("text", ["7", "8"])
    assert found["height"] == ("number", [2, None])
    assert found["day"] == ("text", ["2024-05-01", "2024-05-02"])
    assert found["when"][1] == [1714557600, 1714559400]


@pytest.mark.parametrize(
    ("said", "trouble"),
    [
        ("missing = 3", 'places.csv.toml: missing is 3: write a list of texts, as in ["NA"]'),
        ("types = 3", 'places.csv.toml: types is 3: write [types], and below it plot = "text"'),
        ('[types]\nplot = "date"', "places.csv.toml: plot is 'date': a column is text, number or time"),
        ('[types]\nplott = "text"', "places.csv.toml names a column plott: there are plot, height"),
        ("kinds = {}", "places.csv.toml has an unknown entry kinds: there are missing and types"),
        (
            "types",
            "places.csv.toml is no TOML: Expected '=' after a key in a key/value pair (at end of document)",
        ),
    ],
)
def test_what_stands_beside_a_csv_file_and_cannot_be_is_said(tmp_path: Path, said: str, trouble: str) -> None:
    (tmp_path / "places.csv").write_text("plot,height\n7,tall\n")
    store = TableStore(tmp_path)
    assert troubles(store) == {"places of places.csv": None}
    (tmp_path / "places.csv.toml").write_text(said)
    assert troubles(store) == {"places of places.csv": trouble}
    (tmp_path / "places.csv.toml").write_text('[types]\nheight = "number"\nplot = "time"')
    with pytest.raises(
        TableError, match="plot: '7' in row 1 is no time; column height: 'tall' in row 1 is no number"
    ):
        store.get("places")
    (tmp_path / "places.csv.toml").unlink()
    assert store.get("places").rows == 1


def test_line_breaks_in_quoted_fields_do_in_a_file_of_any_size(tmp_path: Path) -> None:
    rows = 60_000
    with open(tmp_path / "places.csv", "w") as written:
        written.write("node,note\n")
        for row in range(rows):
            written.write(f'{row},"first line\nsecond line of {row}, which is longer"\n')
    table = TableStore(tmp_path).get("places")
    assert table.rows == rows
    texts = table.columns["note"].text
    assert texts is not None
    assert texts[rows - 1].as_py() == f"first line\nsecond line of {rows - 1}, which is longer"


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
    (tmp_path / "broken.csv").write_text("a,a\n1,2\n")
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
    odd = {name: dict(store.get(name).troubles) for name in ("odd", "vague", "latin")}
    assert odd == {
        "odd": {"code": "it has values of several types, as 'x12' and 12: store numbers or texts in it"},
        "vague": {"level": "it has values of several types, as 7 and b'\\x00': store numbers or texts in it"},
        "latin": {"name": "it has a text that is not UTF-8, b'\\xffA': store it as UTF-8"},
    }
    said = {name: trouble for name, trouble in troubles(store).items() if trouble is not None}
    assert said == {
        "orphan of site.db": "no such table: main.source",
        "huge of site.db": "column far: it has numbers beyond 1e+15 in their last decimal place",
    }
    with pytest.raises(TableError, match=r"^table huge cannot be read: column far: it has numbers beyond"):
        store.get("huge")
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
        with pytest.raises(TableError, match=r"^it has numbers beyond 1e.15 in their last decimal place$"):
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


def test_all_that_a_table_depends_on_is_watched(tmp_path: Path) -> None:
    """A password that others could read, a driver that came later, a day that was added to a Parquet directory."""
    path, secret = tmp_path / "site.jdbc", tmp_path / "site.password"
    path.write_text(
        'url = "jdbc:h2:site"\ntables = ["places"]\njar = "driver.jar"\ndriver = "D"\npassword_file = "site.password"\n'
    )
    secret.write_text("secret\n")
    secret.chmod(0o644)
    days = tmp_path / "days.parquet"
    days.mkdir()
    pq.write_table(pa.table({"node": [1]}), days / "1.parquet")
    store = TableStore(tmp_path)
    try:
        assert store.get("days").rows == 1
        version = store.get("days").version
        assert store.get("days").version == version
        pq.write_table(pa.table({"node": [2, 3]}), days / "2.parquet")
        assert store.get("days").rows == 3
        assert "there is no driver" in str(troubles(store)["site of site.jdbc"])
        (tmp_path / "driver.jar").write_bytes(b"")
        assert troubles(store)["site of site.jdbc"] == "others can read the password: chmod 600 site.password"
        secret.chmod(0o600)
        assert troubles(store)["site of site.jdbc"] == "its database has not answered yet"
    finally:
        store.close()


def test_where_tables_belong_is_made_and_said(tmp_path: Path) -> None:
    store = TableStore(tmp_path / "data" / "tables")
    assert store.directory.is_dir()
    assert refused(store, "places").endswith(
        "CSV, Parquet and SQLite files belong into the gateway's directory of tables, which 'skerry tables' names"
    )


def test_a_file_that_comes_is_there_at_once(tmp_path: Path) -> None:
    """Whoever copies a file and asks is not told that there is none, though the directory has just been looked at."""
    store = TableStore(tmp_path)
    for number in range(20):
        assert len(store.schemas()) == number
        (tmp_path / f"rooms{number}.csv").write_text("room,name\n1,hall\n")
        assert store.get(f"rooms{number}").rows == 1
    (tmp_path / "rooms7.csv").unlink()
    assert "rooms7" not in store.schemas()
