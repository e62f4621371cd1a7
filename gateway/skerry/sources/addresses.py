"""Which addresses sources may have: what the operator allows."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from skerry.sql.errors import did_you_mean

#: What is allowed where nothing is said: this machine, and files in the data directory's ``streams/``.
DEFAULT = ("loopback",)
#: Schemes whose addresses are files.
FILES = frozenset({"file", "replay", "folder", "serial"})


def address_of(values: Sequence[object], stream: int) -> str:
    """A tuple's address: its stream's value, or where that is empty the first text of the tuple that has :// in it; "" where none is."""
    own = values[stream]
    if isinstance(own, str) and own:
        return own
    return next((value for value in values if isinstance(value, str) and "://" in value), "")


def refusal(address: str, allowed: Sequence[str] | None, folder: Path) -> str | None:
    """Why an address may not be opened; None: it may. ``allowed``: ``loopback``, ``host``, ``scheme://host[:port]``, or a folder; None:
    anything that is an address."""
    try:
        url = urlsplit(address, allow_fragments=False)
        scheme, host, port = url.scheme.lower(), (url.hostname or "").lower(), url.port
    except ValueError:
        scheme = ""
    if not scheme:
        return (
            f"'{address}' is no address: write scheme://host:port" if address else "the tuple has no address"
        )
    if allowed is None:
        return None
    if scheme in FILES:
        return _file_refusal(Path(url.netloc + url.path), allowed, folder)
    if any(_allows(one, scheme, host, port) for one in allowed):
        return None
    if not host:
        return f"'{address}' names no host, and without one it is not allowed: write {scheme}://host:port"
    there = f"{scheme}://{url.netloc.rpartition('@')[2].lower()}"
    return f"the operator allows no {there}: 'skerry gateway --sources {there}' does"


def wrong(address: str, schemes: Collection[str], allowed: Sequence[str] | None, folder: Path) -> str | None:
    """Why it cannot be opened, as far as it says itself; None: nothing speaks against it. ``schemes``: of the types that there are; the
    others as of :func:`refusal`."""
    # Of a scheme that is misspelt an operator need not be asked.
    found = refusal(address, None, folder)
    if found is not None:
        return found
    scheme, known = urlsplit(address, allow_fragments=False).scheme.lower(), sorted(schemes)
    if scheme not in schemes:
        guess = did_you_mean(scheme, known)
        return f"there is no type of streams '{scheme}': {guess}there are {', '.join(known)}"
    return refusal(address, allowed, folder)


def check(allowed: Sequence[str]) -> None:
    """Raises ValueError where one is nothing that could be allowed."""
    for one in allowed:
        if not (one.startswith("/") or (_is_scheme(one) if "://" in one else _is_host(one))):
            raise ValueError(
                f"--sources '{one}' is none of loopback, a host, scheme://host[:port] and a folder, which begins with /"
            )


def _is_scheme(text: str) -> bool:
    try:
        found = urlsplit(text)
        return bool(found.scheme) and found.port != 0 and not found.path.strip("/")
    except ValueError:
        return False


def _is_host(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return bool(text) and not set(text) & set("/@:?[] ")


def _allows(one: str, scheme: str, host: str, port: int | None) -> bool:
    if one == "loopback":
        return is_loopback(host)
    if "://" not in one:
        return one.lower() == host
    may = urlsplit(one)
    return (may.scheme.lower(), (may.hostname or "").lower()) == (scheme, host) and may.port in (None, port)


def _file_refusal(path: Path, allowed: Sequence[str], folder: Path) -> str | None:
    try:
        real = (folder / path).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        # Of links in a circle Python says no more than that.
        why = "its links lead in a circle" if isinstance(error, RuntimeError) else error
        return f"'{path}' names no file: {why}"
    folders = [folder, *(Path(one) for one in allowed if one.startswith("/"))]
    if any(real.is_relative_to(one.resolve()) for one in folders):
        return None
    return f"the operator allows no files in {real.parent}: they lie in {folder}, or where 'skerry gateway --sources' says"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
