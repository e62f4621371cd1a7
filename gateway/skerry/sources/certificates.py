"""Which certificates sources trust that are asked over TLS, and what is said of one that is not to be trusted.

Those are the usual ones, or the file or directory that ``SSL_CERT_FILE`` or ``SSL_CERT_DIR`` in the gateway's environment names. None is
taken unchecked: what is told to a source, secrets among it, is for its host alone.
"""

from __future__ import annotations

import ssl

import httpx

from skerry.client import surroundings
from skerry.client.errors import ArgumentError
from skerry.sources.stream_type import AddressError


def trusted() -> ssl.SSLContext:
    """For a connection. Raises AddressError: the environment names none."""
    try:
        found = surroundings.certificates()
    except ArgumentError as error:
        raise AddressError(str(error)) from None
    return found if isinstance(found, ssl.SSLContext) else httpx.create_ssl_context()


def verifying(url: str) -> ssl.SSLContext | bool:
    """Likewise for httpx; of what is not encrypted there is nothing to verify. Raises AddressError."""
    return trusted() if httpx.URL(url).scheme == "https" else False


def distrust(error: BaseException, host: str) -> str | None:
    """What is wrong with a host's certificate, if a connection has failed for that."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            said = seen.verify_message.rstrip(".")
            return f"the certificate of {host} is not to be trusted: {said}; SSL_CERT_FILE names certificates to trust"
        if isinstance(seen, ssl.SSLError):
            said = (seen.reason or str(seen)).replace("_", " ").lower()
            return f"{host} does not speak TLS as is asked for: {said}"
        seen = seen.__cause__ or seen.__context__
    return None
