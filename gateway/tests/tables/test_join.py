"""Streams joined with tables: against DuckDB, over files that change, and the two queries of the Fjords paper."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.tests.pasts import plain_records
from skerry.execution.residual import Residual, Rows
from skerry.execution.stream_batches import stream_batch
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.model.storage_points import Point, PointField
from skerry.planner.physical.merge import merge
from skerry.planner.planner import plan_query
from skerry.sql.errors import QueryError
from skerry.storage.log.record import Records
from skerry.streams.stream import Stream
from skerry.tables import store as store_module
from skerry.tables.columns import TableError
from skerry.tables.join import Joiner
from skerry.tables.store import TableStore
from skerry_protocol.attributes import ValueFormat

INCIDENTS = pa.table(
    {
        "segment": pa.array([1, 2, 2, 3, None, 9], pa.int64()),
        "fastest": pa.array([45.5, 30.25, 60.0, None, 10.0, 0.125], pa.float64()),
        "description": ["stalled car", "debris", "police", None, "flood", "fog"],
        "severe": [True, False, True, True, False, None],
        "time": pa.array(
            [1_795_132_000, 1_795_132_900, 1_795_133_500, 1_795_130_000, None, 0], pa.int64()
        ).cast(pa.timestamp("s")),
    }
)
OWNERS = pa.table({"owner": [7, 8, 9], "of": [1, 2, 3]})


@pytest.fixture(autouse=True)
def look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "LOOK_S", -1.0)


def write(path: Path, table: pa.Table) -> None:
    match path.suffix:
        case ".parquet":
            pq.write_table(table, path)
        case ".csv":
            table.to_pandas().to_csv(path, index=False, date_format="%Y-%m-%d %H:%M:%S")
        case _:
            with sqlite3.connect(path) as connection:
                frame = table.to_pandas()
                for name in frame.columns:
                    if pd.api.types.is_datetime64_any_dtype(frame[name]):
                        frame[name] = [None if pd.isna(t) else int(t.timestamp()) for t in frame[name]]
                types = {name: "TIMESTAMP" for name in frame.columns if name == "time"}
                frame.to_sql(path.stem, connection, index=False, dtype=types)
            connection.close()


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TableStore]:
    found = {}
    for suffix in ("parquet", "csv", "sqlite"):
        directory = tmp_path_factory.mktemp(suffix)
        write(directory / f"incidents.{suffix}", INCIDENTS)
        write(directory / f"Owners.{suffix}", OWNERS)
        found[suffix] = TableStore(directory)
    return found


def planned(sql: str, store: TableStore) -> QueryPlan:
    plan = plan_query(sql, tables=store.schemas())
    assert isinstance(plan, QueryPlan)
    return plan


def joined(
    plan: QueryPlan, store: TableStore, records: Records | None = None, stream: Stream | None = None
) -> list[dict[str, Any]]:
    stream = stream or Stream(1, 1, 1, merge([plan]))
    records = plain_records(stream, range(60), [1, 2, 3, 4]) if records is None else records
    rows = Rows(stream_batch(records, stream), stream.mote_query)
    residual = Residual(plan)
    places = residual.select(rows, Feed("u", 1, plan.period_ms, stream.mote_query.period_ms, 0))
    left, batch = Joiner(plan, store.get).join(rows, places)
    assert left.tolist() == sorted(left.tolist())
    found: list[dict[str, Any]] = batch.to_pylist()
    return found


def in_duckdb(sql: str, plan: QueryPlan) -> list[tuple[Any, ...]]:
    """The same rows, as exact decimals."""
    stream = Stream(1, 1, 1, merge([plan]))
    records = plain_records(stream, range(60), [1, 2, 3, 4])
    columns: dict[str, Any] = {"place": range(len(records)), "nodeid": records["node"].astype(int)}
    for i, column in enumerate(stream.mote_query.columns):
        values = records["value"][:, i] / 10**column.digits
        columns[column.name] = [
            None if n >> i & 1 else v for v, n in zip(values, records["nulls"], strict=True)
        ]
    columns["now"] = records["sample"] // 1000 / 1000
    with duckdb.connect() as connection:
        connection.register("raw", pa.table(columns))
        exact = ", ".join(
            f"{c.name}::DECIMAL(18, {c.digits}) AS {c.name}" for c in stream.mote_query.columns if c.digits
        )
        connection.execute(
            f"CREATE VIEW sensors AS SELECT * {f'REPLACE ({exact})' if exact else ''} FROM raw"
        )
        connection.register("r", INCIDENTS)
        connection.execute(
            "CREATE VIEW incidents AS SELECT segment, fastest::DECIMAL(18, 3) AS fastest, description, severe, epoch(time) AS time FROM r"
        )
        connection.register("owners", OWNERS)
        return connection.execute(sql).fetchall()


conditions = st.lists(
    st.sampled_from(
        ["s.temp < i.fastest", "i.severe = 1", "s.light > 200", "i.fastest > 20", "i.description IS NOT NULL",
         "i.time >= NOW - 1000", "s.temp + i.fastest > 60 OR i.severe = 0", "s.nodeid IN (1, 2)", "i.fastest IS NULL OR s.temp > 10",
         "i.description = 'debris'", "'fog' <> i.description", "i.description IN ('police', 'flood')", "i.description LIKE '%o%'",
         "i.description NOT IN ('police', 'fog')", "i.description NOT LIKE '_e%' OR s.temp > 20", "i.description BETWEEN 'a' AND 'e'",
         "NOT i.description > 'f'"]
    ), max_size=3, unique=True,
)  # fmt: skip
selections = st.lists(
    st.sampled_from(["s.temp", "i.description", "i.fastest", "s.temp - i.fastest", "i.segment * 2", "s.light > i.fastest",
         "i.description = 'debris'", "i.description < 'l'"]),
    min_size=1, max_size=4, unique=True,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    selections,
    conditions,
    st.sampled_from(["i.segment = s.nodeid", "s.nodeid = i.segment", "s.nodeid + 1 = i.segment"]),
    st.sampled_from(["parquet", "csv"]),
    st.booleans(),
)
def test_joins_equal_duckdbs(
    stores: dict[str, TableStore],
    selection: list[str],
    more: list[str],
    equality: str,
    kind: str,
    owners: bool,
) -> None:
    columns = ", ".join(f"{column} AS c{n}" for n, column in enumerate(selection))
    owner = ", o.owner AS owner" if owners else ""
    tables = "sensors AS s, incidents AS i" + (", owners AS o" if owners else "")
    where = " AND ".join(
        [equality, *(f"({part})" for part in more), *(["o.of = i.segment"] if owners else [])]
    )
    plan = planned(f"SELECT {columns}{owner} FROM {tables} WHERE {where} SAMPLE PERIOD 1 s", stores[kind])
    spelled = (
        where.replace("i.severe = 1", "i.severe = true")
        .replace("i.severe = 0", "i.severe = false")
        .replace("NOW", "s.now")
    )
    expected = in_duckdb(f"SELECT place, {columns}{owner} FROM {tables} WHERE {spelled} ORDER BY place", plan)  # fmt: skip
    got = [tuple(row.values()) for row in joined(plan, stores[kind])]
    plain = [tuple(float(v) if hasattr(v, "as_tuple") else v for v in row[1:]) for row in expected]

    def key(row: tuple[Any, ...]) -> str:
        return repr([float(v) if isinstance(v, int | float) and not isinstance(v, bool) else v for v in row])

    assert sorted(map(key, got)) == sorted(map(key, plain))


def test_tables_of_all_kinds_say_the_same(stores: dict[str, TableStore]) -> None:
    sql = (
        "SELECT s.nodeid, i.description, i.fastest, i.time, o.owner FROM sensors s, incidents i, owners o "
        "WHERE i.segment = s.nodeid AND o.of = i.segment SAMPLE PERIOD 1 s"
    )
    found = [joined(planned(sql, store), store) for store in stores.values()]
    assert found[0] == found[1] == found[2]
    assert found[0][0]["i.time"] == datetime(2026, 11, 19, 23, 46, 40, tzinfo=UTC)
    assert {row["i.description"] for row in found[0]} == {"stalled car", "debris", "police", None}
    assert len(found[0]) == 60 * 4


PLANTS = """node,plot,since,seen,checked,order,room name
1,north,2024-05-01,2026-11-20 01:30,2026-11-20T01:30:00+02:00,4,den
2,south,2024-05-02,2026-11-20 01:30:00.25,2026-11-19T23:30:00Z,5,"the ""red"" room"
3,It's,,2026-11-21,,6,
4,,2024-05-01,2026-11-22,2026-11-22T00:00:00Z,7,den
"""


@pytest.fixture(scope="module")
def plants(tmp_path_factory: pytest.TempPathFactory) -> tuple[TableStore, duckdb.DuckDBPyConnection]:
    """A CSV file, the same as a table of DuckDB, and four motes' numbers."""
    directory = tmp_path_factory.mktemp("plants")
    (directory / "plants.csv").write_text(PLANTS)
    (directory / "plots.csv").write_text("name,area\nnorth,10\nsouth,20\nsouth,21\neast,30\n")
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name in ("plants", "plots"):
        connection.execute(f"CREATE TABLE {name} AS FROM read_csv('{directory / name}.csv', nullstr='')")
    connection.execute("CREATE TABLE sensors AS SELECT unnest([1, 2, 3, 4]) AS nodeid")
    return TableStore(directory), connection


