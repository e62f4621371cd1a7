"""``skerry list``, ``catalog``, ``motes``, ``points`` and ``status``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from skerry.cli.options import URL, Token, Url, User
from skerry.client import connect


def _table(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    table = Table(*columns, box=None, header_style="bold")
    for row in rows:
        table.add_row(*("" if row.get(name) is None else str(row[name]) for name in columns))
    Console().print(table)


def list_queries(user: User = None, url: Url = URL, token: Token = None) -> None:
    """The queries that run: of all users, of one, or your own where the gateway asks for a token."""
    _table(connect(url, user=user, token=token).queries(), ("id", "user", "finished", "sql"))


def catalog(url: Url = URL, token: Token = None) -> None:
    """The attributes: unit, range, cost, and how many motes have them."""
    rows = [{**row, "motes": len(row["motes"])} for row in connect(url, token=token).catalog()]
    _table(rows, list(rows[0]))


def motes(url: Url = URL, token: Token = None) -> None:
    """The motes as they last reported themselves."""
    rows = connect(url, token=token).motes()
    shown = (
        "nodeid",
        "level",
        "parent",
        "x",
        "y",
        "voltage",
        "link",
        "neighbours",
        "queue_length",
        "dropped",
        "uptime",
    )
    _table(rows, [name for name in shown if not rows or name in rows[0]])


def points(url: Url = URL, token: Token = None) -> None:
    """The storage points: their fields, rows and where motes keep them."""
    shown = [
        {**row, "fields": ", ".join(f["name"] for f in row["fields"]), "used_by": ", ".join(row["used_by"])}
        for row in connect(url, token=token).points()
    ]
    _table(
        shown,
        ("name", "fields", "rows", "seconds", "circular", "memory", "bytes", "query", "user", "used_by"),
    )


def compact(url: Url = URL, token: Token = None) -> None:
    """Bring the log into the Parquet files of the history now; the gateway does so by itself every ten minutes."""
    done = connect(url, token=token).compact()
    size, days = done["bytes"] / 1e6, f"{done['from']} to {done['to']}" if done["from"] else "no day"
    print(
        f"{done['compacted']} rows compacted; {done['files']} files of {days}, {size:.1f} MB", file=sys.stderr
    )


def status(url: Url = URL, token: Token = None) -> None:
    """Link, log, streams and users, as JSON."""
    print(json.dumps(connect(url, token=token).status(), indent=1))
