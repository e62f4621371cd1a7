"""How far Spark has come, as it notes it in files; looked through before it starts, as it does not start with one that is damaged.

Spark does not sync them, so that a power cut may leave empty ones. Nothing is lost with them: rows are known by their numbers, and Spark
can begin anew with the oldest row of the log.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
from pathlib import Path
from typing import Any

from skerry.storage.log import stream_log

DIRECTORY = "checkpoint"
_log = logging.getLogger(__name__)
_VERSION = re.compile(r"v\d+")
#: As Spark says it: by the name of the error, or of the file, or by where in Java it was read.
_LOST = re.compile(
    r"CANNOT_LOAD_STATE_STORE|MISSING_STATE_DIRECTORY|\.StateSchemaCompatibilityChecker\b|/state/\d+/\d+/[\w.]+\.(delta|snapshot|changelog|zip)\b|/state/\d+/_metadata/"
)


class _WrongError(ValueError):
    """What is wrong with a checkpoint."""


def usable(data: Path, log_path: Path) -> Path:
    """The directory of a gateway's checkpoint, from which one that Spark could not go on from is taken away. Raises OSError."""
    directory = data / DIRECTORY
    if not log_path.exists():
        # It is away: whoever reads it says so, and goes on from here once it is back.
        return directory
    try:
        _check(directory, stream_log.length(log_path))
    except _WrongError as wrong:
        take_away(data, log_path, str(wrong))
    return directory


def take_away(data: Path, log_path: Path, wrong: str) -> None:
    """Begin anew, as something is wrong with a checkpoint or with what is kept beside it. Raises OSError."""
    _log.warning(
        "%s: it is taken away, and Spark reads the log again from row %d on; nobody gets a row twice",
        wrong,
        stream_log.first(log_path),
    )
    shutil.rmtree(data / DIRECTORY)


def lost_state(error: str) -> bool:
    """Whether Spark says that it cannot read what it has kept between batches. ``error``: with where in Java it came from."""
    return _LOST.search(error) is not None


def _check(directory: Path, rows: int) -> None:
    """Raises _WrongError. ``rows``: how many the log has."""
    offsets, commits = _numbered(directory / "offsets"), _numbered(directory / "commits")
    metadata = directory / "metadata"
    if offsets or commits or metadata.exists():
        _object(metadata, 0)
    for number in commits:
        _object(directory / "commits" / str(number), 1)
    for number in offsets:
        file = directory / "offsets" / str(number)
        _object(file, 1)
        offset = _object(file, 2)
        row = offset.get("row")
        if not isinstance(row, int) or not 0 <= row <= rows:
            raise _WrongError(f"{file} says row {row}, and the log ends before row {rows}")
        if not isinstance(offset.get("version"), int):
            raise _WrongError(f"{file} does not say which version of the users' index")
    # The last batch may not be done yet.
    last, done = max(offsets, default=-1), max(commits, default=-1)
    if done not in (last, last - 1) or (done >= 0 and done not in offsets):
        raise _WrongError(f"{directory} begins batch {last} last, and ends batch {done}")


def _numbered(directory: Path) -> list[int]:
    """Batches that a directory has a file of."""
    if not directory.is_dir():
        return []
    return [int(file.name) for file in directory.iterdir() if file.name.isdecimal()]


def _object(file: Path, place: int) -> dict[str, Any]:
    """The JSON object in a line of a file, which stands behind that of the format's version. Raises _WrongError."""
    try:
        lines = file.read_text().splitlines()
        found = json.loads(lines[place])
    except FileNotFoundError:
        raise _WrongError(f"{file} is gone") from None
    except (LookupError, ValueError):
        found = None
    if not isinstance(found, dict) or (place and not _VERSION.fullmatch(lines[0])):
        raise _WrongError(f"{file} is not as Spark wrote it")
    return found