@pytest.mark.parametrize(
    "condition",
    [
        "p.plot = 'north'", "p.plot <> 'north'", "p.plot IN ('north', 'It''s')", "p.plot NOT IN ('north')", "'south' = p.plot",
        "p.plot IS NULL OR p.plot >= 'north'", "p.plot LIKE '%th'", "p.plot NOT LIKE '_o%'", "p.plot LIKE 'N%'", "p.plot = ''",
        "NOT (p.plot = 'north' AND p.since = '2024-05-01')", 'p."room name" = \'the "red" room\'', 'p."ORDER" >= 5',
        "p.since = '2024-05-01'", "p.since <> '2024-05-01'", "p.since < p.seen", "p.seen = '2026-11-20 01:30'",
        "p.seen BETWEEN '2026-11-20T01:30:00.250' AND '2026-11-21'", "p.since IN ('2024-05-02', '2024-05-03')",
        "p.checked = '2026-11-19 23:30Z'", "p.checked > '2026-11-20'", "'2026-11-20T00:30:00+01:00' <= p.checked",
        "p.seen = p.checked", "p.plot = 'north' OR p.since IS NULL",
    ],
)  # fmt: skip
def test_texts_and_times_of_tables_are_compared_as_duckdb_does(
    plants: tuple[TableStore, duckdb.DuckDBPyConnection], condition: str
) -> None:
    store, connection = plants
    sql = f'SELECT s.nodeid, p.plot, p."order", p.since FROM sensors s, plants p WHERE p.node = s.nodeid AND ({condition})'
    plan = planned(f"{sql} SAMPLE PERIOD 1 s", store)
    assert [output.name for output in plan.outputs] == ["s.nodeid", "p.plot", "p.order", "p.since"]
    stream = Stream(1, 1, 1, merge([plan]))
    found = joined(plan, store, plain_records(stream, [7], [1, 2, 3, 4]), stream)
    wanted = connection.execute(f"{sql} ORDER BY 1").fetchall()
    assert (
        sorted(
            (row["s.nodeid"], row["p.plot"], row["p.order"], row["p.since"] and row["p.since"].date())
            for row in found
        )
        == wanted
    )


