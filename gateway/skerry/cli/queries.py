"""``skerry query``, ``explain`` and ``stop``."""

from __future__ import annotations

import json
import os
import re
import signal as signals
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from skerry.cli.options import URL, Asker, Token, Url, User, asker
from skerry.cli.output import Format, leave_output, table, writer
from skerry.cli.waiting import telling
from skerry.client.client import Client, connect, is_about_sensors, stops
from skerry.client.errors import GatewayError
from skerry.client.rows import Rows
from skerry.sql.units import time_of

Sql = Annotated[
    str, typer.Argument(metavar="SQL", help='as in "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 5 s"')
]


Zone = Annotated[
    str | None,
    typer.Option(
        metavar="ZONE",
        help="of times in tables, as in UTC or Europe/Lisbon; this machine's where it is not said",
    ),
]


class ExplainFormat(StrEnum):
    """How a plan is shown."""

    TEXT = "text"
    JSON = "json"


#: A query of a command that was killed is stopped after so long, in s.
LINGER_S = 60.0


def seconds_of(text: str) -> float:
    """What ``--for`` says. Raises BadParameter."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    unit = time_of(match[2] or "s") if match else None
    seconds = float(match[1]) * unit / 1000 if match and unit else 0.0
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise typer.BadParameter(f"{text!r}: expected a duration as in 60s or 10min", param_hint="--for")
    return seconds


def query(
    sql: Sql,
    format: Annotated[
        Format, typer.Option(help="csv and json write only data to standard output")
    ] = Format.TABLE,
    rows: Annotated[int | None, typer.Option(min=1, help="stop after so many rows")] = None,
    run_for: Annotated[
        str | None, typer.Option("--for", help="stop after this time, as in 60s or 10min")
    ] = None,
    tz: Zone = None,
    user: Asker = None,
    url: Url = URL,
    token: Token = None,
) -> None:
    """Ask a question; rows are printed as they come, until Ctrl-C."""
    limit, zone = seconds_of(run_for) if run_for is not None else None, _zone(tz)
    client = asker(url, user, token)
    if stops(sql):
        return _stop_by(client, sql)
    if is_about_sensors(sql):
        return _execute(client, sql, format)
    answer = client.query(sql, linger_s=LINGER_S)
    _tell_notes(answer)
    kept = _kept(answer)
    if kept is not None:
        print(f"query {answer.id} keeps {kept}", file=sys.stderr)
        return
    print(f"query {answer.id} runs; Ctrl-C stops it", file=sys.stderr)
    _tell_begin(answer)
    for inner in client.queries():
        if inner["started_by"] == answer.id:
            # What motes are asked for a join waits for nothing.
            what = "its rows start" if inner["waits_for"] else "for it motes are asked"
            print(
                f"{what} query {inner['id']}: 'skerry rows {inner['id']}' shows what that says",
                file=sys.stderr,
            )
    # As by Ctrl-C, also where that is ignored.
    signals.signal(signals.SIGALRM, signals.default_int_handler)
    timer = threading.Timer(limit or 0.0, _stop, (answer,))
    timer.daemon = True
    if limit is not None:
        timer.start()
    began = time.monotonic()
    count = 0
    try:
        with telling(answer) as over:
            for printed in _print(answer, format, rows, zone):
                count = printed
                over.set()
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        # Also the heading meets it.
        count = max(0, count - 1)
        leave_output()
    finally:
        timer.cancel()
        _tell_zones(answer)
        if answer.id in {entry["id"] for entry in client.queries()}:
            answer.stop()
    print(f"{count} rows in {time.monotonic() - began:.0f} s", file=sys.stderr)


def _stop_by(client: Client, sql: str) -> None:
    stopped = client.stop_by(sql)
    print(
        "\n".join(f"query {query} stopped" for query in stopped) or "no query of yours runs", file=sys.stderr
    )


def _execute(client: Client, sql: str, format: Format) -> None:
    """A statement about tables of sensors: what came of it, or what it shows."""
    done = client.execute(sql)
    if done["done"]:
        print(done["done"], file=sys.stderr)
    rows = [dict(zip(done["columns"], row, strict=True)) for row in done["rows"]]
    if done["columns"] and format is Format.TABLE:
        table(rows, done["columns"])
    elif done["columns"]:
        columns = [{"name": name, "unit": "", "type": "text", "digits": None} for name in done["columns"]]
        write = writer(format, columns)
        for row in rows:
            write(row)


def _tell_notes(answer: Rows) -> None:
    """How the gateway reads what the query leaves open, and what cannot have been meant."""
    for note in [*answer.notes, *([answer.doubt] if answer.doubt is not None else [])]:
        print(f"note: {note}", file=sys.stderr)


def _kept(answer: Rows) -> str | None:
    """What a query without rows keeps on the motes, and how one goes on from there; None: it has rows."""
    if answer.index is not None:
        return f"index {answer.index}; 'skerry query \"DROP INDEX {answer.index}\"' ends it, with its data"
    if answer.into is not None:
        return f"its rows in {answer.into}: 'skerry points' shows it"
    if answer.srt is not None:
        return f"semantic routing tree {answer.srt}; 'skerry query \"DROP SRT {answer.srt}\"' ends it"
    return None


def _tell_zones(answer: Rows) -> None:
    """Of a query of an index: whether all that was asked has been heard."""
    if not answer.of_index:
        return
    try:
        found = answer.status()["indexed"]
    except GatewayError:
        return
    if not found["over"]:
        return
    asked = f"{len(found['asked'])} of the {found['of']} motes that store index {found['index']} were asked"
    held = "".join(
        f"; mote {node} held {count} tuple{'s' * (count != 1)} of it" for node, count in found["held"].items()
    )
    said = f"{_missing(found)}; {asked}{held}" if found["missing"] else f"complete: {asked}"
    print(said, file=sys.stderr)


def _missing(found: Mapping[str, Any]) -> str:
    """Which motes' tuples an answer lacks, and what to do about it."""
    silent = found["missing"]
    motes = f"mote{'s' * (len(silent) > 1)} {', '.join(map(str, silent))}"
    they = "they are" if len(silent) > 1 else "it is"
    if len(silent) < len(found["asked"]):
        return f"missing: {motes} did not answer, ask again when {they} back"
    return (
        f"missing: nobody answered: {motes} alone may store what was asked for, ask again when {they} back,"
        " which 'skerry motes' shows"
    )


