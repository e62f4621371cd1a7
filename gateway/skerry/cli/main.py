"""``skerry``: the commands of the gateway, and those that other packages add."""

from __future__ import annotations

import errno
import sys
from importlib.metadata import entry_points

import typer

from skerry.cli import ask, gateway, run, show
from skerry.cli.output import leave_output
from skerry.errors import ArgumentError, GatewayError

app = typer.Typer(
    name="skerry",
    help="Ask a network of sensor motes a question in SQL; the answer streams back.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("query")(ask.query)
app.command("rows")(ask.rows)
app.command("explain")(ask.explain)
app.command("stop")(ask.stop)
app.command("signal")(ask.signal)
app.command("run")(run.run)
app.command("list")(show.list_queries)
app.command("catalog")(show.catalog)
app.command("motes")(show.motes)
app.command("substitutes")(show.substitutes)
app.command("tag")(show.tag)
app.command("points")(show.points)
app.command("status")(show.status)
app.command("tables")(show.tables)
app.command("compact")(show.compact)
app.command("gateway")(gateway.gateway)
app.command("token")(gateway.token)
for entry in entry_points(group="skerry.commands"):
    app.command(entry.name)(entry.load())


#: What a write to standard output can meet.
_OUTPUT = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main() -> None:
    """Entry point. Exit codes: 0 done, 1 failed, 2 wrong usage."""
    try:
        try:
            app()
        finally:
            # Here, where it can still be told; there is none when it was closed before.
            if sys.stdout is not None:
                sys.stdout.flush()
    except GatewayError as error:
        print(f"skerry: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ArgumentError) else 1)
    except OSError as error:
        if error.errno not in _OUTPUT or error.filename is not None:
            raise
        leave_output()
        if error.errno != errno.EPIPE:
            print(f"skerry: standard output: {error.strerror}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