@pytest.mark.parametrize(
    "condition",
    [
        "p.node = s.nodeid AND p.plot = o.name", "o.name = p.plot AND p.node = s.nodeid AND o.area > 20",
        "p.plot = 'north' AND p.node = s.nodeid AND o.name = 'south'", "p.node = s.nodeid AND o.name = p.plot AND o.name <> 'north'",
        "p.node = s.nodeid AND o.area = p.\"order\" * 5 AND o.name < p.plot", "p.plot = 'north' AND o.name = p.plot",
    ],
)  # fmt: skip
def test_tables_are_joined_by_texts_as_duckdb_does(
    plants: tuple[TableStore, duckdb.DuckDBPyConnection], condition: str
) -> None:
    store, connection = plants
    sql = f"SELECT s.nodeid, p.plot, o.name, o.area FROM sensors s, plants p, plots o WHERE {condition}"
    plan = planned(f"{sql} SAMPLE PERIOD 1 s", store)
    stream = Stream(1, 1, 1, merge([plan]))
    found = joined(plan, store, plain_records(stream, [7], [1, 2, 3, 4]), stream)
    wanted = connection.execute(f"{sql} ORDER BY ALL").fetchall()
    assert wanted or "<" in condition
    assert sorted(tuple(row.values()) for row in found) == wanted


