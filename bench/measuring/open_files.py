"""Many readers are many connections: how many a process may have open is told to the system before they come."""

from __future__ import annotations

import resource

from bench.runner.benchmark import OptionError


def allow_open_files(needed: int) -> None:
    """At least so many in this process and in those it starts. Raises OptionError where the system does not let so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), max(hard, needed)))
    except (OSError, ValueError):
        raise OptionError(
            f"{needed} files are to be open at a time, and the limit is {hard}: ulimit -n {needed}, as root, before it"
        ) from None
