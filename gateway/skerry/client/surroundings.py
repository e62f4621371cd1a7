"""What the environment says about connections: proxies, and certificates to trust."""

from __future__ import annotations

import ipaddress
import os
import ssl
from pathlib import Path
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpx

from skerry.client.errors import ArgumentError

#: As OpenSSL reads them, and httpx.
_FILE, _DIRECTORY = "SSL_CERT_FILE", "SSL_CERT_DIR"


def options(url: str) -> dict[str, Any]:
    """For an httpx client of this gateway: which certificates it trusts, and through which proxy it goes. This machine is asked
    directly, whatever proxies there are for others. Raises ArgumentError, which names what is wrong."""
    found = httpx.URL(url)
    named = _checked(proxy(url))
    encrypted = found.scheme == "https" or (named is not None and named.startswith("https"))
    # The environment is read here, so that what is wrong in it is named; and only where something is encrypted.
    return {"trust_env": False, "verify": certificates() if encrypted else False, "proxy": named}


def proxy(url: str) -> str | None:
    """The proxy that the environment names for a gateway."""
    found = httpx.URL(url)
    if _is_loopback(found.host) or proxy_bypass(found.host):
        return None
    proxies = getproxies()
    named = proxies.get(found.scheme) or proxies.get("all")
    return named if named is None or "://" in named else f"http://{named}"


def through(url: str) -> str:
    """The same for the end of a message: a gateway that is not reached may be there all the same."""
    named = proxy(url)
    return (
        ""
        if named is None
        else f" (asked through the proxy {_shown(named)} of the environment; NO_PROXY names hosts to ask directly)"
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def certificates() -> ssl.SSLContext | bool:
    """Those to trust: what the environment names, else the usual ones. Raises ArgumentError."""
    file, directory = os.environ.get(_FILE), os.environ.get(_DIRECTORY)
    for name, value, kind, there in (
        (_FILE, file, "file", Path.is_file), (_DIRECTORY, directory, "directory", Path.is_dir)
    ):  # fmt: skip
        if value and not there(Path(value)):
            raise ArgumentError(
                f"{name} is {value!r}, and there is no such {kind}: name one of certificates (PEM), or unset it"
            )
    if not file and not directory:
        return True
    try:
        return ssl.create_default_context(cafile=file or None, capath=directory or None)
    except (ssl.SSLError, OSError) as error:
        said = getattr(error, "strerror", None) or error
        raise ArgumentError(
            f"{_FILE} is {file!r}: {said}: name a file of certificates (PEM), or unset it"
        ) from None


def _checked(named: str | None) -> str | None:
    if named is None:
        return None
    try:
        httpx.Proxy(named)
        scheme = httpx.URL(named).scheme
    except (ValueError, httpx.InvalidURL):
        scheme = ""
    if scheme not in ("http", "https"):
        raise ArgumentError(
            f"the environment's proxy is {_shown(named)}: expected http://HOST:PORT; NO_PROXY names hosts to ask directly"
        )
    return named


def _shown(named: str) -> str:
    """Without the password that may stand in it."""
    before, at, host = named.rpartition("@")
    return f"{before.partition('://')[0]}://…@{host}" if at else named
