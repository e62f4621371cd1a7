"""Options that several commands share."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from skerry.client import DEFAULT_URL

Url = Annotated[str, typer.Option(envvar="SKERRY_URL", help="the gateway's HTTP API")]
User = Annotated[str, typer.Option(envvar="SKERRY_USER", help="who asks", default_factory=getpass.getuser)]
URL = DEFAULT_URL
