"""The Python client: ``skerry.connect().query("SELECT …")`` iterates over rows as they come."""

from __future__ import annotations

import os
from typing import Any

import httpx

from skerry.errors import GatewayError, reason
from skerry.rows import Rows

DEFAULT_URL = "http://127.0.0.1:8642"


class Client:
    """A gateway's HTTP API. ``user``: who asks, and whose queries are seen and stopped; None: where the gateway asks for
    a token, that one's user, else anonymous, who sees and stops everybody's."""

    def __init__(self, url: str = DEFAULT_URL, user: str | None = None, token: str | None = None) -> None:
        self.url, self.user = url, user
        self._options: dict[str, Any] = {
            "base_url": url,
            "timeout": 10,
            "headers": {"Authorization": f"Bearer {token}"} if token else {},
            "params": {"user": user} if user else {},
        }
        self.http = httpx.Client(**self._options)

    def asynchronous(self) -> httpx.AsyncClient:
        """A connection of the same user that is asked asynchronously."""
        return httpx.AsyncClient(**self._options)

    def query(self, sql: str, linger_s: float | None = None) -> Rows:
        """Ask. ``linger_s``: the query is stopped once nobody has read it for so long; None: it runs until somebody stops it.

        Raises GatewayError with the gateway's message when the query is wrong.
        """
        return Rows(self, self._request("POST", "/queries", json={"sql": sql, "linger_s": linger_s}))

    def resume(self, query: str, after: int | None = None) -> Rows:
        """The rows of a query that was asked before, behind a position (:attr:`skerry.Rows.position`)."""
        found = [entry for entry in self.queries() if entry["id"] == query]
        if not found:
            raise GatewayError(f"no query {query}")
        return Rows(self, found[0], after)

    def queries(self) -> list[dict[str, Any]]:
        """The queries that the user may see."""
        found: list[dict[str, Any]] = self._request("GET", "/queries")
        return found

    def stop(self, query: str) -> dict[str, Any]:
        """Stop a query."""
        stopped: dict[str, Any] = self._request("DELETE", f"/queries/{query}")
        return stopped

    def stop_by(self, sql: str) -> list[str]:
        """Ids of what STOP QUERY, DROP ALL or DROP STORAGE POINT stops."""
        stopped: list[str] = self._request("POST", "/queries", json={"sql": sql})["stopped"]
        return stopped

    def run(self, command: str, argument: int | None = None, mote: int | None = None) -> dict[str, Any]:
        """Run a command on a mote, or on all; ``token`` of the answer is for :meth:`command`."""
        sent: dict[str, Any] = self._request(
            "POST", f"/commands/{command}", json={"argument": argument, "mote": mote}
        )
        return sent

    def command(self, token: int) -> dict[str, Any]:
        """A command that was sent, with ``answers`` by mote: ``done``, ``unknown op`` or ``bad argument``."""
        found: dict[str, Any] = self._request("GET", f"/commands/{token}")
        return found

    def signal(self, event: str) -> list[str]:
        """Raise an event as if at the root; ids of the queries that it starts or stops."""
        queries: list[str] = self._request("POST", f"/events/{event}")["queries"]
        return queries

    def motes(self) -> list[dict[str, Any]]:
        """The motes as they reported themselves."""
        found: list[dict[str, Any]] = self._request("GET", "/motes")
        return found

    def catalog(self) -> list[dict[str, Any]]:
        """The attributes."""
        found: list[dict[str, Any]] = self._request("GET", "/catalog")
        return found

    def points(self) -> list[dict[str, Any]]:
        """The storage points."""
        found: list[dict[str, Any]] = self._request("GET", "/points")
        return found

    def status(self) -> dict[str, Any]:
        """Link, log, streams, users."""
        status: dict[str, Any] = self._request("GET", "/status")
        return status

    def compact(self) -> dict[str, Any]:
        """Bring the log into the files of the history now; what there is then."""
        done: dict[str, Any] = self._request("POST", "/history")
        return done

    def explain(self, sql: str) -> dict[str, Any]:
        """What would run where."""
        explained: dict[str, Any] = self._request("GET", "/explain", params={"sql": sql})
        return explained

    def _request(self, method: str, path: str, **arguments: Any) -> Any:
        try:
            response = self.http.request(method, path, **arguments)
        except httpx.TransportError as error:
            if "certificate" in str(error).lower():
                raise GatewayError(
                    f"{self.url}: {error}; SSL_CERT_FILE names certificates to trust"
                ) from None
            raise GatewayError(
                f"no gateway at {self.url}: start one with 'skerry gateway --link …' or 'skerry up NETWORK.toml'"
            ) from None
        if response.is_error:
            raise GatewayError(reason(response))
        return response.json()


def connect(url: str | None = None, user: str | None = None, token: str | None = None) -> Client:
    """A client of a gateway; nothing is sent yet. Without ``url`` or ``token``: those of SKERRY_URL and SKERRY_TOKEN."""
    return Client(
        url or os.environ.get("SKERRY_URL") or DEFAULT_URL,
        user,
        token or os.environ.get("SKERRY_TOKEN"),
    )
