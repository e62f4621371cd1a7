"""What executors do with a batch, without Spark: files of the users' index are read, rows matched, blocks packed and unpacked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from gateway.tests.logs import STREAMS
from skerry.delivery.engine import Engine
from skerry.delivery.window_snapshots import WindowSnapshots
from skerry.execution.blocks import Extent, batch_of, blocks_of, rows_of, to_bytes
from skerry.execution.joined import Join
from skerry.spark.index_file import IndexFile, IndexReader, newest
from skerry.storage.block_files import BlockFiles
from skerry.storage.log.record import Block, by_stream
from skerry.tables.pairs import Pairing
from skerry.tables.versions import DIRECTORY, TableVersions


class Executors:
    """Of one gateway, whose index is in a directory. Each of the two has its own view of the files."""

    def __init__(self, directory: Path, behind: int = 0) -> None:
        """``behind``: by so many versions batches are behind the gateway."""
        self.behind, self._directory = behind, directory
        self.files = BlockFiles(directory)
        #: Whether blocks are published, too.
        self.publishing = False
        self._file = IndexFile(directory)
        self._versions = TableVersions(directory / DIRECTORY)

        def make_join(text: str) -> Join:
            return Pairing.from_text(text, self._versions).found

        self._readers = [IndexReader(self._file.path, make_join) for _ in range(2)]

    def engine(
        self, read: Callable[[int, int], Block] | None = None, snapshots: WindowSnapshots | None = None
    ) -> Engine:
        """Of a gateway that starts, whose index goes on where that of the one before ended; ``read``, ``snapshots``: as of
        :class:`Engine`."""
        self._file.close()
        self._file = IndexFile(self._directory)
        self.files.clear()
        return Engine(
            STREAMS.get, read, publish=self._file.append, version=self._file.version, files=self.files, snapshots=snapshots
        )  # fmt: skip

    def process(self, engine: Engine, block: Block) -> int:
        """As :meth:`Engine.process`, in two parts, each of which an executor has read."""
        self._versions.refresh()
        version = max(0, newest(self._file.path) - self.behind)
        middle = len(block.records) // 2
        found: list[pa.RecordBatch] = []
        halves = zip(self._readers, (slice(0, middle), slice(middle, None)), strict=True)
        for half, (reader, rows) in enumerate(halves):
            records = block.records[rows]
            if len(records):
                numbers = np.arange(block.first, block.end)[rows]
                index, parts = reader.at(version), by_stream(numbers, records)
                extent = Extent(block.first, block.end, len(block.records), half, len(records), index.version)
                streams = np.array([number for number, _, _ in parts], np.int64)
                found += blocks_of(extent, streams, *index.match(parts))
        if not found:
            return 0
        table = pa.Table.from_batches(found)
        if self.publishing:
            self.files.publish(*rows_of(table), to_bytes(table))
        batch = batch_of(table)
        return 0 if batch is None else engine.take(batch)
