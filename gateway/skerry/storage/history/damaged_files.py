"""Files of the past that cannot be read: whatever is wrong with one is said of that one, with what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from skerry.tables.columns import TableError


class DamagedError(OSError, TableError):
    """A file of the past that cannot be read; one line. Queries that need it wait, as those do whose table cannot be read; compaction
    tries again."""


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """While a file is read. Raises DamagedError; FileNotFoundError, which has its name."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "it is gone", str(path)) from None
    except (pa.ArrowException, OSError) as error:
        raise damaged(path, " ".join(str(error).split())) from error


def damaged(path: Path, why: str) -> DamagedError:
    """What to do with a file that is not as it was written."""
    return DamagedError(
        f"{path}: {why}: put it back from a copy, or take it away and start the gateway again without its rows"
    )
