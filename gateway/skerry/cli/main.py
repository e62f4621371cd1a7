"""``skerry``: the commands of the gateway, and those that other packages add."""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from importlib.metadata import entry_points, version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from skerry.cli import find, gateway, ping, queries, run, serve, show, streams, users
from skerry.cli.output import leave_output
from skerry.client.errors import ArgumentError, GatewayError

#: Commands that other packages add, until they are asked for: to import what they need takes longer than most commands do.
_added = {entry.name: entry for entry in entry_points(group="skerry.commands")}


class _Commands(TyperGroup):
    """Commands whose output may be read in part, as by ``head``: who closes it has what he wanted."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = _added.pop(cmd_name, None)
        if entry is not None:
            alone = typer.Typer(add_completion=False)
            alone.command(cmd_name)(entry.load())
            self.commands[cmd_name] = typer.main.get_command(alone)
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Else the library would end the command with 1, as if it had failed.
            leave_output()
            return None


class _Asks(TyperCommand):
    """Takes a query, which a shell takes apart where it stands without quotation marks."""

    allow_extra_args = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        left = super().parse_args(ctx, args)
        if ctx.args:
            right = f'put the query in quotation marks, as in skerry {ctx.info_name} "SELECT nodeid, temp …"'
            raise typer.BadParameter(f"{' '.join(ctx.args)!r} stands apart: {right}", ctx, param_hint="SQL")
        return left


app = typer.Typer(
    name="skerry",
    cls=_Commands,
    help="Ask a network of sensor motes a question in SQL; the answer streams back.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _tell_version(asked: bool) -> None:
    if asked:
        # Here, as no other command needs it.
        protocol = import_module("skerry_protocol.limits").PROTOCOL_VERSION
        print(f"skerry {version('skerry')}, protocol {protocol}")
        raise typer.Exit


@app.callback()
def _begin(
    asked: Annotated[
        bool,
        typer.Option(
            "--version",
            help="this version, and that of the motes' packets",
            callback=_tell_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Options that go with no command."""


def _stands_for_an_added_one() -> None:
    """Never called."""


app.command("query", cls=_Asks)(queries.query)
app.command("rows")(queries.rows)
app.command("explain", cls=_Asks)(queries.explain)
app.command("stop")(queries.stop)
app.command("signal")(queries.signal)
app.command("run")(run.run)
app.command("ping")(ping.ping)
app.command("find")(find.find)
app.command("list")(show.list_queries)
app.command("catalog", cls=_Asks)(show.catalog)
app.command("motes")(show.motes)
app.command("substitutes")(show.substitutes)
app.command("tag")(show.tag)
app.command("points")(show.points)
app.command("status")(show.status)
app.command("tables")(show.tables)
app.command("compact")(show.compact)
app.add_typer(streams.app, name="stream")
app.command("gateway")(gateway.gateway)
app.command("serve")(serve.serve)
app.add_typer(users.app, name="user")
for name in _added:
    app.command(name)(_stands_for_an_added_one)


#: What a write to standard output can meet.
_OUTPUT = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _open_closed_outputs() -> None:
    """Who closed standard output or error (``>&-``) wants nothing of it; libraries that log take for granted that both are there."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - to the process's end


def main() -> None:
    """Entry point. Exit codes: 0 done, 1 failed, 2 wrong usage."""
    _open_closed_outputs()
    try:
        try:
            app()
        finally:
            # Here, where it can still be told.
            sys.stdout.flush()
    except GatewayError as error:
        print(f"skerry: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ArgumentError) else 1)
    except OSError as error:
        if error.errno not in _OUTPUT or error.filename is not None:
            raise
        leave_output()
        if error.errno == errno.EPIPE:
            # What the command came to, and has told with this error, stands.
            sys.exit(error.__context__.code if isinstance(error.__context__, SystemExit) else 0)
        print(f"skerry: standard output: {error.strerror}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
