"""How joins were, over a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from skerry.execution.join_buckets import GroupNow
from skerry.service.kept_groups import FILE, KeptGroups


def test_how_joins_were_is_there_again_and_a_damaged_file_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    groups = {
        "3": GroupNow(7, 900, 10**15, 2, 1, None, {"s0": 10**15, "s1": 5}),
        "9": GroupNow(trouble="it is full"),
    }
    kept = KeptGroups(tmp_path)
    assert kept.read() == {}
    kept.write(groups)
    assert KeptGroups(tmp_path).read() == groups
    kept.write({}, now=True)
    assert KeptGroups(tmp_path).read() == {}
    assert not caplog.records
    for damaged in (b"[1]", b'{"3": {"rows": 1, "colour": 2}}', b'{"3"'):
        (tmp_path / FILE).write_bytes(damaged)
        caplog.clear()
        assert KeptGroups(tmp_path).read() == {}
        assert f"{tmp_path / FILE} is damaged" in caplog.text
