"""``skerry find``: motes that one mote finds by what never changes on them."""

from __future__ import annotations

import json
import re
import time
from typing import Annotated, Any

import typer

from skerry.cli.options import URL, Token, Url
from skerry.client.client import connect

#: How often the outcome is looked for, in s.
_LOOK_S = 0.2
_NUMBER = r"([+-]?\d+)"
_EQUAL = re.compile(rf"(\w+)\s*=\s*{_NUMBER}")
_BETWEEN = re.compile(rf"(\w+)\s+BETWEEN\s+{_NUMBER}\s+AND\s+{_NUMBER}", re.IGNORECASE)


def understood(condition: str) -> tuple[str, int, int]:
    """Attribute, least and greatest value."""
    if found := _EQUAL.fullmatch(condition):
        return found[1], int(found[2]), int(found[2])
    if found := _BETWEEN.fullmatch(condition):
        return found[1], int(found[2]), int(found[3])
    raise typer.BadParameter(
        f"'{condition}' is no condition of one attribute: write room = 4, or room BETWEEN 3 AND 5",
        param_hint="CONDITION",
    )


def lines(searched: dict[str, Any]) -> list[str]:
    """For a person."""
    told = [
        f"mote {one['mote']}: "
        + (f"{one['hops']} hops to mote {searched['mote']}" if one["hops"] else "itself")
        for one in searched["found"]
    ]
    asking, answers = searched["search_frames"], searched["answer_frames"]
    told.append(
        f"{len(searched['found'])} found by mote {searched['mote']}; {searched['asked']} of {searched['motes']} motes asked; "
        f"frames: {asking} search, {answers} answers (a flood to all: at least {searched['motes']}, and the same answers)"
    )
    if not searched["complete"]:
        told.append("not all have told how the search went on: there may be more")
    return told


def find(
    condition: Annotated[list[str], typer.Argument(help="room = 4, or room BETWEEN 3 AND 5")],
    mote: Annotated[
        int | None, typer.Option(help="short address of the mote that searches; else the root")
    ] = None,
    within: Annotated[int, typer.Option(min=1, help="s to wait for answers")] = 600,
    json_line: Annotated[bool, typer.Option("--json", help="a line of JSON")] = False,
    url: Url = URL,
    token: Token = None,
) -> None:
    """Have a mote search the network for motes by a static attribute: who was found, and the frames that took. Exit code 1: not all told.

    The first search for an attribute waits until the motes have grown trees for it, some minutes; the next ones find them there.
    """
    attribute, low, high = understood(" ".join(condition))
    client = connect(url, token=token)
    searched = client.search(attribute, low, high, mote)
    end = time.monotonic() + within
    while not searched["complete"] and time.monotonic() < end:
        time.sleep(_LOOK_S)
        searched = client.searched(searched["token"])
    print(json.dumps(searched) if json_line else "\n".join(lines(searched)), flush=True)
    if not searched["complete"]:
        raise typer.Exit(1)
