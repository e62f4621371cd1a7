"""What is told to whoever waits for rows."""

from __future__ import annotations

import time
from typing import Any

import pytest

from skerry.cli import waiting
from skerry.client.errors import GatewayError
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query

WHY = "takes its program for none: is its firmware older than the gateway?"


def described(**said: Any) -> dict[str, Any]:
    return {"paused": None, "refused": [], "waits_for": [], "answered": 0, "motes": None, **said}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (described(), []),
        (described(motes=12), ["0 of 12 motes have answered"]),
        (described(motes=1), ["0 of 1 mote has answered"]),
        (described(answered=3), ["3 motes have answered"]),
        (described(answered=13, motes=12), ["13 of 13 motes have answered"]),
        (described(waits_for=["hot", "cold"], motes=3), ["waits for event hot or cold"]),
        (described(waits_for=["hot"], answered=1, motes=3), ["1 of 3 motes have answered"]),
        (described(paused="table places is not there"), ["waits: table places is not there"]),
        (
            described(refused=[f"mote {node} {WHY}" for node in range(1, 9)], motes=0),
            [f"refused by motes 1, 2, 3, 4, 5 and 3 more, which {WHY}", "no mote runs it: no row will come"],
        ),
        (
            described(refused=["mote 7 runs as many queries as it can already", f"mote 9 {WHY}"], motes=3, answered=2),
            ["refused by mote 7, which runs as many queries as it can already", f"refused by mote 9, which {WHY}",
             "2 of 3 motes have answered"],
        ),
    ],
)  # fmt: skip
def test_reasons(query: dict[str, Any], expected: list[str]) -> None:
    assert waiting.reasons(query) == expected


class Answer:
    """A query of which the gateway says these one after the other, and then the last again."""

    def __init__(self, *said: dict[str, Any] | None) -> None:
        self.said, self.asked = list(said), 0

    def status(self) -> dict[str, Any]:
        self.asked += 1
        found = self.said.pop(0) if len(self.said) > 1 else self.said[0]
        if found is None:
            raise GatewayError("no gateway")
        return found


def test_each_is_told_once_until_a_row_has_come(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LOOK_S", 0.01)
    answer = Answer(described(motes=2), None, described(motes=2), described(motes=2, answered=1))
    with waiting.telling(answer) as over:  # type: ignore[arg-type]
        while answer.asked < 8:
            time.sleep(0.01)
        over.set()
        answer.said = [described(motes=2, answered=2)]
    captured = capsys.readouterr()
    assert captured.err.splitlines() == ["0 of 2 motes have answered", "1 of 2 motes have answered"]
    assert captured.out == ""


def test_events_that_a_query_waits_for() -> None:
    plan = plan_query("ON EVENT hot(temp): SELECT nodeid FROM sensors SAMPLE PERIOD 1 s FOR 10 s")
    assert isinstance(plan, QueryPlan)
    assert plan.awaited == ("hot",)
    plain = plan_query("SELECT nodeid FROM sensors SAMPLE PERIOD 1 s")
    assert isinstance(plain, QueryPlan)
    assert plain.awaited == ()