def test_a_column_with_nothing_in_it_is_compared_with_texts_and_with_numbers(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    path = tmp_path / "places.csv"
    path.write_text("node,note\n1,\n2,\n")
    sql = "SELECT s.nodeid FROM sensors s, places p WHERE p.node = s.nodeid AND p.note {} SAMPLE PERIOD 1 s"
    of_texts, of_numbers = planned(sql.format("= 'wet'"), store), planned(sql.format("> 3"), store)
    assert joined(of_texts, store) == joined(of_numbers, store) == []
    path.write_text("node,note\n1,wet\n2,dry\n")
    assert {row["s.nodeid"] for row in joined(of_texts, store)} == {1}
    with pytest.raises(TableError, match="column note is no longer of its kind"):
        joined(of_numbers, store)
    path.write_text("node,note\n1,3\n2,40\n")
    assert {row["s.nodeid"] for row in joined(of_numbers, store)} == {2}
    with pytest.raises(TableError, match="column note is no longer of its kind"):
        joined(of_texts, store)


def test_a_table_is_read_again_when_it_changes_and_missed_when_it_vanishes(tmp_path: Path) -> None:
    store = TableStore(tmp_path)
    assert store.schemas() == {}
    path = tmp_path / "places.csv"
    path.write_text("node,floor,name\n1,3,lab\n2,4,hall\n")
    plan = planned(
        "SELECT s.nodeid, p.name, p.floor FROM sensors s, places p WHERE p.node = s.nodeid SAMPLE PERIOD 1 s",
        store,
    )
    assert {(r["p.name"], r["p.floor"]) for r in joined(plan, store)} == {("lab", 3), ("hall", 4)}
    path.write_text("node,name,floor\n1,cellar,-1.5\n")
    assert {(r["p.name"], r["p.floor"]) for r in joined(plan, store)} == {("cellar", -2)}, (
        "rounded as it was planned"
    )
    path.write_text("node,floor\n1,3\n")
    with pytest.raises(TableError, match="table places has changed: column name is gone"):
        joined(plan, store)
    path.write_text("node,floor,name\n1,3,lab,7\n")
    with pytest.raises(TableError, match=r"table places cannot be read: .*Expected 3 columns, got 4"):
        joined(plan, store)
    assert "Expected 3 columns" in store.described()[0]["trouble"]
    path.unlink()
    with pytest.raises(TableError, match="table places is not there: no file of"):
        Joiner(plan, store.get).check()
    path.write_text("node,floor,name\n1,3,lab\n")
    os.utime(path, ns=(1, 1))
    assert {r["p.name"] for r in joined(plan, store)} == {"lab"}


def test_numbers_that_have_no_room_in_the_places_of_a_query_make_it_wait(tmp_path: Path) -> None:
    store, path = TableStore(tmp_path), tmp_path / "places.csv"
    path.write_text("node,height\n1,0.000001\n2,1.5\n")
    sql = "SELECT p.node, p.height FROM sensors s, places p WHERE p.node = s.nodeid SAMPLE PERIOD 1 s"
    plan = planned(sql, store)
    path.write_text("node,height\n1,100000000\n2,1.5\n")
    assert {r["p.height"] for r in joined(plan, store)} == {1e8, 1.5}
    path.write_text("node,height\n1,200000000000000\n2,3\n")
    why = "table places has changed: column height has numbers beyond 1e.15 in the last of the 6 decimal places that it had"
    with pytest.raises(TableError, match=why):
        joined(plan, store)
    assert {r["p.height"] for r in joined(planned(sql, store), store)} == {2e14, 3}


def test_a_column_with_nothing_in_it_is_of_any_kind(tmp_path: Path) -> None:
    """As are all of a CSV file that has a header alone: the query goes on, as with a Parquet file without rows."""
    store, path = TableStore(tmp_path), tmp_path / "places.csv"
    path.write_text("node,floor,name\n1,3,lab\n2,4,hall\n")
    of_places = "FROM sensors s, places p WHERE p.node = s.nodeid"
    plan = planned(f"SELECT p.node, p.name, p.floor {of_places} SAMPLE PERIOD 1 s", store)
    unnamed = planned(f"SELECT p.node {of_places} AND p.name IS NULL SAMPLE PERIOD 1 s", store)
    assert len(joined(plan, store)) == 120
    path.write_text("node,floor,name\n1,,\n")
    assert {tuple(r.values()) for r in joined(plan, store)} == {(1, None, None)}
    assert {r["p.node"] for r in joined(unnamed, store)} == {1}
    path.write_text("node,floor,name\n")
    assert joined(plan, store) == joined(unnamed, store) == []
    path.write_text("node,floor,name\n1,high,7\n")
    with pytest.raises(TableError, match="table places has changed: column floor is no longer of its kind"):
        joined(plan, store)


def test_two_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for suffix in ("csv", "parquet"):
        write(tmp_path / f"owners.{suffix}", OWNERS)
    with pytest.raises(TableError, match=r"table owners is in owners\.csv and owners\.parquet: rename one"):
        TableStore(tmp_path).get("owners")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT i.description FROM sensors s, incidents i WHERE s.temp > i.fastest SAMPLE PERIOD 1 s", "nothing says which rows of i"),
        ("SELECT i.descr FROM sensors s, incidents i {JOIN}", "did you mean 'description'"),
        ("SELECT i.name FROM sensors s, incidents i {JOIN}",
         "unknown attribute 'name' i has segment, fastest, description, severe, time"),
        ("SELECT i.temp FROM sensors s, incidents i {JOIN}",
         "unknown attribute 'temp' i has segment, fastest, description, severe, time"),
        ("SELECT i.ower FROM sensors s, incidents i, owners o {JOIN}", "unknown attribute 'ower' i has segment"),
        ("SELECT o.ower FROM sensors s, incidents i, owners o {JOIN}",
         "unknown attribute 'ower' did you mean 'owner'? o has owner, of"),
        ("SELECT s.description FROM sensors s, incidents i {JOIN}", "unknown attribute 'description' attributes are nodeid, "),
        ("SELECT descr FROM sensors s, incidents i {JOIN}", "unknown attribute 'descr' did you mean 'description'? attributes are"),
        ("SELECT h.name FROM sensors s, sensors HISTORY 1 min AS h WHERE h.nodeid = s.nodeid SAMPLE PERIOD 1 s",
         "unknown attribute 'name' h has nodeid, "),
        ("SELECT s.temp FROM sensors s, incident i WHERE i.segment = s.nodeid SAMPLE PERIOD 1 s", "did you mean 'incidents'"),
        ("SELECT i.description + 1 FROM sensors s, incidents i {JOIN}", "i.description is a text, not a value"),
        ("SELECT i.fastest FROM sensors s, incidents i WHERE i.segment = s.nodeid AND i.fastest = 'x' SAMPLE PERIOD 1 s",
         "'x' is a text, and i.fastest is a number numbers stand without marks, as in i.fastest = 25"),
        ("SELECT i.fastest FROM sensors s, incidents i WHERE i.segment = s.nodeid AND i.description = 3 SAMPLE PERIOD 1 s",
         "i.description is a text, and 3 is a number compare it with a text, as in p.plot = 'north'"),
        ('SELECT i.fastest FROM sensors s, incidents i WHERE i.segment = s.nodeid AND i.description = "fog" SAMPLE PERIOD 1 s',
         "unknown attribute 'fog' it is read as a name: a text stands in single marks, as in 'fog'; "),
        ("SELECT i.fastest FROM sensors s, incidents i WHERE i.segment = s.nodeid AND i.time > 'now' SAMPLE PERIOD 1 s",
         "'now' is no moment write it as '2026-05-01'"),
        ("SELECT i.time * 2 FROM sensors s, incidents i {JOIN}", "'*' has no meaning for moments"),
        ("SELECT MEDIAN(s.temp) FROM sensors s, incidents i {JOIN}", "MEDIAN does not go with tables"),
        ("SELECT i.fastest, AVG(s.temp) FROM sensors s, incidents i {JOIN}", "'i.fastest' has one value for each mote"),
        ("SELECT i.fastest FROM sensors s, incidents i WHERE s.nodeid = i.segment ONCE", "tables do not go with ONCE"),
        ("SELECT i.fastest FROM incidents i WHERE i.segment = 3 SAMPLE PERIOD 1 s", "do not go with a FROM without sensors"),
        ("SELECT WINAVG(3, i.fastest) FROM sensors s, incidents i {JOIN}", "i.fastest is known at the gateway only"),
    ],
)  # fmt: skip
def test_what_cannot_be_joined_is_refused(stores: dict[str, TableStore], sql: str, message: str) -> None:
    with pytest.raises(QueryError) as refused:
        planned(sql.replace("{JOIN}", "WHERE i.segment = s.nodeid SAMPLE PERIOD 1 s"), stores["parquet"])
    assert message in f"{refused.value.message} {refused.value.hint}"


