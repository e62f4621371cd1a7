"""``skerry user``: who may ask a gateway that asks for tokens, by who runs it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from skerry.cli.gateway import default_data
from skerry.cli.options import URL, Url
from skerry.cli.output import table
from skerry.client.operator import Operator
from skerry.sql.row_text import moment_text
from skerry.storage import operator_key

app = typer.Typer(
    help="Users of a gateway that asks for tokens: for who runs it, where its data directory can be read.",
    no_args_is_help=True,
)

Data = Annotated[
    Path | None,
    typer.Option(help="the gateway's data directory, whose key is shown; default: as of 'skerry gateway'"),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="who", show_default=False)]


@app.callback()
def _group() -> None:
    """Users of a gateway that asks for tokens."""


@app.command("add")
def add(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="who may ask from now on")],
    data: Data = None,
    url: Url = URL,
) -> None:
    """Add users, and print each one's name and token, which is kept nowhere: 'skerry user renew' gives another one."""
    _tell(_operator(data, url).add_users(*names))


@app.command("renew")
def renew(name: Name, data: Data = None, url: Url = URL) -> None:
    """Give a user another token, and print it; his old one is refused from now on, his queries go on."""
    _tell(_operator(data, url).renew(name))


@app.command("remove")
def remove(name: Name, data: Data = None, url: Url = URL) -> None:
    """Remove a user: his token is refused, his feeds end, his queries are stopped."""
    removed = _operator(data, url).remove(name)
    stopped = removed["stopped"]
    queries = f"query {stopped[0]} is" if len(stopped) == 1 else f"queries {', '.join(stopped)} are"
    print(f"skerry: {name} is removed{f', {queries} stopped' if stopped else ''}", file=sys.stderr)
    for why in removed["kept"]:
        print(f"skerry: {why}: that stays", file=sys.stderr)


@app.command("list")
def list_users(data: Data = None, url: Url = URL) -> None:
    """The users, and since when they are (UTC)."""
    found = _operator(data, url).users()
    shown = [
        {**user, "added": moment_text(datetime.fromtimestamp(round(user["added"], 3), UTC))} for user in found
    ]
    table(shown, ("name", "added"))


def _tell(answer: dict[str, Any]) -> None:
    for name, token in answer["tokens"].items():
        print(f"{name} {token}")
    if not answer["asked"]:
        print(
            "skerry: this gateway asks for no tokens: with --tokens, or where it listens elsewhere than on loopback, it does",
            file=sys.stderr,
        )


def _operator(data: Path | None, url: str) -> Operator:
    try:
        directory = data or default_data()
        key = operator_key.read(directory)
    except FileNotFoundError as error:
        print(
            f"skerry: {error.filename}: there is none: --data names the directory of a gateway that has run, on its machine",
            file=sys.stderr,
        )
        raise typer.Exit(1) from None
    except OSError as error:
        said = f"{error.filename}: {error.strerror}" if error.filename else error
        print(f"skerry: {said}: users are for who runs the gateway, as the user it runs as", file=sys.stderr)
        raise typer.Exit(1) from None
    return Operator(url, key)
