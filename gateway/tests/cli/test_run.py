"""``skerry run`` says whether the motes did it."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from skerry.cli import run as command


class Client:
    """A gateway whose motes answer so."""

    def __init__(self, motes: list[int], answers: dict[str, str]) -> None:
        self._motes, self._answers = motes, answers

    def run(self, command: str, argument: int | None, mote: int | None, place: object) -> dict[str, Any]:
        assert (command, argument, mote, place) == ("leds", 1, None, None)
        return {"token": 5}

    def motes(self) -> list[dict[str, Any]]:
        return [{"nodeid": node} for node in self._motes]

    def command(self, token: int) -> dict[str, Any]:
        assert token == 5
        return {"answers": self._answers}


@pytest.mark.parametrize(
    ("motes", "answers", "fails", "said"),
    [
        ([1, 2], {"1": "done", "2": "done"}, False, ""),
        ([1, 2], {"1": "done"}, True, "no answer from mote 2 in 0 s; it may still come\n"),
        ([1], {"1": "bad argument"}, True, ""),
        ([], {}, True, "no mote has reported yet, and none answered in 0 s\n"),
        ([], {"7": "done"}, False, ""),
    ],
)
def test_the_exit_code_says_whether_all_did(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    motes: list[int],
    answers: dict[str, str],
    fails: bool,
    said: str,
) -> None:
    monkeypatch.setattr(command, "connect", lambda *_, **__: Client(motes, answers))
    ended = None
    try:
        command.run("leds", "1", wait=0.0)
    except typer.Exit as exit:
        ended = exit.exit_code
    assert ended == (1 if fails else None)
    told = capsys.readouterr()
    assert told.out.splitlines() == [f"mote {node}: {answer}" for node, answer in answers.items()]
    assert told.err == said