def test_storage_points_do_not_go_with_tables_even_where_all_columns_are_asked_for(
    stores: dict[str, TableStore],
) -> None:
    field = PointField("light", ValueFormat.U16, 0, "lx", 0, 65535)
    points = {"recent": Point("recent", 1, (field,), 10, circular=True)}
    sql = "SELECT * FROM sensors s, recent, incidents i WHERE i.segment = s.nodeid SAMPLE PERIOD 1 s"
    with pytest.raises(QueryError, match="tables do not go with storage points"):
        plan_query(sql, points, stores["parquet"].schemas())


def test_motes_are_asked_for_the_streams_part_only(stores: dict[str, TableStore]) -> None:
    plan = planned(
        "SELECT s.temp, i.description FROM sensors s, incidents i "
        "WHERE s.nodeid = i.segment AND s.temp < 45 AND s.light < i.fastest SAMPLE PERIOD 1 s",
        stores["parquet"],
    )
    query = merge([plan])
    assert {column.name for column in query.columns} == {"temp", "light"}
    assert str(query.where) == str(
        merge(
            [planned("SELECT temp FROM sensors WHERE temp < 45 SAMPLE PERIOD 1 s", stores["parquet"])]
        ).where
    )


TRACE = Path(__file__).parents[4] / "shared" / "data" / "i80-emeryville.csv"


