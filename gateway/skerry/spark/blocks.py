"""Blocks: how records of the log travel through Spark. Knows nothing of Spark itself, as the gateway's process does not load it.

Each block is the bytes of some thousand records: Spark moves rows one by one, at a cost for every column, and the proxy wants them as
arrays anyway. It copies their bytes several times on the way; most are zeros, so that packing them costs less than it saves.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from skerry.storage.log import stream_log
from skerry.storage.log.record import NUMBERED, RECORD, Block, Records

#: How blocks are packed.
CODEC = "lz4"


def packed(records: Records) -> bytes:
    """Records with their numbers, as the column ``records`` of a block."""
    return bytes(pa.compress(records, codec=CODEC, asbytes=True))


def block_of(table: pa.Table) -> Block:
    """The records of a batch of the stream, in order. Raises ValueError if some of them are not there, or come twice."""
    blocks = [
        np.frombuffer(pa.decompress(block.as_buffer(), count * NUMBERED.itemsize, codec=CODEC), NUMBERED)
        for block, count in zip(table.column("records"), table.column("count").to_pylist(), strict=True)
        if block.is_valid
    ]
    if not blocks:
        return Block(0, np.empty(0, RECORD))
    first = min(int(block["row"][0]) for block in blocks)
    end = max(int(block["row"][-1]) for block in blocks) + 1
    came, whole = sum(map(len, blocks)), table.column("whole")[0].as_py()
    begins = sorted(int(block["row"][0]) for block in blocks)
    # A row that is damaged may bear the number of another partition's.
    if came != whole or len({bytes(block[:1]) for block in blocks}) < len(blocks):
        raise ValueError(
            f"the batch that begins at row {first} is not whole: {came} of {whole} rows came, in blocks that begin at {begins}"
        )
    return Block(first, stream_log.in_order(blocks, first, end))


def to_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(data: bytes) -> pa.Table:
    """The table of an Arrow IPC stream."""
    return pa.ipc.open_stream(data).read_all()
