"""Secrets in addresses: ``mqtt://user:{secret:name}@host``. What stands for one is read when a source is opened, and is in nothing that
anybody is shown, nor in the log.

An operator's folder has a folder for each host that is told secrets, ``HOST`` or ``HOST:PORT``, and in it a file for each: so nobody who
makes a table can have one sent elsewhere. Only who runs the gateway may read them.
"""

from __future__ import annotations

import base64
import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote, urlsplit

from skerry.sources.stream_type import AddressError

#: The folder in the data directory, where nothing else is said.
FOLDER = "secrets"
_PLACE = re.compile(r"\{secret:([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_MOST_BYTES = 16 << 10
_ESCAPE = re.compile("%[0-9A-F]{2}")
#: Ports where an address names none.
_PORTS = {"http": 80, "https": 443, "mqtt": 1883, "mqtts": 8883}


@dataclass(frozen=True, slots=True)
class Filled:
    """An address with its secrets, ``secrets``: what stood for each, and itself."""

    address: str
    secrets: tuple[tuple[str, str], ...] = ()

    def hide(self, text: str) -> str:
        """A text without them, however they are written in addresses and in what libraries say."""
        ways = {way: place for place, secret in self.secrets for way in _ways(secret)}
        # Of one that is part of another, that one first.
        for way in sorted(ways, key=len, reverse=True):
            text = text.replace(way, ways[way])
        return text


def _ways(secret: str) -> set[str]:
    in_url = {quote(secret, safe=""), quote(secret), quote_plus(secret), quote_plus(secret, safe="/")}
    in_json = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    return {secret, repr(secret)[1:-1], *in_json, *in_url, *(_ESCAPE.sub(_lower, way) for way in in_url)}


def _lower(escape: re.Match[str]) -> str:
    return escape[0].lower()


def filled(address: str, folder: Path) -> Filled:
    """An address with the secrets that it names, as the operator keeps them in a folder. Raises AddressError."""
    if "{secret:" not in address:
        return Filled(address)
    for match in _PLACE.finditer(address):
        if not _NAME.fullmatch(match[1]):
            right = "a name has letters, digits, . _ and -, as in {secret:password}"
            raise AddressError(f"'{match[0]}' names no secret: {right}")
    url = urlsplit(address, allow_fragments=False)
    if "{secret" in url.scheme + url.netloc.rpartition("@")[2]:
        raise AddressError(
            "a secret may be a user's name, a password, an option's value or part of a path, but no host"
        )
    try:
        host, port = url.hostname or "", url.port or _PORTS.get(url.scheme.lower().rpartition("+")[2])
    except ValueError:
        raise AddressError(f"'{address}' names no port: it is a number up to 65535") from None
    if not host.strip("."):
        raise AddressError(f"a secret is told to a host, and '{address}' names none")
    host = f"[{host}]" if ":" in host else host
    found: dict[str, str] = {}
    for match in _PLACE.finditer(address):
        found[match[0]] = _read(folder, (f"{host}:{port}", host), match[1])
    who = url.netloc.rpartition("@")[0]
    if "{secret:" in who:
        # As it stands in headers of the web, which a server may send back.
        plain = unquote(_PLACE.sub(lambda match: quote(found[match[0]], safe=""), who))
        found[who] = base64.b64encode(plain.encode()).decode()
    filling = _PLACE.sub(lambda match: quote(found[match[0]], safe=""), address)
    return Filled(filling, tuple(found.items()))


def _read(folder: Path, hosts: tuple[str, ...], name: str) -> str:
    for host in hosts:
        try:
            file = os.open(folder / host / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise AddressError(f"secret '{name}' cannot be read: {error.strerror}") from None
        with os.fdopen(file, "rb") as opened:
            for place in (folder, folder / host):
                _check(name, place, place.stat(), stat.S_IWGRP | stat.S_IWOTH, "go-w")
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise AddressError(f"secret '{name}' is no file: {folder / host / name}")
            _check(name, folder / host / name, status, stat.S_IRWXG | stat.S_IRWXO, "go=")
            return _text(name, opened.read(_MOST_BYTES + 1))
    raise AddressError(
        f"there is no secret '{name}' for {hosts[0]}: the operator keeps it in {folder / hosts[0] / name}"
    )


def _check(name: str, path: Path, status: os.stat_result, others: int, right: str) -> None:
    if status.st_uid not in (os.geteuid(), 0):
        raise AddressError(
            f"secret '{name}' is not used: {path} belongs to neither root nor who runs the gateway"
        )
    if status.st_mode & others:
        raise AddressError(f"secret '{name}' is not used: others may reach {path}: chmod {right} {path}")


def _text(name: str, content: bytes) -> str:
    try:
        found = content.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        found = ""
    if not found or not found.isprintable() or len(content) > _MOST_BYTES:
        raise AddressError(
            f"secret '{name}' is not used: expected one line of text, of {_MOST_BYTES >> 10} KB at most"
        )
    return found
