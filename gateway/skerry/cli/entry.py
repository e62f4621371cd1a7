"""Where the ``skerry`` command begins, before what takes a while to import."""

from __future__ import annotations

import sys
from importlib import import_module


def main() -> None:
    """The command line. Ctrl-C before it has begun ends it with 130, without a word."""
    try:
        import_module("skerry.cli.main").main()
    except KeyboardInterrupt:
        sys.exit(130)
