"""What a gateway remembers, in SQLite: before or after each change, never between, and what is wrong with the file is named."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from gateway.tests.storage.state import killed_migrations
from gateway.tests.storage.state.drawn import (
    DRAWN,
    counters,
    feed_row,
    in_order,
    plain,
    query_row,
    save_one,
    steps,
    stream_row,
)
from gateway.tests.storage.state.killed_migrations import BEFORE, LATER, WAYS
from skerry.storage.state import DataDirectory, DataError, StorageError
from skerry.storage.state.database import Changes, Row, StateDatabase
from skerry.storage.state.schema import MIGRATIONS

#: Changes of one run; and where it is killed everywhere.
CHANGES, KILLED = 12, 4


def loaded(database: StateDatabase) -> dict[str, list[Row]]:
    """What there is, of the tables that changes are drawn for; nothing is none of them."""
    found = database.load()
    if found is None:
        return {}
    return {table: in_order(found[table]) for table in DRAWN}


def first(database: StateDatabase) -> None:
    """A counter, a query and its feed."""
    changes = Changes()
    changes.whole("gateway", [counters(1)])
    changes.put("streams", stream_row(1))
    changes.put("queries", query_row("1", "SELECT temp", 0))
    changes.put("query_feeds", feed_row("1", 1, 0))
    database.save(changes)


@pytest.mark.slow
@pytest.mark.parametrize("instructions", [0, 60])
def test_whoever_is_killed_anywhere_has_left_the_state_before_or_after(
    instructions: int, tmp_path: Path
) -> None:
    """By kill -9 while a database is made, opened, changed and closed: before each of its statements, BEGIN and COMMIT among them, or
    within them. Each change is tried again on what the last kill has left, until one gets through."""
    seed = Random().randrange(1 << 30)
    print(f"seed {seed}")
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["gateway.tests.storage.state.drawn"])
    states = [{}, *(plain(state) for _, state in steps(Random(seed), KILLED))]
    killed = [0, 0]
    for number in range(KILLED):
        at, exitcode = 0, -9
        while exitcode == -9:
            at += 1
            child = processes.Process(target=save_one, args=(tmp_path, seed, number, at, instructions))
            child.start()
            child.join()
            exitcode = child.exitcode or 0
            database = StateDatabase(tmp_path)
            found = loaded(database)
            database.close()
            after = found == states[number + 1]
            assert after or found == states[number]
            killed[after] += exitcode == -9
        assert exitcode == 0
        assert after, "nothing was said to have failed"
    assert all(killed)


@pytest.fixture(scope="module")
def killer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that has a process killed at a system call."""
    library = tmp_path_factory.mktemp("killer") / "killed_at_calls.so"
    flags = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    source = Path(__file__).with_name("killed_at_calls.c")
    subprocess.run(["cc", *flags, "-o", str(library), str(source), "-ldl"], check=True)
    return library


def everything(database: StateDatabase) -> dict[str, list[Row]]:
    """The rows of all tables, in any order."""
    return {table: in_order(rows) for table, rows in (database.load() or {}).items()}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_whoever_is_killed_while_a_schema_is_migrated_has_left_the_old_or_the_new(
    way: str, killer: Path, tmp_path: Path
) -> None:
    """By kill -9 at each write, sync, rename, cut and removal of a file, from the opening of what a killed gateway has left to its end."""
    seed = Random().randrange(1 << 30)
    print(f"seed {seed}")
    running, before, found = (tmp_path / name for name in ("running", "before", "found"))
    running.mkdir()
    database = StateDatabase(running, BEFORE)
    for changes, _ in steps(Random(seed), 2):
        database.save(changes)
    old = everything(database)
    # Its last changes are in the write-ahead log.
    shutil.copytree(running, before)
    database.close()
    noted = [{**row, "note": row["user"] + row["sql"]} for row in old["queries"]]
    learnt = {**old, "learnt_joins": []}
    states = {
        version: {table: in_order(rows) for table, rows in now.items()}
        for version, now in enumerate((old, learnt, {**learnt, "queries": noted}), start=len(BEFORE))
    }

    program = [sys.executable, "-m", killed_migrations.__name__, str(before), str(found), way]
    done = subprocess.run(
        program, env={**os.environ, "LD_PRELOAD": str(killer)}, stdout=subprocess.PIPE, text=True, check=True
    )
    calls, killed = done.stdout.strip(), len(list(found.iterdir())) - 2
    print(f"{killed} kills; calls without one: {calls}")
    assert set("wsr") <= set(calls), "written, synced and renamed"
    assert killed == len(calls) or way == "again"
    copies: set[bytes] = set()
    left = {_left_by_a_kill(found / str(at), states, copies) for at in range(1, killed + 1)}
    assert left == {*states}, "kills before, between and after"
    for at in (0, killed + 1):
        assert _left_by_a_kill(found / str(at), states, copies) == len(LATER)


