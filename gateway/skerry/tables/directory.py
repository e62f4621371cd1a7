"""The files of a directory that may be tables, as they are now. Whatever is wrong with one is said of that one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

#: What tells that a file has changed: modified (ns), size, number; of a SQLite file that of its write-ahead log, too.
Stamp = tuple[int, ...]
_NOT_KNOWN: Stamp = (0, 0, 0)
#: What SQLite adds to a file's name for the log that changes go to first.
_WRITE_AHEAD = "-wal"


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was found. ``trouble``: why it is not to be read."""

    path: Path
    stamp: Stamp = _NOT_KNOWN
    trouble: str | None = None


def shown(name: str | Path) -> str:
    """A name for people, and for JSON: bytes of it that are not UTF-8 as ``\\xe4``."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def files(directory: Path, suffixes: tuple[str, ...]) -> Iterator[File]:
    """Those with one of these suffixes, by name; the directory itself where it cannot be listed."""
    try:
        with os.scandir(directory) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    except OSError as error:
        yield File(directory, trouble=_reason(error))
        return
    for entry in found:
        if entry.name.lower().endswith(suffixes):
            try:
                yield _file(entry)
            except FileNotFoundError:
                continue
            except OSError as error:
                yield File(Path(entry.path), trouble=_reason(error))


def _file(entry: os.DirEntry[str]) -> File:
    path, status = Path(entry.path), entry.stat()
    trouble = None
    if shown(entry.name) != entry.name:
        trouble = "its name is not UTF-8: rename it"
    elif not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        # Who opens a pipe waits. Parquet may be a directory of files.
        trouble = "it is no file"
    return File(path, _stamp(status) + _write_ahead(path), trouble)


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_mtime_ns, status.st_size, status.st_ino


#: Files, and of directories those below them, as they were.
Stamps = dict[Path, tuple[Stamp, ...]]


def stamps(paths: Iterable[Path]) -> Stamps:
    """What tells that one of them has changed; also that one came or went, or may be read by others than before."""
    return {path: tuple(_stamps(path)) for path in paths}


def _stamps(path: Path) -> Iterator[Stamp]:
    try:
        status = os.stat(path)
    except OSError:
        return
    yield *_stamp(status), status.st_mode, status.st_ctime_ns
    if stat.S_ISDIR(status.st_mode):
        for below, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                try:
                    yield _stamp(os.stat(os.path.join(below, name)))
                except OSError:
                    continue


def _write_ahead(path: Path) -> Stamp:
    """Of a file that has such a log, and changes in it: who only reads may leave an empty one."""
    try:
        status = os.stat(f"{path}{_WRITE_AHEAD}")
    except OSError:
        return ()
    return _stamp(status) if status.st_size else ()


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
