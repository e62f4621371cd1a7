"""``skerry gateway``: the daemon."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from skerry.storage.history.retention import GIGABYTE, KEEP_MAXIMUM, Retention


def default_data() -> Path:
    """The data directory where nothing is said. Raises OSError."""
    state = os.environ.get("XDG_STATE_HOME", "")
    try:
        return (Path(state) if state else Path.home() / ".local" / "state") / "skerry"
    except RuntimeError:
        raise OSError(
            f"user {os.getuid()} has no home directory: say where to keep everything, with --data"
        ) from None


def gateway(
    link: Annotated[
        list[str] | None,
        typer.Option(
            help="serial device of a root mote, or socket://host:port; several: --link A --link B; none: only streams that are no motes'"
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="data directory; default: skerry in the XDG state directory")
    ] = None,
    listen: Annotated[
        str, typer.Option(help="address of the HTTP API; anywhere but on loopback it asks for tokens")
    ] = "127.0.0.1:8642",
    tokens: Annotated[
        bool,
        typer.Option("--tokens", help="ask users for tokens on loopback, too: 'skerry user add' gives them"),
    ] = False,
    user_queries: Annotated[
        int | None, typer.Option(min=1, help="queries of a user at most; with tokens 100, else any number")
    ] = None,
    user_rate: Annotated[
        float | None,
        typer.Option(min=0.1, help="requests of a user a second; with tokens 20, else any number"),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(help="certificate in PEM, for https; needs --tls-key")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="its private key in PEM")] = None,
    tables: Annotated[
        Path | None,
        typer.Option(
            help="directory of CSV, Parquet and SQLite files to join with; default: tables in --data"
        ),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option(
            help="what streams that are no motes' may open: loopback (the default), a host, scheme://host[:port], or a folder; several: "
            "--sources A --sources B"
        ),
    ] = None,
    secrets: Annotated[
        Path | None,
        typer.Option(
            help="folder of secrets that addresses of streams may name: HOST[:PORT]/NAME, for who runs the gateway alone; default: "
            "secrets in --data"
        ),
    ] = None,
    keep_days: Annotated[
        float, typer.Option(min=1, max=KEEP_MAXIMUM, help="days that the history's files are kept")
    ] = Retention.history_days,
    keep_gb: Annotated[
        float,
        typer.Option(min=0.001, max=KEEP_MAXIMUM, help="GB of them at most; the oldest days go first"),
    ] = Retention.history_bytes / GIGABYTE,
    keep_log_days: Annotated[
        float,
        typer.Option(min=0, max=KEEP_MAXIMUM, help="days for which feeds can be resumed from the log"),
    ] = Retention.log_days,
    keep_log_gb: Annotated[
        float,
        typer.Option(
            min=0.001,
            max=KEEP_MAXIMUM,
            help="GB of log at most, of rows that have been compacted and delivered",
        ),
    ] = Retention.log_bytes / GIGABYTE,
    backlog: Annotated[
        int,
        typer.Option(min=1, help="rows of the log that a slow reader may be behind before some are dropped"),
    ] = 10_000_000,
    master: Annotated[
        str,
        typer.Option(help="Spark master: local[N], spark://HOST:PORT[,HOST:PORT], yarn or k8s://HOST:PORT"),
    ] = "local[2]",
    attribute: Annotated[
        list[str] | None,
        typer.Option(help="static attribute that motes were given values of, in the order of their places"),
    ] = None,
    extensions: Annotated[
        Path | None,
        typer.Option(
            help="folder of built extensions: build/firmware/extensions after make firmware EXTENSIONS=…"
        ),
    ] = None,
    api_workers: Annotated[
        int,
        typer.Option(
            min=0, max=64, help="processes that serve readers at --listen; 0: the gateway's own does"
        ),
    ] = 0,
    alarm_after: Annotated[
        float,
        typer.Option(min=1, max=86_400, help="rows that wait for Spark for so long, in s, are an alarm"),
    ] = 60.0,
    speed: Annotated[
        float,
        typer.Option(min=0.001, max=1000, help="seconds of network time in one of yours, of emulated motes"),
    ] = 1.0,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="log what happens")] = False,
) -> None:
    """Serve the motes behind a root mote to any number of users, until Ctrl-C."""
    # Who stops a service sends this: it ends as by Ctrl-C, Spark and the log in order, also while it starts.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Imported here: the other commands start without Spark.
    from skerry.api.access import DEFAULT_LIMITS, Limits
    from skerry.api.listening import reaches_others
    from skerry.built_library import LibraryError
    from skerry.cli.servers import Servers, tls_options
    from skerry.expressions import aggregate_code, extension_aggregates
    from skerry.network.link.link import PortError
    from skerry.planner.semantics import aggregate_functions, temporal_aggregates
    from skerry.service.gateway import Gateway
    from skerry.sources import addresses
    from skerry.spark.master import check_master
    from skerry.storage.state import DataError

    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format="skerry: %(message)s")
    logging.getLogger("py4j").setLevel(logging.ERROR)
    links = link or []
    try:
        if len(set(links)) < len(links):
            raise ValueError(
                f"--link {max(links, key=links.count)} is given twice: each root has a line of its own"
            )
        check_master(master)
        aggregate_code.check()
        if extensions is not None:
            extension_aggregates.load(extensions, {*aggregate_functions.NAMES, *temporal_aggregates.NAMES})
        tokens = tokens or reaches_others(listen)
        default = DEFAULT_LIMITS if tokens else Limits()
        limits = Limits(user_queries or default.queries, user_rate or default.rate)
        tls = tls_options(tls_cert, tls_key)
        servers = Servers(listen, api_workers, tls, tokens=tokens)
        retention = Retention(keep_days, int(keep_gb * GIGABYTE), keep_log_days, int(keep_log_gb * GIGABYTE))
        data = data or default_data()
        allowed = sources or addresses.DEFAULT
        addresses.check(allowed)
        daemon = Gateway(
            links, data, master, retention, backlog, tables, speed, allowed, secrets, spark_ahead=True,
            stalled_s=alarm_after,
        )  # fmt: skip
        settings = {"extensions": extensions, "verbose": verbose}
        daemon.inventory.attributes.expect(attribute or (), "anonymous")
        servers.prepare(daemon, data, limits, settings)
        daemon.start()
    except (LibraryError, DataError, PortError, OSError, ValueError) as error:
        print(f"skerry: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    scheme = "https" if tls else "http"
    print(
        f"skerry: gateway at {scheme}://{listen}, {'link ' + ', '.join(links) if links else 'no motes'}",
        file=sys.stderr,
        flush=True,
    )
    if tokens and not daemon.users.all():
        print(
            f"skerry: nobody may ask yet: on this machine 'skerry user add NAME --data {data}' adds a user",
            file=sys.stderr,
            flush=True,
        )
    try:
        servers.run()
    finally:
        daemon.close()
