"""``skerry stream try``: what an address of a stream brings, and a table for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skerry.cli.gateway import default_data
from skerry.cli.queries import seconds_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skerry.sources.proposing import Proposed
    from skerry.sources.stream_type import Value

app = typer.Typer(help="Streams that are no motes'.", no_args_is_help=True)

#: Rows that are shown, each with so many characters.
_SHOWN, _WIDTH = 10, 240


@app.callback()
def _group() -> None:
    """Streams that are no motes'."""


@app.command("try")
def try_stream(
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS", help="as in 'tcp://127.0.0.1:5001?format=json', in quotation marks"
        ),
    ],
    run_for: Annotated[str, typer.Option("--for", help="look for so long, as in 5s or 1min")] = "5s",
    rows: Annotated[int, typer.Option(min=1, help="or until there are so many rows")] = 1000,
    name: Annotated[str, typer.Option(help="of the proposed table")] = "things",
    data: Annotated[
        Path | None,
        typer.Option(help="data directory, with streams/ and secrets/; default: as of 'skerry gateway'"),
    ] = None,
    secrets: Annotated[
        Path | None, typer.Option(help="folder of secrets; default: secrets in --data")
    ] = None,
) -> None:
    """Open an address as a gateway would, show what comes, and propose CREATE SENSORS for it. No gateway is asked: what its operator allows
    is told there. Exit code 1: nothing came."""
    # Imported here: the other commands start without Arrow.
    from skerry.sources.proposing import for_shell, format_of, is_name, proposed, shown, statements
    from skerry.sources.secrets import FOLDER
    from skerry.sources.stream_type import AddressError
    from skerry.sources.trying import look

    if not is_name(name):
        print(
            f"skerry: --name '{name}': a table's name has letters, digits and _, and is no keyword",
            file=sys.stderr,
        )
        raise typer.Exit(2)
    limit_s = seconds_of(run_for)
    data = data or default_data()
    count = 0

    def show(value: Value) -> None:
        nonlocal count
        count += 1
        if count <= _SHOWN:
            text = shown(value)
            print(text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…", flush=True)

    try:
        values = look(address, data / "streams", secrets or data / FOLDER, limit_s, rows, show)
    except (AddressError, OSError) as error:
        print(f"skerry: {address}: {error}", file=sys.stderr)
        raise _left(1) from None
    except KeyboardInterrupt:
        raise _left(130) from None
    if not values:
        print(
            f"skerry: {address}: it is open, and nothing came in {run_for}: --for waits longer",
            file=sys.stderr,
        )
        raise _left(1)
    if count > _SHOWN:
        print(f"… {count} rows", flush=True)
    fields = proposed(values, format_of(address))
    if not fields:
        print(
            "skerry: no row is an object of JSON: where a line has cells, write format=csv", file=sys.stderr
        )
        raise _left(1)
    print()
    for statement in statements(address, fields, name):
        print(f"skerry query {for_shell(statement)}")
    numbers = [field.name for field in fields if field.type in ("INT", "DECIMAL", "DOUBLE")]
    if numbers:
        print(
            f"\nA unit stands behind the type, as in {numbers[0]} {_type(fields, numbers[0])} 'ppm': nobody can see it in the rows."
        )
    if not any(field.time for field in fields):
        print("No field is a time: a row's is when it comes.")
    raise _left(0)


def _left(code: int) -> typer.Exit:
    """Ends the process at once where a type's own method has not returned: its thread would keep the process for as long."""
    from skerry.sources.opening import still_running

    if still_running():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return typer.Exit(code)


def _type(fields: Sequence[Proposed], name: str) -> str:
    return next(field.type for field in fields if field.name == name)