def _left_by_a_kill(here: Path, states: Mapping[int, dict[str, list[Row]]], copies: set[bytes]) -> int:
    """The version of its schema, after it was looked at, started again, and its copy put back elsewhere. ``copies``: those that were put
    back already."""
    looked, back = (here.with_name(f"{here.name}-{what}") for what in ("looked", "back"))
    shutil.copytree(here, looked)
    with closing(sqlite3.connect(looked / "state.sqlite")) as connection:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    first, last = min(states), max(states)
    copy = here / f"state.sqlite.version-{first}"
    assert version == first or copy.exists()
    for directory, migrations, expected in ((looked, LATER[:version], version), (here, LATER, last)):
        database = StateDatabase(directory, migrations)
        assert everything(database) == states[expected]
        database.close()
    if copy.read_bytes() not in copies:
        copies.add(copy.read_bytes())
        back.mkdir()
        shutil.copy(copy, back / "state.sqlite")
        database = StateDatabase(back, BEFORE)
        assert everything(database) == states[first]
        database.close()
    named = {"state.sqlite", *(f"state.sqlite.version-{number}" for number in range(first, last))}
    assert {file.name for file in here.iterdir()} <= named, "nothing half made stays"
    return version


def test_a_log_that_is_cut_off_anywhere_holds_whole_changes(tmp_path: Path) -> None:
    """As a power cut leaves it, which writes pages in part."""
    seed = Random().randrange(1 << 30)
    print(f"seed {seed}")
    states, there = [dict[str, list[Row]]()], tmp_path / "there"
    there.mkdir()
    database = StateDatabase(there)
    for changes, state in steps(Random(seed), CHANGES):
        database.save(changes)
        states.append(plain(state))
    whole = (there / "state.sqlite-wal").read_bytes()
    random, found = Random(seed), []
    for cut in [0, *sorted(random.randrange(len(whole)) for _ in range(60)), len(whole)]:
        copy = tmp_path / f"cut-{cut}"
        copy.mkdir(exist_ok=True)
        shutil.copy(there / "state.sqlite", copy)
        # Behind the cut there may be anything.
        (copy / "state.sqlite-wal").write_bytes(whole[:cut] + random.randbytes(random.choice((0, 3000))))
        other = StateDatabase(copy)
        found.append(states.index(loaded(other)))
        other.close()
    assert found == sorted(found)
    assert found[-1] == CHANGES
    assert len(set(found)) > CHANGES / 2
    database.close()


def test_of_a_whole_table_what_is_as_it_was_is_not_written(tmp_path: Path) -> None:
    database = StateDatabase(tmp_path)
    for number, fresh in ((0, True), (1, False)):
        assert database.fresh is fresh
        changes = Changes()
        changes.whole("gateway", [counters(number)])
        changes.whole("streams", map(stream_row, range(100)))
        changes.whole("pairings", ())
        database.save(changes)
    assert database._connection is not None
    before = database._connection.total_changes
    changes = Changes()
    changes.whole("gateway", [counters(1)])
    changes.whole("streams", [*map(stream_row, range(1, 100)), {**stream_row(100), "until_ms": 5}])
    database.save(changes)
    assert database._connection.total_changes - before == 2, "one gone and one new"
    database.close()
    again = StateDatabase(tmp_path)
    there = again.load()
    assert there is not None
    assert [row["number"] for row in there["streams"]] == list(range(1, 101))
    again.close()


