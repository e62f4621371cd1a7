"""What users note about motes: ``room=12``, ``floor=2``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
#: Longest value, in characters; tags of one mote.
VALUE_MAXIMUM = 256
TAGS_MAXIMUM = 64


class TagError(ValueError):
    """A tag that cannot be set; one line."""


@dataclass(frozen=True, slots=True)
class Tag:
    """One value, who set it and when (UTC in s)."""

    value: str
    user: str
    set_at: float


class Tags:
    """Tags by mote and key. Not locked: its owner calls it under his lock."""

    def __init__(self) -> None:
        self._by_mote: dict[int, dict[str, Tag]] = {}

    def of(self, nodeid: int) -> dict[str, str]:
        """A mote's, by key."""
        return {key: tag.value for key, tag in sorted(self._by_mote.get(nodeid, {}).items())}

    def all(self) -> list[tuple[int, str, str, str, float]]:
        """(mote, key, value, user, set at), by mote and key."""
        return [
            (nodeid, key, tag.value, tag.user, tag.set_at)
            for nodeid, tags in sorted(self._by_mote.items())
            for key, tag in sorted(tags.items())
        ]

    def set(self, nodeid: int, changes: Mapping[str, str | None], user: str, now: float) -> dict[str, str]:
        """Set values, take those away that are None; all of it or, with TagError, nothing. Returns the mote's tags."""
        tags = dict(self._by_mote.get(nodeid, {}))
        for key, value in changes.items():
            if not _KEY.fullmatch(key):
                raise TagError(
                    f"tag {key!r}: a key is a word of letters, digits and _ . - that begins with a letter"
                )
            if value is None:
                if key not in tags:
                    known = ", ".join(self.of(nodeid)) or "none"
                    raise TagError(f"mote {nodeid} has no tag {key!r}: its tags are {known}")
                del tags[key]
                continue
            if not value or len(value) > VALUE_MAXIMUM or not value.isprintable():
                raise TagError(
                    f"tag {key!r}: a value is 1 to {VALUE_MAXIMUM} printable characters on one line"
                )
            tags[key] = Tag(value, user, now)
        if len(tags) > TAGS_MAXIMUM:
            raise TagError(
                f"mote {nodeid} would have {len(tags)} tags, and {TAGS_MAXIMUM} is the most: remove some"
            )
        self._by_mote[nodeid] = tags
        return self.of(nodeid)

    def drop(self, nodeid: int, name: str) -> None:
        """Take a mote's tag away, by its key in any case."""
        tags = self._by_mote.get(nodeid, {})
        self._by_mote[nodeid] = {key: tag for key, tag in tags.items() if key.lower() != name.lower()}

    def rows(self) -> list[dict[str, Any]]:
        """All, to be kept."""
        return [
            {"nodeid": nodeid, "key": key, **asdict(tag)}
            for nodeid, tags in self._by_mote.items()
            for key, tag in tags.items()
        ]

    def restore(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """What :meth:`rows` said."""
        self._by_mote = {}
        for row in rows:
            self._by_mote.setdefault(row["nodeid"], {})[row["key"]] = Tag(
                row["value"], row["user"], row["set_at"]
            )
