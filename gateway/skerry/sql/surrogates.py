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


def mended(text: str) -> str:
    """The text with U+FFFD in place of such halves."""
    return text if is_whole(text) else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
