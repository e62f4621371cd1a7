"""``skerry run``: commands to motes."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from skerry.cli.options import URL, Token, Url
from skerry.client.client import connect

#: How often answers are looked for, in s.
_LOOK_S = 0.5


def run(
    command: Annotated[str, typer.Argument(help="as in OUTPUT ACTION: leds, power_on, set_room …")],
    argument: Annotated[
        str | None, typer.Argument(help="where the command takes one; of set_position x,y in m")
    ] = None,
    mote: Annotated[int | None, typer.Option(help="its short address; all motes without")] = None,
    wait: Annotated[float, typer.Option(min=0, help="s to wait for answers")] = 30.0,
    url: Url = URL,
    token: Token = None,
) -> None:
    """Run a command on one mote or all; motes are printed as they answer. Exit code 1: not all did, or one refused.

    Negative arguments stand behind --: skerry run --mote 3 set_floor -- -1

    set_NAME sets a static attribute that CREATE ATTRIBUTE NAME made.
    """
    client = connect(url, token=token)
    running = client.run(command, *_argument(argument, mote))
    expected = {mote} if mote is not None else {entry["nodeid"] for entry in client.motes()}
    told: dict[int, str] = {}
    end = time.monotonic() + wait
    try:
        while True:
            answers = {int(node): said for node, said in client.command(running["token"])["answers"].items()}
            for node in sorted(answers.keys() - told.keys()):
                print(f"mote {node}: {answers[node]}")
            told = answers
            # Before the first report nobody knows who will answer.
            if (expected and expected <= told.keys()) or time.monotonic() >= end:
                break
            time.sleep(_LOOK_S)
    except KeyboardInterrupt:
        print("the command is on its way all the same", file=sys.stderr)
    silent = sorted(expected - told.keys())
    if silent:
        print(
            f"no answer from {', '.join(f'mote {node}' for node in silent)} in {wait:g} s; it may still come",
            file=sys.stderr,
        )
    if not expected | told.keys():
        print(f"no mote has reported yet, and none answered in {wait:g} s", file=sys.stderr)
        raise typer.Exit(1)
    if silent or any(said != "done" for said in told.values()):
        raise typer.Exit(1)


def _argument(
    text: str | None, mote: int | None
) -> tuple[int | None, int | None, tuple[float, float] | None]:
    """What :meth:`skerry.client.client.Client.run` takes."""
    if text is None:
        return None, mote, None
    try:
        if "," in text:
            x, y = map(float, text.split(","))
            return None, mote, (x, y)
        return int(text), mote, None
    except ValueError:
        raise typer.BadParameter(
            f"{text!r}: expected a whole number, or a place as in 3.5,4", param_hint="ARGUMENT"
        ) from None