@pytest.mark.skipif(
    not TRACE.exists(), reason=f"{TRACE.name} is not there: ../shared/data holds the detectors' records"
)
def test_both_queries_of_the_fjords_paper_over_interstate_80(tmp_path: Path) -> None:
    """Section 5.1. A mote stands for each station and reports the mean speed (mph) as its temperature; windows are of half an hour,
    which motes average themselves."""
    trace = pd.read_csv(TRACE, parse_dates=["timestamp"])
    stations = sorted(trace["station"].unique())
    trace["segment"] = trace["station"].map({station: i + 1 for i, station in enumerate(stations)})
    trace["window"] = trace.groupby("segment")["speed"].transform(
        lambda s: s.rolling(6, min_periods=1).mean()
    )
    begin = trace["timestamp"].min()
    middle = trace["timestamp"].iloc[len(trace) // 2]
    incidents = pd.DataFrame(
        {"segment": [1, 2, 3, 1], "time": [middle, middle + pd.Timedelta("2h"), middle, begin],
         "description": ["stalled car", "debris", "police", "cleared long ago"]}
    )  # fmt: skip
    incidents.to_parquet(tmp_path / "incidents.parquet")
    store = TableStore(tmp_path)

    first = planned(
        "SELECT s.nodeid, WINAVG(s.temp, 30 min, 5 min) AS speed FROM sensors AS s WHERE s.nodeid IN (1, 2) SAMPLE PERIOD 5 min",
        store,
    )
    second = planned(
        "SELECT s.nodeid, s.epoch, WINAVG(s.temp, 30 min, 5 min) AS speed, i.description FROM incidents AS i, sensors AS s "
        "WHERE i.time >= NOW - 7200 AND i.time <= NOW AND i.segment = s.nodeid AND s.nodeid IN (1, 2) "
        "HAVING WINAVG(s.temp, 30 min, 5 min) < 62 SAMPLE PERIOD 5 min",
        store,
    )
    # As it is printed, with the windows in WHERE.
    printed = planned(second.text.replace("HAVING", "AND"), store)
    assert replace(printed, text=second.text) == second
    stream = Stream(1, 1, 1, merge([second]))
    mine = trace[trace["segment"].isin([1, 2])].sort_values(["timestamp", "segment"])
    records = plain_records(stream, range(len(mine)), [0], nulls=0)
    records["node"] = mine["segment"]
    records["epoch"] = (mine["timestamp"] - begin) // pd.Timedelta("5min")
    records["sample"] = mine["timestamp"].astype("int64") // 1000
    digits = [column.digits for column in stream.mote_query.columns]
    [place] = [i for i, column in enumerate(stream.mote_query.columns) if column.name.startswith("w")]
    records["value"][:, place] = np.rint(mine["window"].to_numpy() * 10 ** digits[place])

    residual, rows = Residual(first), Rows(stream_batch(records, stream), merge([first]))
    places = residual.select(rows, Feed("u", 1, first.period_ms, first.period_ms, 0))
    averages = residual.project(rows, places).to_pylist()
    with duckdb.connect() as connection:
        connection.register("trace", trace)
        connection.register("incidents", incidents)
        windows = connection.execute(
            "SELECT segment, timestamp, avg(speed) OVER (PARTITION BY segment ORDER BY timestamp ROWS 5 PRECEDING) AS speed FROM trace "
            "WHERE segment IN (1, 2) ORDER BY timestamp, segment"
        ).df()
        connection.register("windows", windows)
        expected = connection.execute(
            "SELECT w.segment, w.timestamp, w.speed, i.description FROM windows w JOIN incidents i USING (segment) "
            "WHERE i.time BETWEEN w.timestamp - INTERVAL 2 hour AND w.timestamp AND round(w.speed, 5) < 62 "
            "ORDER BY w.timestamp, w.segment"
        ).fetchall()
    assert [row["s.nodeid"] for row in averages] == windows["segment"].tolist()
    assert np.allclose([row["speed"] for row in averages], windows["speed"], atol=10.0 ** -digits[place])
    found = joined(second, store, records, stream)
    assert [(r["s.nodeid"], r["i.description"]) for r in found] == [(e[0], e[3]) for e in expected]
    assert 0 < len(found) < len(windows)
    assert {row["i.description"] for row in found} <= {"stalled car", "debris", "cleared long ago"}
