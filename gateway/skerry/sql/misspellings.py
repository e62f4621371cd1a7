"""Which word of the grammar may be meant by one that is misspelt."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

from skerry_protocol.attributes import BY_NAME

#: Words of the grammar.
KEYWORDS = frozenset({
    "SELECT", "FROM", "WHERE", "GROUP", "BY", "HAVING", "SAMPLE", "PERIOD", "FOR", "ONCE", "LIFETIME", "ON", "ALIGNED", "EVENT", "OUTPUT",
    "TRIGGER", "ACTION", "SIGNAL", "STOP", "QUERY", "CREATE", "CIRCULAR", "SIZE", "DROP", "ALL", "INTO", "COMBINE", "INTERPOLATE", "LINEAR",
    "AS", "DISTINCT", "AND", "OR", "NOT", "IS", "NULL", "IN", "LIKE", "BETWEEN",
    "HISTORY", "ONLY", "ORDER", "ASC", "DESC", "LIMIT", "QUEUE", "SEND", "SRT", "ROOT", "POLICY", "APPROXIMATE", "WITHIN", "WAIT",
})  # fmt: skip

#: Those that begin a clause.
_CLAUSES = (
    "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OUTPUT", "INTO", "SAMPLE", "SAMPLE PERIOD", "LIFETIME", "ONCE",
    "STOP", "COMBINE", "INTERPOLATE", "QUEUE", "APPROXIMATE", "WAIT", "HISTORY", "START NOW", "WINDOW", "LATENESS", "USING", "JOIN",
    "ESTIMATE", "COST", "LEARNING", "DELIVER WITHIN",
)  # fmt: skip
#: They, and their first words.
_BEGINNINGS = frozenset(part for clause in _CLAUSES for part in (clause, clause.split()[0]))
#: The last word of a text.
_WORD = re.compile(r"[A-Za-z_]\w*(?=\s*$)")


def misspelt(token: str | None, before: str, expected: set[str]) -> str:
    """A guess, with a space behind it, where a token is not among those expected; None: the text ends there. Or at the word before it,
    which passes for the name of a table or for a unit, as in SAMPEL PERIOD and in 3 ADN light."""
    clauses = _BEGINNINGS if "SAMPLE" in expected else frozenset()
    # Where there is but one, it is said anyway.
    words = expected & KEYWORDS if len(expected) > 1 else frozenset()
    meant = _meant(token, words | clauses) if token is not None else None
    if meant is not None:
        return f"did you mean {meant}? "
    return guess_last(before, clauses | ({"AND", "OR"} & expected)) if "FROM" not in expected else ""


def guess_last(text: str, known: Collection[str] = _BEGINNINGS) -> str:
    """A guess at the last word of a text."""
    last = _WORD.search(text)
    meant = _meant(last[0], known) if last is not None else None
    return f"did you mean {meant} for '{text[last.start() : last.end()]}'? " if last and meant else ""


def _meant(word: str, known: Collection[str]) -> str | None:
    if len(word) < 3 or word.upper() in {*KEYWORDS, *known} or word.lower() in BY_NAME:
        return None
    # Two letters that have changed places are much of a short word.
    close = get_close_matches(word.upper(), sorted(known), n=1, cutoff=0.7 if len(word) > 3 else 0.6)
    return close[0] if close else None
