"""What a client raises."""

from __future__ import annotations

import httpx


class GatewayError(RuntimeError):
    """The gateway is not there, or refused; the message says which and why."""


class ArgumentError(GatewayError, ValueError):
    """What was given cannot be sent to any gateway; one line."""


def reason(response: httpx.Response) -> str:
    """What a gateway says of a request that it refused."""
    try:
        body = response.json()
    except ValueError:
        return f"HTTP {response.status_code} {response.reason_phrase}".rstrip()
    if not isinstance(body, dict):
        return str(body)
    return str(body.get("text") or body.get("message") or body.get("detail") or body)