def test_a_change_that_fails_leaves_nothing(tmp_path: Path) -> None:
    database = StateDatabase(tmp_path)
    first(database)
    before = loaded(database)
    changes = Changes()
    changes.put("queries", query_row("2", "SELECT light", 0))
    changes.put("query_feeds", feed_row("2", 77, 0))
    with pytest.raises(StorageError, match=r"state\.sqlite: FOREIGN KEY constraint failed"):
        database.save(changes)
    assert database.fresh, "it was opened again"
    first(database)
    assert loaded(database) == before
    database.close()


def test_a_file_that_was_taken_away_is_written_anew(tmp_path: Path) -> None:
    database = StateDatabase(tmp_path)
    first(database)
    before = loaded(database)
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(StorageError, match=r"state\.sqlite: it was taken away while the gateway ran"):
        first(database)
    assert database.fresh, "everything is to be said"
    first(database)
    assert loaded(database) == before
    database.close()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_bytes_that_the_disk_has_changed_are_found(share: float, tmp_path: Path) -> None:
    database = StateDatabase(tmp_path)
    changes = Changes()
    changes.whole("gateway", [counters(1)])
    changes.whole("queries", [query_row(str(number), "x" * 500, 0) for number in range(1000)])
    database.save(changes)
    database.close()
    file = tmp_path / "state.sqlite"
    there = bytearray(file.read_bytes())
    page = int(share * len(there)) // 4096 * 4096
    there[page : page + 100] = Random(1).randbytes(100)
    file.write_bytes(there)
    with pytest.raises(
        DataError, match=r"state\.sqlite.* is not as the gateway wrote it \(.+\): put it back"
    ) as refused:
        StateDatabase(tmp_path)
    assert "\n" not in str(refused.value)


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "state.sqlite")) as other:
        other.execute("CREATE TABLE queries (id)")
    with pytest.raises(DataError, match="it is not of a gateway"):
        StateDatabase(tmp_path)


def test_a_schema_is_brought_up_to_date_after_a_copy_was_made(tmp_path: Path) -> None:
    database = StateDatabase(tmp_path)
    first(database)
    database.close()
    later = [*MIGRATIONS, "ALTER TABLE queries ADD COLUMN note TEXT; UPDATE queries SET note = upper(user)"]
    broken = [*later, "CREATE TABLE more (id INTEGER PRIMARY KEY); UPDATE queries SET missing = 1"]
    with pytest.raises(DataError, match=r"state\.sqlite: no such column: missing"):
        StateDatabase(tmp_path, broken)
    # The second was whole, the third has left nothing.
    database = StateDatabase(tmp_path, later)
    there = database.load()
    assert there is not None
    assert [(row["id"], row["note"]) for row in there["queries"]] == [("1", "ADA")]
    assert "more" not in there
    database.close()
    file = tmp_path / "state.sqlite"
    known = len(MIGRATIONS)
    with pytest.raises(
        DataError,
        match=f"its schema is of version {known + 1}, and this skerry knows those up to {known}: start the newer skerry",
    ):
        StateDatabase(tmp_path)
    before = file.read_bytes()
    with pytest.raises(DataError, match="put back the copy"):
        StateDatabase(tmp_path)
    assert file.read_bytes() == before
    shutil.move(tmp_path / f"state.sqlite.version-{known}", file)
    database = StateDatabase(tmp_path)
    assert loaded(database)["queries"] == [query_row("1", "SELECT temp", 0)]
    database.close()
    assert not list(tmp_path.glob("*.new"))


def test_others_may_not_open_it_meanwhile(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    first(directory.state)
    with pytest.raises(DataError, match="another gateway uses it"):
        DataDirectory(tmp_path)
    with (
        closing(sqlite3.connect(tmp_path / "state.sqlite", timeout=0)) as other,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        other.execute("SELECT * FROM queries")
    assert {file.name for file in tmp_path.iterdir()} == {"lock", "state.sqlite", "state.sqlite-wal"}, "no shared memory"  # fmt: skip
    directory.close()
    assert {file.name for file in tmp_path.iterdir()} == {"lock", "state.sqlite"}
