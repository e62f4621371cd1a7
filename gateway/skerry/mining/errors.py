"""What is said of a wrong argument, and of a stream that has more in it than was allowed to be kept."""

from __future__ import annotations


class MiningError(ValueError):
    """An argument, row or state that does not fit; one line that names it and says what would."""


def check_whole(name: str, value: int, least: int, most: int) -> None:
    """That a number is a whole one within bounds. Raises MiningError."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise MiningError(f"{name} is {value}: it is a whole number from {least} to {most}")


def check_share(name: str, value: float) -> None:
    """That a number is a share, above 0 and not above 1. Raises MiningError."""
    if not 0 < value <= 1:
        raise MiningError(f"{name} is {value}: it is a share, above 0 and at most 1")


def check_positive(name: str, value: float) -> None:
    """That a number is above 0, and finite. Raises MiningError."""
    if not 0 < value < float("inf"):
        raise MiningError(f"{name} is {value}: it is a number above 0")
