"""What other processes read of a gateway's state: files that are replaced as a whole."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from skerry.storage.state import DataError, StorageError
from skerry.storage.state.published import Publisher, queries, query, streams, streams_version


def text(number: int, filler: str = "") -> str:
    return json.dumps({"number": number, "filler": filler})


def test_one_more_query_writes_one_small_file(tmp_path: Path) -> None:
    publisher, directory = Publisher(tmp_path), tmp_path / "published"
    publisher.publish({1: text(1)}, {str(n): text(n) for n in range(1, 1001)}, everything=True)
    before = {file.name: file.stat().st_ino for file in directory.iterdir()}
    assert len(before) == 12
    version = streams_version(tmp_path)
    publisher.publish({}, {"1001": text(1001), "3": None})
    after = {file.name: file.stat().st_ino for file in directory.iterdir()}
    assert {name for name in after if after[name] != before.get(name)} == {
        "queries-0.json",
        "queries-10.json",
    }
    assert streams_version(tmp_path) == version
    assert [name for name, _ in queries(tmp_path)] == ["1", "2", *map(str, range(4, 1002))]
    assert query(tmp_path, "3") is None
    assert query(tmp_path, "1001") == {"number": 1001, "filler": ""}
    publisher.publish({2: text(2)}, {"1000": None, "1001": None})
    assert streams_version(tmp_path) != version
    assert [stream["number"] for stream in streams(tmp_path)] == [1, 2]
    assert not (directory / "queries-10.json").exists(), "nobody is in it"


def test_who_begins_leaves_nothing_of_another(tmp_path: Path) -> None:
    Publisher(tmp_path).publish({1: text(1), 2: text(2)}, {"250": text(250)}, everything=True)
    Publisher(tmp_path).publish({1: text(1)}, {"1": text(1)}, everything=True)
    assert [stream["number"] for stream in streams(tmp_path)] == [1]
    assert [name for name, _ in queries(tmp_path)] == ["1"]


def test_where_nothing_was_published_nothing_is_found(tmp_path: Path) -> None:
    assert streams(tmp_path) == [] == list(queries(tmp_path))
    assert streams_version(tmp_path) is query(tmp_path, "1") is query(tmp_path, "x") is None


def test_what_could_not_be_written_is_written_with_the_next_change(tmp_path: Path) -> None:
    publisher, directory = Publisher(tmp_path), tmp_path / "published"
    publisher.publish({1: text(1)}, {"1": text(1)}, everything=True)
    for file in directory.iterdir():
        file.unlink()
    directory.rmdir()
    directory.write_text("")
    with pytest.raises(StorageError, match="published: File exists"):
        publisher.publish({2: text(2)}, {"2": text(2)})
    directory.unlink()
    publisher.publish({2: text(2)}, {"2": text(2)})
    assert [stream["number"] for stream in streams(tmp_path)] == [1, 2]
    assert [name for name, _ in queries(tmp_path)] == ["1", "2"]


@pytest.mark.parametrize("damage", ["{", "[]", "\udcff"])
def test_a_file_that_is_damaged_is_named(damage: str, tmp_path: Path) -> None:
    Publisher(tmp_path).publish({1: text(1)}, {"1": text(1)}, everything=True)
    for name in ("streams.json", "queries-0.json"):
        (tmp_path / "published" / name).write_bytes(damage.encode(errors="surrogateescape"))
    said = (
        r"published/{}\.json is not as the gateway wrote it \(.+\): start the gateway, which writes it anew"
    )
    with pytest.raises(DataError, match=said.format("streams")):
        streams(tmp_path)
    with pytest.raises(DataError, match=said.format("queries-0")):
        query(tmp_path, "1")


def test_who_reads_meanwhile_finds_each_file_whole(tmp_path: Path) -> None:
    publisher, last = Publisher(tmp_path), 150
    publisher.publish({0: text(0)}, {}, everything=True)

    def write() -> None:
        for number in range(1, last + 1):
            publisher.publish({0: text(number, "x" * 60_000)}, {})

    thread = threading.Thread(target=write)
    thread.start()
    found = [0]
    while found[-1] < last:
        [stream] = streams(tmp_path)
        found.append(stream["number"])
    thread.join()
    assert found == sorted(found)
