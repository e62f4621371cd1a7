"""The Python client: ``skerry.connect().query("SELECT …")`` iterates over rows as they come."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx

from skerry.client import own_queries, surroundings
from skerry.client.errors import ArgumentError, GatewayError, reason
from skerry.client.rows import Rows

DEFAULT_URL = "http://127.0.0.1:8642"
#: A gateway that is there but says nothing for so long, in s, will not.
ANSWER_S = 60.0
#: A connection is there within so many seconds, or not at all.
CONNECT_S = 10.0
#: For so long, in s, nobody need read a query whose process was killed, or thinks.
LINGER_S = 3600.0
_BEFORE = r"(?:\s|--[^\n]*(?:\n|$))*"
_STOPS = re.compile(_BEFORE + r"(?:stop|drop(?!\s+(?:sensors|attribute|stream)\b))\b", re.IGNORECASE)
_SENSORS = re.compile(
    _BEFORE
    + r"(?:(?:create|alter|drop)\s+sensors|(?:create|drop)\s+(?:attribute|stream)|insert|update|delete|copy|show|describe)\b",
    re.IGNORECASE,
)


def stops(sql: str) -> bool:
    """Whether a statement stops queries: STOP QUERY, DROP ALL, DROP STORAGE POINT, DROP SRT, DROP INDEX."""
    return _STOPS.match(sql) is not None


def is_about_sensors(sql: str) -> bool:
    """Whether a statement makes, changes or shows a table of sensors that are no motes: CREATE SENSORS, INSERT, …"""
    return _SENSORS.match(sql) is not None


class Client:
    """A gateway's HTTP API. ``user``: who asks, and whose queries are seen and stopped; None: where the gateway asks for
    a token, that one's user, else anonymous, who sees and stops everybody's. Raises ArgumentError."""

    def __init__(self, url: str = DEFAULT_URL, user: str | None = None, token: str | None = None) -> None:
        self.url, self.user = url, user
        token = (token or "").strip()
        _check_url(url)
        _check_token(token)
        self._options: dict[str, Any] = {
            "base_url": url,
            "timeout": httpx.Timeout(CONNECT_S, read=ANSWER_S),
            # Each feed that is read is a connection. How many there may be is the gateway's to say.
            "limits": httpx.Limits(max_connections=None, max_keepalive_connections=20),
            "headers": {"Authorization": f"Bearer {token}"} if token else {},
            "params": {"user": user} if user else {},
            **surroundings.options(url),
        }
        self.http = httpx.Client(**self._options)

    def asynchronous(self) -> httpx.AsyncClient:
        """A connection of the same user that is asked asynchronously."""
        return httpx.AsyncClient(**self._options)

    def query(self, sql: str, linger_s: float | None = LINGER_S) -> Rows:
        """Ask. The query is stopped when this process ends, so that nothing of a script is left on the motes; where a process cannot
        say that it ends, once nobody has read its rows for ``linger_s``. None: it runs until somebody stops it.

        Raises GatewayError with the gateway's message when the query is wrong, and ArgumentError for what stops queries, which has no
        rows: that is :meth:`stop_by`'s.
        """
        if stops(sql):
            raise ArgumentError(f"{_short(sql)} stops queries and has no rows: nothing was done; use stop_by")
        if is_about_sensors(sql):
            raise ArgumentError(f"{_short(sql)} is no query: nothing was done; use execute")
        rows = Rows(self, self._request("POST", "/queries", json={"sql": sql, "linger_s": linger_s}))
        # What fills a storage point, or keeps a tree, has no rows, and stays.
        if linger_s is not None and rows.into is None and rows.srt is None:
            own_queries.add(self, rows.id)
        return rows

    def resume(self, query: str, after: int | None = None) -> Rows:
        """The rows of a query that was asked before, behind a position (:attr:`skerry.Rows.position`)."""
        return Rows(self, self.described(query), after)

    def described(self, query: str) -> dict[str, Any]:
        """A query as the gateway has it now. Raises GatewayError when there is none."""
        found = [entry for entry in self.queries() if entry["id"] == query]
        if not found:
            raise GatewayError(f"no query {query}: 'skerry list' shows those there are")
        return found[0]

    def queries(self) -> list[dict[str, Any]]:
        """The queries that the user may see."""
        found: list[dict[str, Any]] = self._request("GET", "/queries")
        return found

    def stop(self, query: str) -> dict[str, Any]:
        """Stop a query."""
        stopped: dict[str, Any] = self._request("DELETE", "/queries", query)
        own_queries.discard(self, query)
        return stopped

    def stop_by(self, sql: str) -> list[str]:
        """Ids of what STOP QUERY, DROP ALL, DROP STORAGE POINT or DROP SRT stops. Raises GatewayError; ArgumentError for any other
        statement, which is :meth:`query`'s."""
        if not stops(sql):
            raise ArgumentError(
                f"{_short(sql)} stops nothing: nothing was done; expected STOP QUERY n, DROP ALL, DROP STORAGE POINT name or "
                "DROP SRT name; use query for what is to run"
            )
        stopped: list[str] = self._request("POST", "/queries", json={"sql": sql})["stopped"]
        return stopped

    def execute(self, sql: str) -> dict[str, Any]:
        """Make, change or show a table of sensors that are no motes, or a stream made of others: CREATE SENSORS, INSERT, UPDATE, DELETE,
        COPY, ALTER SENSORS, DROP SENSORS, SHOW SENSORS, DESCRIBE, CREATE STREAM, DROP STREAM, SHOW STREAMS. ``done`` says what came of
        it, ``columns`` and ``rows`` are what is shown. Raises GatewayError; ArgumentError for any other statement."""
        if not is_about_sensors(sql):
            raise ArgumentError(f"{_short(sql)} changes no table of sensors: nothing was done; use query")
        done: dict[str, Any] = self._request("POST", "/queries", json={"sql": sql})
        return done

    def run(
        self,
        command: str,
        argument: int | None = None,
        mote: int | None = None,
        position: tuple[float, float] | None = None,
    ) -> dict[str, Any]:
        """Run a command on a mote, or on all; ``token`` of the answer is for :meth:`command`. ``position``: of set_position, in m."""
        how: dict[str, Any] = {"argument": argument, "mote": mote}
        if position is not None:
            how["position"] = list(position)
        sent: dict[str, Any] = self._request("POST", "/commands", command, json=how)
        return sent

    def command(self, token: int) -> dict[str, Any]:
        """A command that was sent, with ``answers`` by mote: ``done``, ``unknown op`` or ``bad argument``."""
        found: dict[str, Any] = self._request("GET", f"/commands/{token}")
        return found

    def ping(
        self,
        mote: int,
        to: int | None = None,
        within_s: int = 120,
        place: tuple[float, float] | None = None,
        by: Sequence[int] = (),
    ) -> dict[str, Any]:
        """Have a mote send a record to another one, to whoever stands nearest to a place (x, y in m), or by motes to the last of them,
        past the gateway; ``token`` of the answer is for :meth:`pinged`. With a mote and a place, the mote is gone to by where it stands,
        not by the tree."""
        asked = {"mote": mote, "to": to, "within_s": within_s, "place": place, "by": list(by)}
        sent: dict[str, Any] = self._request("POST", "/pings", json=asked)
        return sent

    def pinged(self, token: int) -> dict[str, Any]:
        """What became of it: ``outcome`` (None, ``arrived``, ``no way``, ``late``, ``no room``), ``hops``, ``took_s``, ``way``."""
        found: dict[str, Any] = self._request("GET", f"/pings/{token}")
        return found

    def search(self, attribute: str, low: int, high: int, mote: int | None = None) -> dict[str, Any]:
        """Have a mote, or else the root, search the network for motes whose static attribute is ``low`` to ``high``; ``token`` of the
        answer is for :meth:`searched`."""
        asked = {"attribute": attribute, "low": low, "high": high, "mote": mote}
        sent: dict[str, Any] = self._request("POST", "/searches", json=asked)
        return sent

    def searched(self, token: int) -> dict[str, Any]:
        """What it has ``found``, whether that is ``complete``, and the frames that it took."""
        found: dict[str, Any] = self._request("GET", f"/searches/{token}")
        return found

    def signal(self, event: str) -> list[str]:
        """Raise an event as if at the root; ids of the queries that it starts or stops."""
        queries: list[str] = self._request("POST", "/events", event)["queries"]
        return queries

    def motes(
        self,
        near: tuple[float, float] | None = None,
        within: float | None = None,
        has: Sequence[str] = (),
        tags: Mapping[str, str] | None = None,
    ) -> list[dict[str, Any]]:
        """The motes as they reported themselves: all, or those within so many m of a place, that have these attributes and tags."""
        params: dict[str, Any] = {"has": list(has), "tag": [f"{k}={v}" for k, v in (tags or {}).items()]}
        if near is not None:
            params |= {"x": near[0], "y": near[1]}
        if within is not None:
            params["within"] = within
        found: list[dict[str, Any]] = self._request("GET", "/motes", params=params)
        return found

    def substitutes(
        self, mote: int, has: Sequence[str] = (), count: int | None = None
    ) -> list[dict[str, Any]]:
        """Motes that could stand in for one, best first: ``nodeid``, ``distance`` in m, ``lacks``."""
        params: dict[str, Any] = {"has": list(has)} | ({} if count is None else {"count": count})
        found: list[dict[str, Any]] = self._request("GET", f"/motes/{mote}/substitutes", params=params)
        return found

    def tag(self, mote: int, /, **tags: str | None) -> dict[str, str]:
        """Set tags of a mote, take away those that are None; all it has then."""
        kept: dict[str, str] = self._request("PUT", f"/motes/{mote}/tags", json=tags)
        return kept

    def catalog(self) -> list[dict[str, Any]]:
        """The attributes."""
        found: list[dict[str, Any]] = self._request("GET", "/catalog")
        return found

    def select(self, sql: str) -> list[dict[str, Any]]:
        """A SELECT over the catalog: motes, attributes, events, commands, streams, queries, tags …"""
        return self.selected(sql)[1]

    def selected(self, sql: str) -> tuple[list[str], list[dict[str, Any]]]:
        """Its columns, which are there without rows too, and its rows. Of two columns of one name the second has ``:1`` behind it, as
        SQLite itself tells them apart."""
        found = self._request("GET", "/catalog", params={"sql": sql})
        columns = _distinct(found["columns"])
        return columns, [dict(zip(columns, row, strict=True)) for row in found["rows"]]

    def points(self) -> list[dict[str, Any]]:
        """The storage points."""
        found: list[dict[str, Any]] = self._request("GET", "/points")
        return found

    def status(self) -> dict[str, Any]:
        """Link, log, streams, users."""
        status: dict[str, Any] = self._request("GET", "/status")
        return status

    def tables(self) -> list[dict[str, Any]]:
        """The tables that streams can be joined with."""
        found: list[dict[str, Any]] = self._request("GET", "/tables")
        return found

    def compact(self) -> dict[str, Any]:
        """Bring the log into the files of the history now; what there is then."""
        done: dict[str, Any] = self._request("POST", "/history")
        return done

    def explain(self, sql: str) -> dict[str, Any]:
        """What would run where."""
        explained: dict[str, Any] = self._request("GET", "/explain", params={"sql": sql})
        return explained

    def _request(self, method: str, path: str, name: str | None = None, **arguments: Any) -> Any:
        """The answer to a request for a path, or for what has this name there."""
        if name == "":
            raise ArgumentError(
                "'' is no name: expected the id of a query, or the name of an event or a command"
            )
        try:
            whole = path if name is None else f"{path}/{quote(name, safe='')}"
            response = self.http.request(method, whole, **arguments)
        except UnicodeEncodeError as error:
            wrong = ascii(error.object[error.start : error.end])
            raise ArgumentError(f"{wrong} is half a character, or none: leave it out") from None
        except httpx.TransportError as error:
            if "certificate" in str(error).lower():
                raise GatewayError(
                    f"{self.url}: {error}; SSL_CERT_FILE names certificates to trust"
                ) from None
            if isinstance(error, httpx.ReadTimeout):
                raise GatewayError(f"{self.url}: no answer within {ANSWER_S:g} s") from None
            if isinstance(error, httpx.ConnectTimeout) and "handshake" in str(error):
                # Somebody listens: a gateway that starts, or that has too much to do.
                raise GatewayError(f"{self.url}: no TLS handshake within {CONNECT_S:g} s") from None
            raise GatewayError(
                f"no gateway at {self.url}: start one with 'skerry gateway --link …' or 'skerry up NETWORK.toml'"
                f"{surroundings.through(self.url)}"
            ) from None
        if response.has_redirect_location:
            raise GatewayError(f"{self.url}: it has moved: ask {response.headers['Location']}")
        if not response.is_success:
            # What no gateway says, a proxy does.
            answered = "application/json" in response.headers.get("Content-Type", "")
            raise GatewayError(f"{reason(response)}{'' if answered else surroundings.through(self.url)}")
        try:
            return response.json()
        except ValueError:
            raise GatewayError(
                f"{self.url}: what answers there is no gateway: expected JSON, not {response.text[:60]!r}"
            ) from None


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, each once."""
    found: list[str] = []
    for name in names:
        numbered = (f"{name}:{number}" for number in itertools.count(1))
        found.append(name if name not in found else next(one for one in numbered if one not in found))
    return found


def _check_url(url: str) -> None:
    """Raises ArgumentError for what is no URL of a gateway."""
    try:
        found = httpx.URL(url)
        good = found.scheme in ("http", "https") and bool(found.host) and (found.port or 1) < 65536
    except httpx.InvalidURL:
        good = False
    if not good:
        raise ArgumentError(f"gateway {url!r}: expected http://HOST:PORT or https://…, as in {DEFAULT_URL}")


def _check_token(token: str) -> None:
    """Raises ArgumentError, which does not name it, for what is no token."""
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ArgumentError(
            "the token has characters that no token has: expected printable ASCII without spaces, as 'skerry user add' tells it"
        )


def _short(sql: str) -> str:
    """The statement, or its beginning, on one line."""
    text = " ".join(sql.split())
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


def connect(url: str | None = None, user: str | None = None, token: str | None = None) -> Client:
    """A client of a gateway; nothing is sent yet. Without ``url`` or ``token``: those of SKERRY_URL and SKERRY_TOKEN.
    Raises ArgumentError."""
    return Client(
        url or os.environ.get("SKERRY_URL") or DEFAULT_URL,
        user,
        token or os.environ.get("SKERRY_TOKEN"),
    )
