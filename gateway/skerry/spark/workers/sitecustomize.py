"""What each Python process that Spark starts does first: it takes PySpark from where it is installed.

Spark puts an archive of PySpark's sources before that on the path. Python keeps nothing compiled of what comes from an archive, so that
each of the five processes behind a streaming query compiled all of it anew: a second each. This directory is on their path and on that
of nothing else; the file's name is Python's (module ``site``).
"""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

#: What Spark has in archives.
ARCHIVED = ("pyspark", "py4j")


def prefer_installed(path: list[str]) -> None:
    """Put archives behind all else, where all that they hold is installed."""
    archives = [entry for entry in path if entry.endswith(".zip") and Path(entry).name.startswith(ARCHIVED)]
    others = [entry for entry in path if entry not in archives]
    if all(PathFinder.find_spec(name, others) for name in ARCHIVED):
        path[:] = [*others, *archives]


def go_on(path: list[str]) -> None:
    """Run the file of this name that this one hides."""
    others = [entry for entry in path if Path(entry) != Path(__file__).parent]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


prefer_installed(sys.path)
go_on(sys.path)
