"""Who may ask, and how much: tokens of users, requests a second, queries at a time."""

from __future__ import annotations

import ipaddress
import math
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from skerry.api.tokens import digest

#: A user may do as many requests at once as in so many seconds.
BURST_S = 2.0
#: When a user with as many queries as he may have shall try again, in s, should he stop none himself.
QUERIES_RETRY_S = 60
#: Feeds that a user may read at once, for each query that he may have; and when one with more shall try again, in s.
FEEDS_PER_QUERY = 2
FEEDS_RETRY_S = 5

_NOT_HIS = "the request is {0}'s: leave the user out, or ask as {1} with his own token"


class AccessError(RuntimeError):
    """A request that is not allowed, with its HTTP status and headers."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers or {}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a user may: ``queries`` at a time, finished ones included, and ``rate`` requests a second; None: any number."""

    queries: int | None = None
    rate: float | None = None


#: Where tokens are asked for and nothing else is said.
DEFAULT_LIMITS = Limits(queries=100, rate=20.0)


class Users(Protocol):
    """Who there is: :class:`skerry.service.user_service.UserService`, and of processes that serve readers
    :class:`skerry.storage.state.published_users.PublishedUsers`."""

    def of(self, digest: bytes) -> str | None: ...


class RateLimit:
    """Requests of each user: a bucket that fills at ``rate`` a second and holds :data:`BURST_S` of it."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._size = max(1.0, (rate or 0.0) * BURST_S)
        self._buckets: dict[str, tuple[float, float]] = {}
        self._swept = 0.0
        self._lock = threading.Lock()

    def take(self, user: str, now: float) -> None:
        """One request at ``now`` (s, monotonic). AccessError 429: too many."""
        if self._rate is None:
            return
        with self._lock:
            if now - self._swept >= BURST_S:
                # Without tokens names cost nothing. A bucket that is full says no more than none.
                self._swept = now
                self._buckets = {
                    name: (level, at)
                    for name, (level, at) in self._buckets.items()
                    if level + (now - at) * self._rate < self._size
                }
            level, at = self._buckets.get(user, (self._size, now))
            level = min(self._size, level + (now - at) * self._rate)
            if level >= 1:
                self._buckets[user] = (level - 1, now)
                return
            self._buckets[user] = (level, now)
        wait = math.ceil((1 - level) / self._rate)
        raise AccessError(
            429,
            f"{user} may do {self._rate:g} requests a second: try again in {wait} s",
            {"Retry-After": str(wait)},
        )


@dataclass(frozen=True, slots=True)
class Caller:
    """Who does a request. ``user`` None: nobody said, on a gateway without tokens, where he may see everything."""

    user: str | None

    @property
    def name(self) -> str:
        """Under which he asks."""
        return self.user or "anonymous"


class Access:
    """Decides about requests. Where it is ``open`` no token is asked for: everybody is who he says he is. It may become otherwise."""

    def __init__(
        self, users: Users | None = None, limits: Limits | None = None, *, open: bool = True
    ) -> None:
        self._users, self.open = users, open
        self.limits = limits or (Limits() if open else DEFAULT_LIMITS)
        self._rate = RateLimit(self.limits.rate)

    def admit(self, authorization: str | None, named: str | None, host: str | None) -> Caller:
        """Who does a request, by its headers and the user it names. Raises AccessError."""
        caller = self.known(authorization, named, host)
        self.take(caller)
        return caller

    def take(self, caller: Caller) -> None:
        """One request more of somebody whom another process has admitted. Raises AccessError."""
        self._rate.take(caller.name, time.monotonic())

    def known(self, authorization: str | None, named: str | None, host: str | None) -> Caller:
        """As :meth:`admit`, whatever the rate."""
        return self._said(named, host) if self.open else self._known(authorization, named)

    def refusal(self, caller: Caller, authorization: str | None) -> str | None:
        """Why who was admitted by this header would not be again, but for his rate: his token has been taken away; None: he would."""
        if self.open or self._user((authorization or "").partition(" ")[2]) == caller.user:
            return None
        return f"the gateway does not know this token any more: {caller.user} was removed, or has a new one"

    def named(self, caller: Caller, user: str | None) -> Caller:
        """The caller, where he names himself once more. AccessError 403: as another."""
        if not user or user == caller.user:
            return caller
        if not self.open or caller.user is not None:
            raise AccessError(403, _NOT_HIS.format(caller.user, user))
        return Caller(user)

    def _said(self, named: str | None, host: str | None) -> Caller:
        # A page in a browser on this machine may reach us under a name of its own that leads to loopback.
        if host is not None and not is_loopback(split_address(host)[0]):
            raise AccessError(421, f"Host {host}: without tokens the gateway answers to loopback names only")
        return Caller(named or None)

    def _known(self, authorization: str | None, named: str | None) -> Caller:
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise AccessError(
                401, "no token: set SKERRY_TOKEN, or send 'Authorization: Bearer …'", {"WWW-Authenticate": "Bearer"}
            )  # fmt: skip
        user = self._user(token)
        if user is None:
            raise AccessError(
                401,
                "the gateway does not know this token: 'skerry user add' and 'skerry user renew' give one",
                {"WWW-Authenticate": 'Bearer error="invalid_token"'},
            )
        if named and named != user:
            raise AccessError(403, _NOT_HIS.format(user, named))
        return Caller(user)

    def _user(self, token: str) -> str | None:
        # What is looked for is a digest, which nobody chooses: how long that takes tells nothing of tokens.
        return None if self._users is None else self._users.of(digest(token.strip()))

    def check_queries(self, caller: Caller, running: int) -> None:
        """Whether a user who has ``running`` queries may ask another. AccessError 429: no."""
        if self.limits.queries is not None and running >= self.limits.queries:
            raise AccessError(
                429,
                f"{caller.name} has {running} queries, and {self.limits.queries} is the most for a user: stop one "
                "('skerry list' shows them; finished ones count until they are stopped)",
                {"Retry-After": str(QUERIES_RETRY_S)},
            )

    def check_feeds(self, caller: Caller, count: Callable[[], int]) -> None:
        """Whether a user who reads ``count()`` feeds may open another. AccessError 429: no."""
        most = None if self.limits.queries is None else FEEDS_PER_QUERY * self.limits.queries
        # Not counted where it does not matter: there may be ten thousand.
        if most is not None and (running := count()) >= most:
            raise AccessError(
                429,
                f"{caller.name} reads {running} feeds at once, and {most} is the most for a user: close one",
                {"Retry-After": str(FEEDS_RETRY_S)},
            )


def split_address(address: str) -> tuple[str, str]:
    """Host without brackets, and port ("" without), of HOST:PORT or [HOST]:PORT."""
    found = re.fullmatch(r"\[([^]]*)](?::(.*))?", address)
    if found:
        return found[1], found[2] or ""
    host, colon, port = address.rpartition(":")
    return (host, port) if colon else (address, "")


def is_loopback(host: str) -> bool:
    """Whether an address, or the name localhost, is this machine's alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
