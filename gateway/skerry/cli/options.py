"""Options that several commands share."""

from __future__ import annotations

import getpass
import os
from typing import Annotated

import typer

from skerry.client.client import DEFAULT_URL, Client, connect

Url = Annotated[str, typer.Option(envvar="SKERRY_URL", help="the gateway's HTTP API")]
User = Annotated[
    str | None,
    typer.Option(
        envvar="SKERRY_USER",
        help="whose queries; default: all, or with a token its user's",
        show_default=False,
    ),
]
Asker = Annotated[
    str | None,
    typer.Option(
        envvar="SKERRY_USER",
        help="who asks; default: your login name, or with a token its user",
        show_default=False,
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        envvar="SKERRY_TOKEN",
        help="where the gateway asks for one; others see command lines: better in SKERRY_TOKEN",
        show_default=False,
    ),
]
URL = DEFAULT_URL


def asker(url: str, user: str | None, token: str | None) -> Client:
    """A client that asks under a name: the one given, the token's, or the login name."""
    return connect(url, user=user or (None if token else _login()), token=token)


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # As in a container that runs under a number of nobody's.
        raise typer.BadParameter(
            f"user {os.getuid()} has no login name: say who asks", param_hint="--user or SKERRY_USER"
        ) from None
