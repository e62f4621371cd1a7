"""``skerry``: the commands of the gateway, and those that other packages add."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

import typer

from skerry.cli import ask, gateway, run, show
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


def main() -> None:
    """Entry point. Exit codes: 0 done, 1 failed, 2 wrong usage."""
    try:
        app()
    except GatewayError as error:
        print(f"skerry: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ArgumentError) else 1)


if __name__ == "__main__":
    main()
