"""Files of blocks: what is published is found whole, whichever file it lies in, and what is missing is said to be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skerry.storage import block_files
from skerry.storage.block_files import BlockFiles


def files_of(tmp_path: Path, *ends: int) -> BlockFiles:
    """A batch up to each of these, of its own text."""
    files = BlockFiles(tmp_path)
    files.clear()
    for first, end in zip((0, *ends), ends, strict=False):
        files.publish(first, end, text(first, end))
    return files


def text(first: int, end: int) -> bytes:
    return f"rows {first} to {end}".encode()


def behind(files: BlockFiles, row: int) -> list[tuple[int, int, bytes | None]]:
    return [(first, end, blocks()) for first, end, blocks in files.behind(row)]


def test_batches_are_found_before_and_after_they_were_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = files_of(tmp_path, 5, 6, 90, 100)
    batches = [(first, end, text(first, end)) for first, end in ((0, 5), (5, 6), (6, 90), (90, 100))]
    assert behind(files, -1) == batches
    monkeypatch.setattr(block_files, "SMALL_FILES", 3)
    started = files.behind(-1)
    first = next(started)
    files.merge()
    assert [(file.first, file.end) for file in files.files()] == [(0, 100)]
    assert (first[2](), [end for _, end, _ in started]) == (None, [6, 90, 100]), "who was on his way goes on"
    assert [files.batch(first, end) for first, end, _ in batches] == [found for _, _, found in batches]
    for row, count in ((-1, 4), (4, 3), (5, 2), (50, 2), (98, 1), (99, 0)):
        assert behind(files, row) == batches[len(batches) - count :]
    files.publish(90, 100, b"again")
    assert files.batch(90, 100) == b"again"
    assert behind(files, 95) == [(90, 100, b"again")], "a batch that comes again takes its place"


def test_what_is_missing_or_cut_off_is_a_gap(tmp_path: Path) -> None:
    files = files_of(tmp_path, 5, 6, 90, 100)
    files.files()[2].path.unlink()
    assert [end for _, end, _ in behind(files, -1)] == [5, 6]
    assert behind(files, 10) == []
    assert files.batch(6, 90) is None
    last = files.files()[-1].path
    os.truncate(last, last.stat().st_size - 1)
    assert behind(files, 90) == [(90, 100, None)]
    os.truncate(last, 3)
    assert behind(files, 90) == []
    assert BlockFiles(tmp_path / "elsewhere").files() == []


def test_they_go_with_the_rows_of_the_log_or_when_they_are_too_many(tmp_path: Path) -> None:
    files = files_of(tmp_path, 10, 20, 30, 40)
    files.drop(20, 10**6)
    assert [file.first for file in files.files()] == [20, 30]
    size = files.files()[0].path.stat().st_size
    files.drop(0, 2 * size - 1)
    assert [file.first for file in files.files()] == [30], "the oldest"
    files.clear()
    assert files.files() == []


def test_a_disk_that_is_nearly_full_is_left_to_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = files_of(tmp_path, 10)
    monkeypatch.setattr(block_files, "SPARE_BYTES", 1 << 60)
    with pytest.raises(OSError, match="left"):
        files.publish(10, 20, b"")
    assert [file.end for file in files.files()] == [10]
