"""What an executor does with a part of the log: reads it, and matches its rows against the users' index."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from skerry.execution.blocks import Extent, blocks_of
from skerry.execution.users_index import UsersIndex
from skerry.spark.index_file import IndexReader
from skerry.spark.unreadable import UnreadableError
from skerry.storage.log import record
from skerry.storage.log.segments import Segments
from skerry.storage.log.source_batches import SourceFiles
from skerry.tables.pairs import Pairing
from skerry.tables.versions import DIRECTORY as TABLES
from skerry.tables.versions import TableVersions

if TYPE_CHECKING:
    from skerry.spark.log_source import LogPartition

#: By directory: what this process has loaded of the users' index.
_indexes: dict[Path, tuple[IndexReader, TableVersions]] = {}


def matched(log: Path, index_path: Path, partition: LogPartition) -> Iterator[pa.RecordBatch]:
    """Blocks of a partition's rows. Raises UnreadableError."""
    pieces = Segments(log).read(partition.start, partition.end)
    there = sum(len(records) for _, records in pieces)
    # A worker on another machine may see an older state of a shared directory, or another directory.
    if there < partition.count:
        raise UnreadableError(
            f"of rows {partition.start} to {partition.end - 1} {partition.count} are in {log}, and "
            f"{there} of them there on {socket.gethostname()}: every worker must see the gateway's data directory at the "
            "same path"
        )
    index, readings = _index_at(index_path, partition.version)
    numbers = np.concatenate([np.arange(first, first + len(rows)) for first, rows in pieces])
    records = np.concatenate([rows for _, rows in pieces])
    by_stream = record.by_stream(numbers, records)
    streams = np.array([number for number, _, _ in by_stream], np.int64)
    first, end = partition.batch
    extent = Extent(first, end, partition.whole, partition.number, partition.count, index.version)
    parts, folded = index.match(by_stream)
    parts += index.sources.match(SourceFiles(log, readings), numbers, records)
    yield from blocks_of(extent, streams, parts, folded)


def _index_at(path: Path, version: int) -> tuple[UsersIndex, TableVersions]:
    """The users' index as of a version, and the readings of tables that rows may meet by now."""
    known = _indexes.get(path)
    if known is None:
        versions = TableVersions(path.parent / TABLES)
        known = IndexReader(path, lambda text: Pairing.from_text(text, versions).found), versions
        _indexes[path] = known
    reader, versions = known
    versions.refresh()
    return reader.at(version), versions