def _tell_begin(answer: Rows) -> None:
    """What is waited for."""
    wait = 0.0 if answer.begins is None else answer.begins - time.time()
    if answer.begins is not None and wait >= 1:
        at = datetime.fromtimestamp(answer.begins).strftime("%H:%M:%S")
        print(f"begins at {at}, in {wait:.0f} s, when all motes can have heard of it", file=sys.stderr)


def _stop(answer: Rows) -> None:
    """In a thread: at the gateway, which ends the rows; where it cannot be asked, here."""
    try:
        answer.stop()
    except GatewayError:
        os.kill(os.getpid(), signals.SIGALRM)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Such as of rows that were dropped: a line."""
    print(f"skerry: {message}", file=sys.stderr)


def _zone(name: str | None) -> ZoneInfo | None:
    """A zone by its name; None: this machine's."""
    try:
        return ZoneInfo(name) if name is not None else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        message = f"{name!r}: expected a time zone as in UTC or Europe/Lisbon"
        raise typer.BadParameter(message, param_hint="--tz") from None


def _print(answer: Rows, format: Format, limit: int | None, zone: ZoneInfo | None) -> Iterator[int]:
    """Print rows as they come; before each, how many there are with it: Ctrl-C may come as soon as it is there."""
    warnings.showwarning = _warn
    write = writer(format, answer.columns, zone)
    for count, row in enumerate(answer, 1):
        yield count
        write(row)
        if count == limit:
            break


def rows(
    id: Annotated[str, typer.Argument(help="as 'skerry list' shows it")],
    format: Annotated[
        Format, typer.Option(help="csv and json write only data to standard output")
    ] = Format.TABLE,
    rows: Annotated[int | None, typer.Option(min=1, help="leave after so many rows")] = None,
    tz: Zone = None,
    user: User = None,
    url: Url = URL,
    token: Token = None,
) -> None:
    """Show the rows of a query that runs, from its first on, until Ctrl-C; the query runs on."""
    answer = connect(url, user=user, token=token).resume(id)
    try:
        with telling(answer) as over:
            for _ in _print(answer, format, rows, _zone(tz)):
                over.set()
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        leave_output()


def explain(
    sql: Sql,
    format: Annotated[ExplainFormat, typer.Option()] = ExplainFormat.TEXT,
    url: Url = URL,
    token: Token = None,
) -> None:
    """What would run on motes, root and gateway, and what it costs in energy."""
    explained = connect(url, token=token).explain(sql)
    text = explained.pop("text")
    print(text if format is ExplainFormat.TEXT else json.dumps(explained, indent=1))


def stop(
    id: Annotated[str, typer.Argument(help="as 'skerry list' shows it")],
    user: User = None,
    url: Url = URL,
    token: Token = None,
) -> None:
    """Stop a query; with --user only one of his."""
    stopped = connect(url, user=user, token=token).stop(id)
    print(f"query {stopped['id']} stopped: {stopped['sql']}", file=sys.stderr)


def signal(
    event: Annotated[str, typer.Argument(help="as in ON EVENT")], url: Url = URL, token: Token = None
) -> None:
    """Raise an event as if at the root."""
    queries = connect(url, token=token).signal(event)
    print(f"event {event} goes to all motes: {_known_to(queries)}", file=sys.stderr)


def _known_to(queries: list[str]) -> str:
    """``query 1 knows it``, ``queries 1 and 2 know it``."""
    if len(queries) == 1:
        return f"query {queries[0]} knows it"
    return f"queries {', '.join(queries[:-1])} and {queries[-1]} know it"
