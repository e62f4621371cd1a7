"""Where the ``skerry`` command begins, before what takes a while to import."""

from __future__ import annotations

import sys


def main() -> None:
    """The command line. Ctrl-C before it has begun ends it with 130, without a word."""
    try:
        # Imports take a while, too, in which Ctrl-C may come.
        from importlib import import_module  # noqa: PLC0415

        _tell_whose()
        import_module("skerry.cli.main").main()
    except KeyboardInterrupt:
        sys.exit(130)


def _tell_whose() -> None:
    from contextlib import suppress  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    from skerry.cli.checkout import complaint  # noqa: PLC0415

    with suppress(OSError):
        other = complaint(Path.cwd())
        if other is not None:
            print(f"skerry: {other}", file=sys.stderr)
