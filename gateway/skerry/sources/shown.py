"""Texts from elsewhere, as people are shown them."""

from __future__ import annotations

#: Characters of a value that is wrong.
VALUE, ROW = 60, 120
#: Of a text that is longer no more is looked at.
LOOKED = 1 << 16


def plain(text: str) -> str:
    """Without what a terminal would do: a source may send anything."""
    return (
        text if text.isprintable() else "".join(one if one.isprintable() else _escaped(one) for one in text)
    )


def _escaped(one: str) -> str:
    return one.encode("unicode_escape").decode()
