"""Text that is not quite one: JSON can escape half of a character that takes two (``\\ud800``), which no UTF-8 has a place for."""

from __future__ import annotations


def is_whole(text: str) -> bool:
    """Whether all of it can be written."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def escaped(text: str) -> str:
    r"""The text with such halves as ``\ud800``, for messages."""
    return text.encode(errors="backslashreplace").decode()
