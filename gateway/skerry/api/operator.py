"""What only who runs the gateway may do, who shows the key of its data directory: add and remove users."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from fastapi import Depends, FastAPI, Header, Request

from skerry.api.access import Access, AccessError
from skerry.api.body import NewUsers
from skerry.api.tokens import digest, new_token
from skerry.service.user_service import Removed
from skerry.service.users import User

KEY_HEADER = "X-Skerry-Operator-Key"


class Users(Protocol):
    """:class:`skerry.service.user_service.UserService`."""

    def all(self) -> list[User]: ...

    def add(self, digests: dict[str, bytes]) -> None: ...

    def renew(self, name: str, digest: bytes) -> None: ...

    def remove(self, name: str) -> Removed: ...


@dataclass(frozen=True)
class OperatorDoor:
    """``key``: who shows it may come in."""

    key: str
    users: Users


def shows_key(key: str) -> Callable[..., None]:
    """For a request that must show the key of the gateway's data directory."""

    def check(request: Request, shown: Annotated[str, Header(alias=KEY_HEADER)] = "") -> None:
        del request
        if not hmac.compare_digest(shown.encode(), key.encode()):
            raise AccessError(
                403,
                "that is for who runs the gateway: it takes operator.key of the gateway's data directory, and none, or another one, came",
            )

    return check


def open_operator_door(app: FastAPI, door: OperatorDoor, access: Access) -> None:
    """Add what the operator asks to an application."""
    guarded = [Depends(shows_key(door.key))]

    @app.get("/users", dependencies=guarded)
    def users() -> list[dict[str, Any]]:
        return [{"name": user.name, "added": user.added} for user in door.users.all()]

    @app.post("/users", status_code=201, dependencies=guarded)
    def add(new: NewUsers) -> dict[str, Any]:
        tokens = {name: new_token() for name in new.names}
        if len(tokens) < len(new.names):
            raise AccessError(400, "names: one of them is there twice")
        door.users.add({name: digest(token) for name, token in tokens.items()})
        return _told(tokens)

    @app.post("/users/{name}/token", status_code=201, dependencies=guarded)
    def renew(name: str) -> dict[str, Any]:
        token = new_token()
        door.users.renew(name, digest(token))
        return _told({name: token})

    @app.delete("/users/{name}", dependencies=guarded)
    def remove(name: str) -> dict[str, Any]:
        removed = door.users.remove(name)
        return {"stopped": removed.stopped, "kept": removed.kept}

    def _told(tokens: dict[str, str]) -> dict[str, Any]:
        return {"tokens": tokens, "asked": not access.open}
