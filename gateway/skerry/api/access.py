"""Who may ask, and how much: tokens of users, requests a second, queries at a time."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import math
import re
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

#: Shorter tokens could be guessed.
TOKEN_LEAST = 20
#: The token file is looked at again after so long, in s: a user who is taken out of it is out.
REREAD_S = 1.0
#: A user may do as many requests at once as in so many seconds.
BURST_S = 2.0
#: When a user with as many queries as he may have shall try again, in s, should he stop none himself.
QUERIES_RETRY_S = 60
#: Feeds that a user may read at once, for each query that he may have; and when one with more shall try again, in s.
FEEDS_PER_QUERY = 2
FEEDS_RETRY_S = 5

_NOT_HIS = "the request is {0}'s: leave the user out, or ask as {1} with his own token"
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}")


class TokenFileError(RuntimeError):
    """The token file cannot be used; one line, which never contains a token."""


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


def new_token() -> str:
    """A token nobody guesses: 256 random bits."""
    return secrets.token_urlsafe(32)


def token_line(user: str) -> str:
    """A line for a token file, with a new token. Raises ValueError for a user that no such line can have."""
    if not _USER.fullmatch(user):
        raise ValueError(
            f"{user!r}: expected 1 to 64 letters, digits and _ . @ -, of which . @ - do not begin it"
        )
    return f"{user}: {new_token()}"


class Tokens:
    """The users of a token file, lines ``user: token``; ``#`` begins a comment, a user may have several.

    Only keyed digests are kept; one is found by its beginning and compared in constant time, so that how long a
    request takes tells nothing about tokens.
    """

    def __init__(self, path: Path) -> None:
        """Raises TokenFileError."""
        self._path = path
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._looked = time.monotonic()
        self._stamp = self._stat()
        self._users = self._read()
        #: Why the file cannot be read now.
        self._trouble: str | None = None

    def user(self, token: str) -> str | None:
        """Whose token it is; None: nobody's."""
        self._refresh()
        digest = self._digest(token)
        known, user = self._users.get(digest[:8], (b"", ""))
        return user if hmac.compare_digest(known, digest) else None

    def _digest(self, token: str) -> bytes:
        return hmac.digest(self._key, token.encode(), hashlib.sha256)

    def _refresh(self) -> None:
        with self._lock:
            if time.monotonic() - self._looked < REREAD_S:
                return
            self._looked = time.monotonic()
            try:
                stamp = self._stat()
                if stamp != self._stamp:
                    self._users, self._stamp = self._read(), stamp
                    log.log(
                        logging.WARNING if self._trouble else logging.INFO,
                        "token file %s read again",
                        self._path,
                    )
                    self._trouble = None
            except TokenFileError as error:
                # Once, not each time that it is looked at.
                if str(error) != self._trouble:
                    log.error("%s; the tokens read before stay", error)
                self._trouble, self._stamp = str(error), (0, 0, 0)

    def _stat(self) -> tuple[int, int, int]:
        try:
            found = self._path.stat()
        except OSError as error:
            raise TokenFileError(f"token file {self._path}: {error.strerror}") from None
        if found.st_mode & 0o007:
            raise TokenFileError(f"token file {self._path}: everybody may read it: chmod o-rwx {self._path}")
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read(self) -> dict[bytes, tuple[bytes, str]]:
        try:
            lines = self._path.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise TokenFileError(f"token file {self._path}: {reason}") from None
        users: dict[bytes, tuple[bytes, str]] = {}
        for number, line in enumerate(lines, start=1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            user, colon, token = (part.strip() for part in line.partition(":"))
            self._check(number, user, bool(colon), token)
            digest = self._digest(token)
            if digest[:8] in users:
                raise TokenFileError(
                    f"token file {self._path}, line {number}: the token is {users[digest[:8]][1]}'s already"
                )
            users[digest[:8]] = (digest, user)
        if not users:
            raise TokenFileError(
                f"token file {self._path}: no line 'user: token' in it; 'skerry token USER' makes one"
            )
        return users

    def _check(self, number: int, user: str, colon: bool, token: str) -> None:
        where = f"token file {self._path}, line {number}"
        if not colon or not _USER.fullmatch(user):
            raise TokenFileError(f"{where}: expected 'user: token', the user of letters, digits and _ . @ -")
        if len(token) < TOKEN_LEAST or not token.isascii() or not token.isprintable() or " " in token:
            raise TokenFileError(
                f"{where}: {user}'s token is not {TOKEN_LEAST} or more printable characters without spaces; "
                "'skerry token USER' makes one"
            )


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
    """Decides about requests. Without tokens everybody is who he says he is."""

    def __init__(self, tokens: Tokens | None = None, limits: Limits | None = None) -> None:
        self._tokens = tokens
        self.limits = limits or (DEFAULT_LIMITS if tokens else Limits())
        self._rate = RateLimit(self.limits.rate)

    @property
    def open(self) -> bool:
        """Whether no token is asked for."""
        return self._tokens is None

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
        return self._open(named, host) if self._tokens is None else self._known(authorization, named)

    def refusal(self, caller: Caller, authorization: str | None) -> str | None:
        """Why who was admitted by this header would not be again, but for his rate: his token has been taken away; None: he would."""
        if self._tokens is None:
            return None
        if self._tokens.user((authorization or "").partition(" ")[2].strip()) == caller.user:
            return None
        return f"the gateway does not know this token any more: it was taken out of its token file, or is no longer {caller.user}'s"

    def named(self, caller: Caller, user: str | None) -> Caller:
        """The caller, where he names himself once more. AccessError 403: as another."""
        if not user or user == caller.user:
            return caller
        if self._tokens is not None or caller.user is not None:
            raise AccessError(403, _NOT_HIS.format(caller.user, user))
        return Caller(user)

    def _open(self, named: str | None, host: str | None) -> Caller:
        # A page in a browser on this machine may reach us under a name of its own that leads to loopback.
        if host is not None and not is_loopback(split_address(host)[0]):
            raise AccessError(421, f"Host {host}: without tokens the gateway answers to loopback names only")
        return Caller(named or None)

    def _known(self, authorization: str | None, named: str | None) -> Caller:
        assert self._tokens is not None
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise AccessError(
                401, "no token: set SKERRY_TOKEN, or send 'Authorization: Bearer …'", {"WWW-Authenticate": "Bearer"}
            )  # fmt: skip
        user = self._tokens.user(token.strip())
        if user is None:
            raise AccessError(
                401,
                "the gateway does not know this token: is it in its token file?",
                {"WWW-Authenticate": 'Bearer error="invalid_token"'},
            )
        if named and named != user:
            raise AccessError(403, _NOT_HIS.format(user, named))
        return Caller(user)

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
