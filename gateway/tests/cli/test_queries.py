"""``skerry query`` when the gateway, or who reads its output, goes away."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from skerry.cli import queries
from skerry.client.errors import GatewayError

SQL = "SELECT nodeid FROM sensors SAMPLE PERIOD 1 s"


class Answer:
    """A query whose gateway goes away after one row."""

    id, into, srt, doubt = "1", None, None, "WHERE is never true: nodeid is 0 to 65534"
    index, of_index = None, False
    notes = ("each 10 s, as no SAMPLE PERIOD was given",)
    columns: tuple[dict[str, Any], ...] = ({"name": "nodeid", "unit": "", "digits": 0, "type": "integer"},)

    def __init__(self) -> None:
        self.begins = time.time() + 12

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield {"nodeid": 3}
        time.sleep(30)

    def stop(self) -> None:
        raise GatewayError("no gateway")


class Client:
    """The gateway of it: there is none after the first ``answers``."""

    def __init__(self, answers: int) -> None:
        self.answers = answers

    def query(self, sql: str, linger_s: float) -> Answer:
        assert sql == SQL
        assert linger_s > 0
        return Answer()

    def queries(self) -> list[dict[str, Any]]:
        self.answers -= 1
        if self.answers < 0:
            raise GatewayError("no gateway")
        return []


def test_the_time_is_over_also_when_the_gateway_is_gone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "asker", lambda *_: Client(1))
    before = signal.getsignal(signal.SIGALRM)
    began = time.monotonic()
    try:
        with pytest.raises(GatewayError, match="no gateway"):
            queries.query(SQL, run_for="500ms")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 10
    said = capsys.readouterr()
    assert said.out.split() == ["nodeid", "--------", "3"]
    assert "Traceback" not in said.err


def test_rows_that_nobody_reads_are_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader has gone before the heading."""

    def broken(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(queries, "asker", lambda *_: Client(9))
    monkeypatch.setattr(queries, "writer", broken)
    monkeypatch.setattr(queries, "leave_output", lambda: None)
    queries.query(SQL)
    said = capsys.readouterr().err
    assert (
        "note: each 10 s, as no SAMPLE PERIOD was given\nnote: WHERE is never true: nodeid is 0 to 65534\n"
        in said
    )
    assert re.search(
        r"^begins at \d\d:\d\d:\d\d, in 1[12] s, when all motes can have heard of it$", said, re.M
    )
    assert "\n0 rows in 0 s\n" in said
