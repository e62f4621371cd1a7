"""What a gateway remembers: a large object is added to, and survives a crash at any byte."""

from __future__ import annotations

import json
import threading
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.storage.state import DataDirectory, remembered


def written(entries: dict[str, Any]) -> dict[str, dict[str, str | None]]:
    return {
        "queries": {key: json.dumps(value) if value is not None else None for key, value in entries.items()}
    }


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.randoms())
def test_a_large_object_is_what_was_saved_last_whenever_it_is_killed(
    tmp_path_factory: Any, random: Random
) -> None:
    path: Path = tmp_path_factory.mktemp("state")
    directory, there = DataDirectory(path), {str(i): "x" * 3000 for i in range(100)}
    directory.save("gateway", {"rest": 0, "still": [0]}, None, partial(written, there))
    i = 0
    for _ in range(1, 60):
        key = str(random.randrange(120))
        before, last = json.loads(json.dumps(there)), i
        i += random.choice((0, 0, 1))
        if random.random() < 0.3:
            there.pop(key, None)
        else:
            there[key] = random.choice("abc") * 20_000
        rest = {"rest": i, "still": [0]}
        directory.save("gateway", rest, written({key: there.get(key)}), partial(written, there))
        if random.random() < 0.2:
            directory.close()
            changes = path / "gateway.changes"
            torn = changes.exists() and random.random() < 0.5
            if torn:
                lines = changes.read_bytes().splitlines(keepends=True)
                lines[-1] = lines[-1][: random.randrange(len(lines[-1]))]
                changes.write_bytes(b"".join(lines))
            directory = DataDirectory(path)
            i, there = (last, before) if torn else (i, there)
            assert directory.load("gateway") == {"rest": i, "still": [0], "queries": there}
            directory.save("gateway", {"rest": i, "still": [0]}, None, partial(written, there))
    directory.close()


def test_others_read_what_was_saved_last_while_it_is_saved(tmp_path: Path) -> None:
    """An object is added to, and now and then replaced: whoever reads it meanwhile finds one that was saved whole."""
    directory, last = DataDirectory(tmp_path), 250
    # Of so many bytes that changes are added to it; they are as many after five times, and it is replaced.
    entries = {"queries": {str(i): json.dumps("x" * 300) for i in range(1000)}}

    def save(i: int) -> None:
        entries["queries"]["0"] = json.dumps([i, "x" * 60_000])
        changed = {"queries": {"0": entries["queries"]["0"]}}
        directory.save("gateway", {"n": i}, changed, lambda: entries)

    save(0)
    thread = threading.Thread(target=lambda: [save(i) for i in range(1, last + 1)])
    thread.start()
    found = []
    while not found or found[-1] < last:
        state = remembered(tmp_path, "gateway")
        assert state is not None
        assert state["queries"]["0"][0] == state["n"]
        found.append(state["n"])
        assert thread.is_alive() or found[-1] == last
    thread.join()
    assert found == sorted(found)
    assert remembered(tmp_path, "another") is None
    directory.close()
