"""Who may ask where tokens are asked for: names, and digests of tokens, which are nowhere themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}")


class UserError(ValueError):
    """Users cannot be as somebody would have them; one line. ``missing``: there is no such user."""

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


def check_name(name: str) -> None:
    """Raises UserError for a name that no user can have."""
    if not _NAME.fullmatch(name):
        raise UserError(
            f"user {name!r}: expected 1 to 64 letters, digits and _ . @ -, of which . @ - do not begin it"
        )


@dataclass(frozen=True, slots=True)
class User:
    """``digest``: SHA-256 of his token; ``added``: UTC in s."""

    name: str
    digest: bytes
    added: float

    def row(self) -> dict[str, Any]:
        """To be kept."""
        return {"name": self.name, "digest": self.digest, "added": self.added}


class Users:
    """All of them. Not locked: its owner calls it under his lock, but for :meth:`of`, which looks at one entry."""

    def __init__(self) -> None:
        self._by_name: dict[str, User] = {}
        #: By the first byte of the digest, as they are published.
        self._names: list[dict[bytes, str]] = [{} for _ in range(256)]
        #: Names that are not on the disk as they are here, and first bytes of digests that are not published so.
        self.changed: set[str] = set()
        self.unpublished: set[int] = set()

    def of(self, digest: bytes) -> str | None:
        """Whose token has this digest; None: nobody's."""
        return self._names[digest[0]].get(digest)

    def get(self, name: str) -> User:
        """Raises UserError."""
        found = self._by_name.get(name)
        if found is None:
            raise UserError(f"no user {name}: 'skerry user list' shows those there are", missing=True)
        return found

    def all(self) -> list[User]:
        """By their names."""
        return [self._by_name[name] for name in sorted(self._by_name)]

    def __len__(self) -> int:
        return len(self._by_name)

    def check_new(self, names: Sequence[str]) -> None:
        """Raises UserError where one of these cannot be added."""
        for name in names:
            check_name(name)
            if name in self._by_name or names.count(name) > 1:
                raise UserError(f"{name} is a user already: 'skerry user renew {name}' gives a new token")

    def put(self, user: User) -> None:
        """One who is new, or has a new token."""
        self.drop(user.name)
        self._by_name[user.name] = user
        self._names[user.digest[0]][user.digest] = user.name
        self._note(user)

    def drop(self, name: str) -> None:
        """He is none any more, if he was one."""
        user = self._by_name.pop(name, None)
        if user is not None:
            del self._names[user.digest[0]][user.digest]
            self._note(user)

    def _note(self, user: User) -> None:
        self.changed.add(user.name)
        self.unpublished.add(user.digest[0])

    # ---- what is kept ----

    def published(self, first: int) -> Mapping[bytes, str]:
        """Names by digests that begin with this byte."""
        return self._names[first]

    def rows(self) -> list[dict[str, Any]]:
        """All, to be kept."""
        return [user.row() for user in self.all()]

    def unsaved(self) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """What has changed since :meth:`saved`: what the rows have that go, and what takes their place."""
        for name in sorted(self.changed):
            user = self._by_name.get(name)
            yield {"name": name}, [] if user is None else [user.row()]

    def saved(self) -> None:
        """Everything is on the disk as it is."""
        self.changed.clear()

    def restore(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """What :meth:`rows` said."""
        for row in rows:
            self.put(User(row["name"], row["digest"], row["added"]))
        self.saved()
