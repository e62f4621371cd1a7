"""``skerry ping`` prints hops, time and way of each record, and its exit code says whether all arrived."""

from __future__ import annotations

import json
from typing import Any

import pytest
import typer

from skerry.cli import ping as command

ARRIVED = {
    "mote": 3,
    "to": 7,
    "place": None,
    "outcome": "arrived",
    "hops": 3,
    "took_s": 1.031,
    "way": [3, 2, 6, 7],
}


class Client:
    """A gateway that says so of one record after the other."""

    def __init__(self, *outcomes: dict[str, Any]) -> None:
        self._outcomes = list(outcomes)
        self.asked: list[tuple[Any, ...]] = []

    def ping(self, *asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        return {"token": 5, **self._outcomes[0], "outcome": None}

    def pinged(self, token: int) -> dict[str, Any]:
        assert token == 5
        return self._outcomes.pop(0)


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        (ARRIVED, "mote 3 to mote 7: 3 hops in 1.031 s, by 3 - 2 - 6 - 7"),
        (
            {**ARRIVED, "hops": 1, "way": [3, 7], "to": None, "place": [1.5, 2.0]},
            "mote 3 to mote 7: 1 hop in 1.031 s, by 3 - 7",
        ),
        ({**ARRIVED, "hops": 9}, "mote 3 to mote 7: 9 hops in 1.031 s, by 3 - 2 - 6 - … - 7"),
        ({**ARRIVED, "outcome": "no way"}, "mote 3 to mote 7: no way"),
        (
            {**ARRIVED, "outcome": "late", "to": None, "place": [1.5, 2.0]},
            "mote 3 to place 1.5,2: late",
        ),
    ],
)
def test_a_line_for_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, outcome: dict[str, Any], line: str
) -> None:
    client = Client(ARRIVED, outcome)
    monkeypatch.setattr(command, "connect", lambda *_, **__: client)
    failed = False
    try:
        command.ping(3, 7, "1.5,-2", count=2, within=9)
    except typer.Exit as exit:
        failed = exit.exit_code == 1
    assert failed == (outcome["outcome"] != "arrived")
    assert capsys.readouterr().out.splitlines()[1] == line
    assert client.asked == [(3, 7, 9, (1.5, -2.0), [])] * 2


def test_json_is_what_the_gateway_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "connect", lambda *_, **__: Client(ARRIVED))
    command.ping(3, 7, json_lines=True)
    assert json.loads(capsys.readouterr().out) == ARRIVED


@pytest.mark.parametrize(
    ("to", "place", "message"),
    [(None, None, "to which mote, or to which place"), (None, "3;4", "'3;4' is no place")],
)
def test_wrong_usage_is_told(to: int | None, place: str | None, message: str) -> None:
    with pytest.raises(typer.BadParameter, match=message):
        command.ping(3, to, place)
