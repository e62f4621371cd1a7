"""The users' index in files: an executor has it as of any version that a batch is matched against, whatever it had before."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.tests.logs import STREAMS, plan_of, steady
from skerry.delivery.entries import Entries
from skerry.execution.filters import Filter
from skerry.execution.matching import View
from skerry.execution.users_index import Change, UsersIndex
from skerry.planner.model.plans import Feed
from skerry.spark import index_file
from skerry.spark.index_file import IndexFile, IndexReader, newest

ROWS = steady(40)


def view_of(low: int) -> View:
    sql = f"SELECT temp FROM sensors WHERE temp BETWEEN {20 + low / 100} AND {20 + low / 100 + 0.03} SAMPLE PERIOD 5 s"
    return View.of(Filter.of(plan_of(sql)), Feed("u", 1, 5000, 5000, 0))


VIEWS = [view_of(low) for low in range(0, 36, 4)]


def matches(index: UsersIndex) -> dict[int, list[int]]:
    """Rows by entry."""
    of_streams, _ = index.match([(1, np.arange(40), ROWS.records)])
    if not of_streams:
        return {}
    [found] = of_streams
    return {entry: found.numbers[found.of(entry)].tolist() for entry in found.hits["entry"].tolist()}


def as_of(changes: list[Change], version: int) -> UsersIndex:
    index = UsersIndex()
    for change in changes:
        if change[0] <= version:
            index.apply(change)
    return index


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(VIEWS) - 1), st.integers(0, 9)), min_size=1, max_size=40),
    st.integers(0, 6),
)
def test_an_executor_has_any_version(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]], spare: int
) -> None:
    file, made = IndexFile(tmp_path_factory.mktemp("data")), list[Change]()

    def publish(changes: list[Change], live: object) -> None:
        made.extend(changes)
        file.append(changes, live)  # type: ignore[arg-type]

    entries, present, versions = Entries(publish), dict[int, int](), list[int]()
    reader = IndexReader(file.path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_file, "SPARE_CHANGES", spare)
        for number, back in steps:
            if number in present:
                entries.remove("u", present.pop(number))
            else:
                present[number] = entries.add("u", STREAMS[1], VIEWS[number])
            entries.publish()
            assert newest(file.path) == entries.version
            # The file before the last is kept for batches under way.
            oldest = min(int(name.stem) for name in file.path.iterdir())
            # A batch has one that was the newest once: of several changes at once the last.
            versions.append(entries.version)
            version = next(one for one in versions[-1 - back :] if one >= oldest)
            found = reader.at(version)
            assert found.version == version
            assert matches(found) == matches(as_of(made, version))
    file.close()


def test_an_entry_is_shared_by_those_who_ask_the_same_and_ends_with_the_last() -> None:
    entries = Entries()
    first, second = entries.add("ada", STREAMS[1], view_of(0)), entries.add("ben", STREAMS[1], view_of(0))
    other = entries.add("cid", STREAMS[1], view_of(4))
    assert first == second != other
    assert entries.users([first, other, 99]) == {"ada", "ben", "cid"}
    entries.remove("ada", first)
    assert entries.users([first]) == {"ben"}
    assert matches(entries.index()) == {first: [0, 1, 2, 3], other: [4, 5, 6, 7]}
    entries.remove("ben", first)
    entries.remove("cid", other)
    assert matches(entries.index()) == {}


def test_a_disk_that_is_full_is_written_to_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = IndexFile(tmp_path)
    entries = Entries(file.append)
    entries.add("ada", STREAMS[1], view_of(0))
    entries.publish()
    known = entries.version
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        write(descriptor, bytes(data[:7]))
        raise OSError(errno.ENOSPC, "no room")

    late = entries.add("ben", STREAMS[1], view_of(4))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        entries.publish()
    assert newest(file.path) == known, "half a line is none"
    assert IndexReader(file.path).at(late).version == known
    entries.publish()
    assert newest(file.path) == late == IndexReader(file.path).at(late).version
    file.close()
    again = IndexFile(tmp_path)
    assert again.version == late, "versions go on"
    assert matches(IndexReader(again.path).at(late)) == {}, "of users as they were nothing is left"
    assert IndexFile(tmp_path).version == late, "also of one that ended before it wrote anything"
