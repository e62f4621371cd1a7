"""What listens for users: the gateway's own server, and the processes beside it."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from skerry.api.access import Access, Limits
from skerry.api.app import create_app
from skerry.api.connection_limit import Crowded
from skerry.api.ending import Ending
from skerry.api.listening import Listening, bind, connections
from skerry.api.operator import OperatorDoor
from skerry.api.server import Server
from skerry.api.worker_door import WorkerDoor
from skerry.service.gateway import Gateway
from skerry.storage import operator_key

if TYPE_CHECKING:
    from skerry.serving.supervisor import ApiWorkerSupervisor


class Servers:
    """``listen``: where users come; ``count`` workers serve them there, none: the gateway does; ``tokens``: users are asked for one."""

    def __init__(self, listen: str, count: int, tls: dict[str, Any], *, tokens: bool) -> None:
        """Raises ValueError, OSError: it cannot be listened there."""
        self._listen, self._count, self._tokens, self._tls = listen, count, tokens, tls
        # Behind workers the gateway answers those alone, on this machine.
        own = "127.0.0.1:0" if count else listen
        self._bound: Listening = bind(own)
        self._workers: ApiWorkerSupervisor | None = None
        self._server: Server | None = None

    def prepare(self, daemon: Gateway, data: Path, limits: Limits, settings: dict[str, Any]) -> None:
        """For a gateway of a data directory. Raises ValueError, OSError."""
        key = operator_key.make(data)
        app = create_app(
            daemon.queries,
            daemon.delivery,
            daemon.site,
            Access(daemon.users, limits, open=not self._tokens),
            WorkerDoor(key, daemon.workers, daemon.queries),
            OperatorDoor(key, daemon.users),
        )
        application = Crowded(Ending(app), connections())
        own_tls = {} if self._count else self._tls
        config = uvicorn.Config(application, log_level="error", timeout_graceful_shutdown=1, **own_tls)
        config.load()
        self._server = Server(config)
        application.connections = self._server.server_state.connections
        if self._count:
            # Imported here: most gateways have none.
            from skerry.serving.process import Settings
            from skerry.serving.supervisor import ApiWorkerSupervisor

            own = f"http://127.0.0.1:{self._bound.getsockname()[1]}"
            self._workers = ApiWorkerSupervisor(
                self._listen,
                self._count,
                Settings(data, own, "api", guarded=self._tokens, tls=self._tls, **settings),
            )
            daemon.workers.started = self._workers.states

    def run(self) -> None:
        """Until Ctrl-C."""
        assert self._server is not None
        try:
            if self._workers is not None:
                self._workers.start()
            self._server.run(sockets=[self._bound])
        except KeyboardInterrupt:
            pass
        finally:
            if self._workers is not None:
                self._workers.stop()


def tls_options(certificate: Path | None, key: Path | None) -> dict[str, Any]:
    """What makes the server speak https; {} for http. Raises ValueError, OSError."""
    if certificate is None and key is None:
        return {}
    if certificate is None or key is None:
        raise ValueError("--tls-cert and --tls-key go together: give both, or neither for http")
    for option, file in (("--tls-cert", certificate), ("--tls-key", key)):
        try:
            file.open("rb").close()
        except OSError as error:
            raise OSError(f"{option} {file}: {error.strerror}") from None

    def encrypted() -> str:
        # Who starts a daemon is not there to type it in.
        raise ValueError(
            f"--tls-key {key}: it is encrypted: give one without a pass phrase, as 'openssl pkey -in {key} -out plain.pem' makes it"
        )

    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key, encrypted)
    except ssl.SSLError as error:
        reason = error.reason or "expected a certificate and a private key, both in PEM"
        raise ValueError(f"--tls-cert {certificate}, --tls-key {key}: {reason}") from None
    return {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
