"""The set of joins as workers read it, some of which see the file as it was before."""

from __future__ import annotations

from pathlib import Path

import pytest

from skerry.spark.join_file import JoinFile, JoinSetsReader
from skerry.spark.unreadable import UnreadableError


def test_a_worker_that_sees_an_older_file_says_so_and_goes_on_once_it_sees_the_change(tmp_path: Path) -> None:
    file, seen = JoinFile(tmp_path), tmp_path / "seen"
    file.append([["ended", "1"]])
    seen.write_bytes(file.path.read_bytes())
    file.append([["ended", "2"]])
    reader = JoinSetsReader(seen)
    assert reader.at(1).version == 1
    with pytest.raises(UnreadableError, match=f"change 2 of the joins is not in {seen} on .* same path"):
        reader.at(2)
    with seen.open("ab") as opened:
        opened.write(file.path.read_bytes()[seen.stat().st_size :])
    assert reader.at(2).version == 2
    assert reader.at(1).version == 1, "a batch that comes again"


def test_a_file_that_a_gateway_has_begun_anew_has_all_versions_before(tmp_path: Path) -> None:
    file = JoinFile(tmp_path)
    for name in ("1", "2", "3"):
        file.append([["gone", name]])
    reader = JoinSetsReader(file.path)
    reader.at(3)
    file.close()
    again = JoinFile(tmp_path)
    for version in (3, 1):
        assert reader.at(version).group_of == {}
    assert again.append([["gone", "4"]]) == 4
    assert reader.at(4).version == 4
    again.path.unlink()
    with pytest.raises(UnreadableError, match="change 4 of the joins"):
        JoinSetsReader(again.path).at(4)
