"""The set of joins as workers read it, some of which see the file as it was before."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.tests.joins import users_joins
from gateway.tests.joins.drawn import draw_any
from gateway.tests.joins.test_joins_of_log import plan_of
from skerry.execution.join_sets import JoinGroup
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


def test_a_group_keeps_its_buckets_whoever_comes_and_goes(tmp_path: Path) -> None:
    spec = plan_of(users_joins.sql(draw_any(0).join)).join.executed()  # type: ignore[union-attr]

    def comes(name: str) -> list[object]:
        return ["join", name, 0, {**spec, "alone": True}]

    def buckets(file: JoinFile) -> dict[str, int]:
        groups = [group for group in file.sets.groups.values() if isinstance(group, JoinGroup)]
        return {name: group.buckets for group in groups for name in group.members}

    file = JoinFile(tmp_path)
    for name in range(10):
        file.append([comes(str(name))])
    assert list(buckets(file).values()) == [8, 8, 8, 8, 4, 4, 4, 4, 2, 2]
    file.append([["gone", str(name)] for name in range(8)])
    file.close()
    again = JoinFile(tmp_path)
    again.append([comes("10"), comes("11")])
    assert buckets(again) == {"8": 2, "9": 2, "10": 8, "11": 8}
    groups = JoinSetsReader(again.path).at(again.sets.version).groups
    assert [group.buckets for group in groups.values() if isinstance(group, JoinGroup)] == [2, 2, 8, 8]
