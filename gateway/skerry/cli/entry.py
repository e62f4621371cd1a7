"""Where the ``skerry`` command begins, before what takes a while to import."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from skerry.cli.checkout import complaint


def main() -> None:
    """The command line. Ctrl-C before it has begun ends it with 130, without a word."""
    try:
        _tell_whose()
        import_module("skerry.cli.main").main()
    except KeyboardInterrupt:
        sys.exit(130)


def _tell_whose() -> None:
    with suppress(OSError):
        other = complaint(Path.cwd())
        if other is not None:
            print(f"skerry: {other}", file=sys.stderr)
