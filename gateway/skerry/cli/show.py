"""``skerry list``, ``catalog``, ``motes``, ``points`` and ``status``."""

from __future__ import annotations

import json
import math
import sys
from typing import Annotated, Any

import typer

from skerry.cli.options import URL, Asker, Token, Url, User, asker
from skerry.cli.output import Format, Row, table, writer
from skerry.client.client import connect


def list_queries(user: User = None, url: Url = URL, token: Token = None) -> None:
    """The queries that run: of all users, of one, or your own where the gateway asks for a token."""
    queries = connect(url, user=user, token=token).queries()
    shown = [{**query, "sql": _shown_sql(query), "refused": _few(query["refused"])} for query in queries]
    table(shown, ("id", "user", "readers", "finished", "paused", "refused", "sql"))


def _shown_sql(query: Row) -> str:
    """What the user wrote: a query that another's rows start waits for an event to which nobody has given a name, and one that motes are
    asked for a join for none."""
    sql: str = query["sql"]
    if query["started_by"] is None:
        return sql
    event, colon, inner = sql.partition(": ")
    started = bool(colon) and event.startswith("ON EVENT")
    return f"started by {query['started_by']}: {inner}" if started else f"for {query['started_by']}: {sql}"


def _few(sentences: list[str]) -> str:
    """One in full, of which the others are mostly copies for other motes."""
    more = f"; {len(sentences) - 1} more in 'skerry status'" if len(sentences) > 1 else ""
    return "".join(sentences[:1]) + more


def catalog(
    sql: Annotated[
        str | None,
        typer.Argument(
            metavar="[SELECT …]",
            help="over motes, attributes, mote_attributes, tags, substitutes, events, commands, streams, queries, "
            "query_streams, points, srts",
        ),
    ] = None,
    format: Annotated[
        Format, typer.Option(help="csv and json write only data to standard output")
    ] = Format.TABLE,
    url: Url = URL,
    token: Token = None,
) -> None:
    """The attributes: unit, range, cost, and how many motes have them; or what a SELECT finds in the catalog's tables."""
    client = connect(url, token=token)
    if sql is None:
        rows = [{**row, "motes": len(row["motes"])} for row in client.catalog()]
        columns = list(rows[0])
    else:
        columns, rows = client.selected(sql)
    if format is Format.TABLE:
        # The description, which is longest, stands at the end.
        table(rows, sorted(columns, key=lambda name: sql is None and name == "description"))
        return
    write = writer(format, [{"name": name} for name in columns])
    for row in rows:
        write(row)


def motes(
    near: Annotated[str | None, typer.Option(metavar="X,Y", help="nearest first, m")] = None,
    within: Annotated[float | None, typer.Option(min=0, help="m from --near at most")] = None,
    has: Annotated[list[str] | None, typer.Option(help="with this attribute; may be repeated")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="with this tag; may be repeated")
    ] = None,
    url: Url = URL,
    token: Token = None,
) -> None:
    """The motes as they last reported themselves: all, or by place, attributes and tags."""
    rows = connect(url, token=token).motes(
        None if near is None else _place(near), within, has or (), dict(map(_assignment, tag or ()))
    )
    shown = ("nodeid", "level", "parent", "x", "y", "distance", "voltage", "link", "neighbours", "queue_length", "dropped",
             "uptime", "reset by", "silent", "tags")  # fmt: skip
    described = [
        {
            **row,
            "x": row["xpos"],
            "y": row["ypos"],
            "link": f"{row['link']:.2f}",
            "distance": f"{row['distance']:.1f}" if near is not None else None,
            "silent": "yes" if row["silent"] else "",
            "reset by": row["invariant"],
            "tags": ", ".join(f"{key}={value}" for key, value in row["tags"].items()),
        }
        for row in rows
    ]
    hidden = {"distance"} if near is None else set()
    hidden |= set() if any(row["invariant"] for row in rows) else {"reset by"}
    table(described, [name for name in shown if name not in hidden])


def substitutes(
    mote: Annotated[int, typer.Argument(help="its address")],
    has: Annotated[
        list[str] | None, typer.Option(help="an attribute that is needed; default: all that the mote has")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="so many at most")] = 5,
    url: Url = URL,
    token: Token = None,
) -> None:
    """Motes that could stand in for one that is silent: those that lack least of what it measures, then the nearest."""
    rows = connect(url, token=token).substitutes(mote, has or (), count)
    table(
        [{**row, "distance": f"{row['distance']:.1f}", "lacks": ", ".join(row["lacks"])} for row in rows],
        ("nodeid", "distance", "lacks"),
    )


def tag(
    motes: Annotated[str, typer.Argument(metavar="MOTE[,MOTE…]", help="their addresses")],
    tags: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]…", help="KEY= takes a tag away; none: show what there is"),
    ] = None,
    user: Asker = None,
    url: Url = URL,
    token: Token = None,
) -> None:
    """Note something about motes, for 'skerry motes --tag' and the catalog."""
    client = asker(url, user, token)
    changes = {key: value or None for key, value in map(_assignment, tags or ())}
    for text in motes.split(","):
        if not text.strip().isdecimal():
            raise typer.BadParameter(
                f"{text!r}: expected addresses of motes as in 7 or 7,8", param_hint="MOTE"
            )
    for text in motes.split(","):
        kept = client.tag(int(text), **changes)
        print(f"mote {int(text)}: {', '.join(f'{key}={value}' for key, value in kept.items()) or 'no tags'}")


def _assignment(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{text!r}: expected KEY=VALUE, as in room=12", param_hint="tag")
    return key.strip(), value.strip()


def _place(text: str) -> tuple[float, float]:
    try:
        x, y = map(float, text.split(","))
        if not (math.isfinite(x) and math.isfinite(y)):
            raise ValueError(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r}: expected X,Y in m, as in 10,20.5", param_hint="--near") from None
    return x, y


def points(url: Url = URL, token: Token = None) -> None:
    """The storage points: their fields, rows and where motes keep them."""
    shown = [
        {**row, "fields": ", ".join(f["name"] for f in row["fields"]), "used_by": ", ".join(row["used_by"])}
        for row in connect(url, token=token).points()
    ]
    table(
        shown,
        ("name", "fields", "rows", "seconds", "circular", "memory", "bytes", "query", "user", "used_by"),
    )


def tables(url: Url = URL, token: Token = None) -> None:
    """The tables that streams can be joined with."""
    client = connect(url, token=token)
    found = client.tables()
    print(f"files of {client.status()['tables']}, on the gateway's machine", file=sys.stderr)
    shown = [{**row, "columns": ", ".join(map(_column, row["columns"]))} for row in found]
    table(shown, ("name", "file", "rows", "columns", "trouble"))
    for row in found:
        for column in row["columns"]:
            if column["trouble"] is not None:
                print(f"{row['name']}.{column['name']} cannot be used: {column['trouble']}")
            elif column["note"] is not None:
                print(f"{row['name']}.{column['name']} is {column['note']}")


def _column(column: dict[str, Any]) -> str:
    return f"{column['name']} {column['type'] or '(cannot be used)'}"


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
