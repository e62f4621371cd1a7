"""The Python client: ``skerry.connect().query("SELECT …")`` iterates over rows as they come."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterator
from typing import Any

import httpx

DEFAULT_URL = "http://127.0.0.1:8642"
#: Attempts to reach a gateway that went away while rows were read, a second apart.
RECONNECTS = 60


class GatewayError(RuntimeError):
    """The gateway is not there, or refused; the message says which and why."""


class Rows:
    """The rows of one query. Iterating reconnects and resumes where it was; each row comes once."""

    def __init__(self, client: Client, description: dict[str, Any]) -> None:
        self.id: str = description["id"]
        self.columns: list[dict[str, Any]] = description["columns"]
        #: The storage point on the motes that the rows go to: then none arrive here.
        self.into: str | None = description["into"]
        self._client = client
        self._last: str | None = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        failures = 0
        while True:
            try:
                for row in self._stream():
                    failures = 0
                    yield row
                return
            except (httpx.TransportError, ConnectionError):
                failures += 1
                if failures > RECONNECTS:
                    raise GatewayError(f"{self._client.url}: the gateway does not come back") from None
                time.sleep(1.0)

    def _stream(self) -> Iterator[dict[str, Any]]:
        headers = {} if self._last is None else {"Last-Event-ID": self._last}
        path = f"/queries/{self.id}/rows"
        with self._client.http.stream(
            "GET", path, headers=headers, timeout=httpx.Timeout(10, read=60)
        ) as response:
            if response.status_code != 200:
                response.read()
                raise GatewayError(_reason(response))
            event: dict[str, str] = {}
            for line in response.iter_lines():
                if line:
                    name, _, value = line.partition(":")
                    event[name] = value.strip()
                    continue
                if event.get("event") == "end":
                    return
                if event.get("event") == "dropped":
                    warnings.warn(json.loads(event["data"])["message"], stacklevel=3)
                if event.get("event") == "row":
                    self._last = event["id"]
                    yield json.loads(event["data"])
                event = {}
        raise ConnectionError("the stream ended without an end")

    def stop(self) -> None:
        """Stop the query."""
        self._client.stop(self.id)


class Client:
    """A gateway's HTTP API. ``user``: who asks, and whose queries are seen and stopped; None: where the gateway asks for
    a token, that one's user, else anonymous, who sees and stops everybody's."""

    def __init__(self, url: str = DEFAULT_URL, user: str | None = None, token: str | None = None) -> None:
        self.url, self.user = url, user
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.http = httpx.Client(
            base_url=url, timeout=10, headers=headers, params={"user": user} if user else {}
        )

    def query(self, sql: str) -> Rows:
        """Ask. Raises GatewayError with the gateway's message when the query is wrong."""
        return Rows(self, self._request("POST", "/queries", json={"sql": sql}))

    def resume(self, query: str, after: str | None = None) -> Rows:
        """The rows of a query that was asked before, behind an event's id."""
        found = [entry for entry in self.queries() if entry["id"] == query]
        if not found:
            raise GatewayError(f"no query {query}")
        rows = Rows(self, found[0])
        rows._last = after
        return rows

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
            raise GatewayError(_reason(response))
        return response.json()


def _reason(response: httpx.Response) -> str:
    try:
        body = response.json()
    except ValueError:
        return f"HTTP {response.status_code}"
    return str(body.get("text") or body.get("message") or body.get("detail") or body)


def connect(url: str | None = None, user: str | None = None, token: str | None = None) -> Client:
    """A client of a gateway; nothing is sent yet. Without ``url`` or ``token``: those of SKERRY_URL and SKERRY_TOKEN."""
    return Client(
        url or os.environ.get("SKERRY_URL") or DEFAULT_URL,
        user,
        token or os.environ.get("SKERRY_TOKEN"),
    )
