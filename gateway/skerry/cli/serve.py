"""``skerry serve``: a process that serves readers for a gateway whose data directory it sees."""

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

#: So long a gateway may take to answer at the start, in s.
_ANSWER_S = 10.0


def serve(
    data: Annotated[Path, typer.Option(help="the gateway's data directory, as it is seen here")],
    gateway: Annotated[str, typer.Option(help="the gateway's HTTP API, as in http://gateway.example:8642")],
    listen: Annotated[
        str, typer.Option(help="address to serve at; any but loopback only where the gateway asks for tokens")
    ] = "127.0.0.1:8643",
    tls_cert: Annotated[
        Path | None, typer.Option(help="certificate in PEM, for https; needs --tls-key")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="its private key in PEM")] = None,
    extensions: Annotated[
        Path | None,
        typer.Option(help="the gateway's folder of built extensions, for queries that use them"),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="log what happens")] = False,
) -> None:
    """Serve readers of a gateway on this machine, until Ctrl-C: their rows come from its data directory; it answers all else."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from skerry.api.listening import bind, reaches_others
    from skerry.cli.servers import tls_options
    from skerry.client.errors import ArgumentError
    from skerry.serving.gateway_link import LinkError
    from skerry.serving.process import ApiWorkerProcess, Settings, log_to_stderr

    log_to_stderr(verbose=verbose)
    try:
        _check(data)
        bound, guarded = bind(listen), reaches_others(listen)
        tls = tls_options(tls_cert, tls_key)
        settings = Settings(data, gateway, f"{socket.gethostname()} {listen}", guarded, tls, extensions)
        worker = ApiWorkerProcess(settings)
        worker.link.start()
        worker.link.wait(_ANSWER_S)
    except (ArgumentError, LinkError, OSError, ValueError) as error:
        print(f"skerry: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    scheme = "https" if tls else "http"
    print(f"skerry: serving at {scheme}://{listen} for {gateway}", file=sys.stderr, flush=True)
    worker.serve(bound)


def _check(data: Path) -> None:
    """Raises OSError where a data directory is none, or cannot be read."""
    from skerry.storage import operator_key
    from skerry.storage.log import stream_log

    if not data.is_dir():
        raise OSError(f"--data {data}: there is no such directory")
    try:
        operator_key.read(data)
        list((data / stream_log.DIRECTORY).iterdir())
    except FileNotFoundError as error:
        raise OSError(
            f"--data {data}: it is no gateway's data directory, or one of an older skerry: there is no {Path(error.filename).name}"
        ) from None
    except PermissionError as error:
        raise OSError(
            f"{error.filename}: {error.strerror}: 'skerry serve' runs as the user that the gateway runs as"
        ) from None
