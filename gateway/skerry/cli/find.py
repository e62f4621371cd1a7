"""``skerry find``: motes that one mote finds by what never changes on them."""

from __future__ import annotations

import json
import re
import sys
import time
from typing import Annotated, Any

import typer

from skerry.cli.options import URL, Token, Url
from skerry.client.client import Client, connect

#: How often the outcome is looked for, in s.
_LOOK_S = 0.2
#: How it goes on is told at most so often, and again where nothing has changed for so long, in s.
_TELL_S, _AGAIN_S = 2.0, 30.0
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
        + (
            f"{one['hops']} hop{'' if one['hops'] == 1 else 's'} to mote {searched['mote']}"
            if one["hops"]
            else "itself"
        )
        for one in searched["found"]
    ]
    asking, answers = searched["search_frames"], searched["answer_frames"]
    told.append(
        f"{len(searched['found'])} found by mote {searched['mote']}; {searched['asked']} of {searched['motes']} motes asked; "
        f"frames: {asking} search, {answers} answers (a flood to all: at least {searched['motes']}, and the same answers)"
    )
    if not searched["asked"]:
        told.append(
            f"mote {searched['mote']} has not begun: it needs longer (--within), has not heard of the search, or has no room for it beside "
            "its queries"
        )
    elif not searched["complete"]:
        told.append("not all have told how the search went on: there may be more")
    return told


def phase(searched: dict[str, Any], attribute: str) -> str:
    """What is waited for."""
    mote, wait = searched["mote"], searched["wait"]
    if not searched["asked"] and wait <= 1:
        return f"mote {mote} begins to search with the next control window"
    if not searched["asked"]:
        return (
            f"mote {mote} waits until the motes have trees and summaries for {attribute}: {wait} control windows, one each 4 s, in a slow "
            "network each 16 s"
        )
    found, having = len(searched["found"]), searched["having"]
    return f"asked: {searched['asked']} of {searched['motes']} motes; answered: {found} of {having} known to have it"


def _until_over(client: Client, searched: dict[str, Any], attribute: str, within: float) -> dict[str, Any]:
    """The search as it is once it is complete, the time is over, or nobody wants to wait any more; standard error says how it goes on."""
    began = time.monotonic()
    said, said_at = "", began - _AGAIN_S
    try:
        while not searched["complete"] and (now := time.monotonic()) - began < within:
            said_for, told = now - said_at, phase(searched, attribute)
            if said_for >= _AGAIN_S or (told != said and said_for >= _TELL_S):
                print(f"{now - began:.0f} s: {told}", file=sys.stderr, flush=True)
                said, said_at = told, now
            time.sleep(_LOOK_S)
            searched = client.searched(searched["token"])
    except KeyboardInterrupt:
        print("the motes go on searching all the same; what is known by now:", file=sys.stderr)
    return searched


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

    The first search for an attribute waits until the motes have grown trees for it, some minutes; the next ones find them there. Standard
    error says how it goes on.
    """
    attribute, low, high = understood(" ".join(condition))
    client = connect(url, token=token)
    searched = _until_over(client, client.search(attribute, low, high, mote), attribute, within)
    print(json.dumps(searched) if json_line else "\n".join(lines(searched)), flush=True)
    if not searched["complete"]:
        raise typer.Exit(1)
