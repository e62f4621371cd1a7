"""The client of who runs a gateway, who adds and removes its users."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from skerry.client.client import DEFAULT_URL, Client

KEY_HEADER = "X-Skerry-Operator-Key"


class Operator(Client):
    """Shows the key of the gateway's data directory. Raises ArgumentError."""

    def __init__(self, url: str = DEFAULT_URL, key: str = "") -> None:
        """``key``: what ``operator.key`` in the data directory holds."""
        super().__init__(url)
        self.http.headers[KEY_HEADER] = key

    def users(self) -> list[dict[str, Any]]:
        """Who may ask where tokens are asked for: ``name``, and ``added``, UTC in s."""
        found: list[dict[str, Any]] = self._request("GET", "/users")
        return found

    def add_users(self, *names: str) -> dict[str, Any]:
        """``tokens`` by name, which are told this once; ``asked``: whether the gateway asks for tokens."""
        added: dict[str, Any] = self._request("POST", "/users", json={"names": names})
        return added

    def renew(self, name: str) -> dict[str, Any]:
        """The same of a new token in place of a user's."""
        renewed: dict[str, Any] = self._request("POST", f"/users/{quote(name, safe='')}/token")
        return renewed

    def remove(self, name: str) -> dict[str, Any]:
        """Ids of his queries that were ``stopped``; ``kept``: why others were not."""
        removed: dict[str, Any] = self._request("DELETE", "/users", name)
        return removed
