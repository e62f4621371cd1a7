"""``skerry gateway``: the daemon."""

from __future__ import annotations

import logging
import os
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer


def _default_data() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if state else Path.home() / ".local" / "state") / "skerry"


def gateway(
    link: Annotated[str, typer.Option(help="serial device of the root mote, or socket://host:port")],
    data: Annotated[
        Path | None, typer.Option(help="data directory; default: skerry in the XDG state directory")
    ] = None,
    listen: Annotated[str, typer.Option(help="address of the HTTP API")] = "127.0.0.1:8642",
    master: Annotated[str, typer.Option(help="Spark master")] = "local[2]",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="log what happens")] = False,
) -> None:
    """Serve the motes behind a root mote to any number of users, until Ctrl-C."""
    # Imported here: the other commands start without Spark.
    import uvicorn

    from skerry.api.app import create_app
    from skerry.daemon import Gateway
    from skerry.link.link import PortError
    from skerry.state import DataError

    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format="skerry: %(message)s")
    logging.getLogger("py4j").setLevel(logging.ERROR)
    try:
        server_socket = _bind(listen)
        daemon = Gateway(link, data or _default_data(), master)
        daemon.start()
    except (DataError, PortError, OSError, ValueError) as error:
        print(f"skerry: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    print(f"skerry: gateway at http://{listen}, link {link}", file=sys.stderr, flush=True)
    config = uvicorn.Config(create_app(daemon), log_level="error", timeout_graceful_shutdown=1)
    try:
        uvicorn.Server(config).run(sockets=[server_socket])
    except KeyboardInterrupt:
        pass
    finally:
        daemon.close()


def _bind(listen: str) -> socket.socket:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"--listen {listen}: expected HOST:PORT, as in 127.0.0.1:8642")
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, int(port)))
    except OSError as error:
        raise OSError(f"--listen {listen}: {error.strerror}") from None
    return bound
