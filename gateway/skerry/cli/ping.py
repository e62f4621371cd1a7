"""``skerry ping``: records from one mote to another."""

from __future__ import annotations

import json
import sys
import time
from typing import Annotated, Any

import typer

from skerry.cli.options import URL, Token, Url
from skerry.client.client import connect

#: How often the outcome is looked for, in s.
_LOOK_S = 0.2


def _line(found: dict[str, Any]) -> str:
    arrived = found["outcome"] == "arrived"
    to = found["to"] if found["to"] is not None or not arrived else found["way"][-1]
    whither = f"mote {to}" if to is not None else "place {:g},{:g}".format(*found["place"])
    if not arrived:
        return f"mote {found['mote']} to {whither}: {found['outcome']}"
    hops = f"{found['hops']} hop{'' if found['hops'] == 1 else 's'}"
    way = [str(node) for node in found["way"]]
    # A record has room for the numbers of so many motes.
    if len(way) <= found["hops"]:
        way.insert(-1, "…")
    return f"mote {found['mote']} to {whither}: {hops} in {found['took_s']:.3f} s, by {' - '.join(way)}"


def _place(text: str) -> tuple[float, float]:
    try:
        x, y = (float(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no place: write 12.5,40", param_hint="--place") from None
    return x, y


def _motes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r} names no motes: write 4,3,7", param_hint="--by") from None


def ping(
    mote: Annotated[int, typer.Option(help="short address of the mote that sends")],
    to: Annotated[int | None, typer.Option(help="… and of the one that it is for")] = None,
    place: Annotated[
        str | None,
        typer.Option(metavar="X,Y", help="in m: to whoever stands nearest; with --to, by where it stands"),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="MOTE,…", help="by these motes, of which the last one is that which it is for"),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="records, one after the other")] = 1,
    within: Annotated[int, typer.Option(min=1, help="s that each may be under way")] = 120,
    json_lines: Annotated[bool, typer.Option("--json", help="a line of JSON for each")] = False,
    url: Url = URL,
    token: Token = None,
) -> None:
    """Send a record from one mote to another, or to a place, past the gateway: hops, time and way. Exit code 1: one did not arrive.

    The first opens a way, which takes control windows: the next ones find it open. Time is the network's, from when the mote was told to
    send it.
    """
    if to is None and place is None and by is None:
        raise typer.BadParameter("say to which mote, or to which place", param_hint="--to, --place or --by")
    where = None if place is None else _place(place)
    named = [] if by is None else _motes(by)
    client = connect(url, token=token)
    arrived = 0
    for _ in range(count):
        sent = client.ping(mote, to, within, where, named)
        # The command has to reach the mote, and the answer the gateway.
        end = time.monotonic() + 2 * within + 60
        found = sent
        try:
            while found["outcome"] is None and time.monotonic() < end:
                time.sleep(_LOOK_S)
                found = client.pinged(sent["token"])
        except KeyboardInterrupt:
            print("the record is on its way all the same", file=sys.stderr)
            raise typer.Exit(1) from None
        if found["outcome"] is None:
            found["outcome"] = "nothing was heard of it"
        arrived += found["outcome"] == "arrived"
        print(json.dumps(found) if json_lines else _line(found), flush=True)
    if arrived < count:
        raise typer.Exit(1)
