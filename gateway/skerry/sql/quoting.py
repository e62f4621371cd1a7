"""Names and texts as a query has them: names that are no plain words in ", texts in '."""

from __future__ import annotations

import re

from skerry.sql.misspellings import KEYWORDS

_PLAIN = re.compile(r"[A-Za-z_°][A-Za-z0-9_]*")


def unquoted(written: str) -> str:
    """What stands between quotation marks; one of them that is written twice is meant once."""
    mark = written[0]
    return written[1:-1].replace(mark * 2, mark)


def as_name(name: str) -> str:
    """A name as it has to be written: order and room name need quotation marks."""
    if _PLAIN.fullmatch(name) and name.upper() not in KEYWORDS:
        return name
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def as_text(text: str) -> str:
    """A text as it has to be written."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
