"""The process: puts a worker together, starts and ends it."""

from __future__ import annotations

import dataclasses
import json
import logging
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from skerry.api.access import Access, Limits
from skerry.api.connection_limit import Crowded
from skerry.api.ending import Ending
from skerry.api.listening import connections
from skerry.api.server import Server
from skerry.client import surroundings
from skerry.expressions import extension_aggregates
from skerry.planner.semantics import aggregate_functions, temporal_aggregates
from skerry.serving.app import Serving
from skerry.serving.forwarding import BrokenOffError, Forwarding
from skerry.serving.gateway_link import GatewayLink
from skerry.serving.worker import Worker
from skerry.storage import operator_key
from skerry.storage.state.published_users import PublishedUsers


@dataclass(frozen=True)
class Settings:
    """How a worker is started. ``gateway``: a URL; ``guarded``: it is to serve nobody where the gateway asks for no tokens; ``tls``: for
    uvicorn; ``name``: what the gateway's status calls it."""

    data: Path
    gateway: str
    name: str
    guarded: bool = False
    tls: dict[str, Any] = field(default_factory=dict)
    extensions: Path | None = None
    verbose: bool = False

    def text(self) -> str:
        """For a process that is started with them."""
        return json.dumps(dataclasses.asdict(self), default=str)

    @classmethod
    def of(cls, text: str) -> Settings:
        """What :meth:`text` said."""
        given = json.loads(text)
        paths = {name: Path(given[name]) for name in ("data", "extensions") if given[name]}
        return cls(**{**given, **paths})


class ApiWorkerProcess:
    """One worker. Raises OSError, ValueError where it cannot be."""

    def __init__(self, settings: Settings) -> None:
        if settings.extensions is not None:
            names = {*aggregate_functions.NAMES, *temporal_aggregates.NAMES}
            extension_aggregates.load(settings.extensions, names)
        # Whether tokens are asked for is the gateway's to say, and how much users may, for all workers together.
        access = Access(PublishedUsers(settings.data), Limits(), open=False)
        options = {"base_url": settings.gateway.rstrip("/"), **surroundings.options(settings.gateway)}
        self._worker = Worker(settings.data, access, guarded=settings.guarded, closed=self._closed)
        self.link = GatewayLink(
            options, operator_key.read(settings.data), settings.name, self._readers, self._worker.take, self._worker.lost
        )  # fmt: skip
        self._worker.away_s = lambda: self.link.away_s
        serving = Serving(self._worker, access, Forwarding(options), self.link.options)
        application = Crowded(Ending(serving), connections())
        config = uvicorn.Config(application, log_level="error", timeout_graceful_shutdown=1, **settings.tls)
        config.load()
        self._server = Server(config)
        application.connections = self._server.server_state.connections

    def _closed(self, query: str) -> None:
        self.link.closed(query)

    def _readers(self) -> dict[str, int]:
        self.link.forget_closed()
        return self._worker.readers()

    def serve(self, bound: socket.socket) -> None:
        """Until the process is told to end."""
        try:
            self._server.run(sockets=[bound])
        except KeyboardInterrupt:
            pass
        finally:
            self.link.stop()


def _is_unexpected(record: logging.LogRecord) -> bool:
    """The server has a traceback for each answer that breaks off because the gateway's did."""
    return record.exc_info is None or not isinstance(record.exc_info[1], BrokenOffError)


def log_to_stderr(*, verbose: bool = False) -> None:
    """As the gateway does."""
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format="skerry: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").addFilter(_is_unexpected)
