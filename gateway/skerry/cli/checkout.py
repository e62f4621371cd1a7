"""Whose code runs: that of the checkout where a command is called, or another's."""

from __future__ import annotations

from pathlib import Path

#: Of this file, in a checkout.
_PLACE = Path("gateway/skerry/cli/checkout.py")


def complaint(here: Path) -> str | None:
    """Where ``here`` is within a checkout of skerry, and this package is not that one's: a line that says so, as its motes' images are not
    that one's either."""
    own = Path(__file__).resolve()
    for folder in (here, *here.parents):
        if (folder / _PLACE).is_file():
            if (folder / _PLACE).resolve() == own:
                return None
            return (
                f"this runs code and images of {own.parents[1]}, not of {folder}: "
                f"'make setup' there makes an environment, {folder}/.venv, that does"
            )
    return None
