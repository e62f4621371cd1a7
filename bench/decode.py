"""Packets decoded per second on one core: bytes of the serial line to records of the log."""

from __future__ import annotations

import struct
import time

from bench.machine import median, table
from skerry.ingest.ingest import Ingest
from skerry.network.link.endpoint import Endpoint
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.planner import plan_query
from skerry.streams.stream import Source, Stream
from skerry_protocol import codec
from skerry_protocol.framing import FrameKind, LinkFrame
from skerry_protocol.packets import PacketType

PACKETS = 60_000


def once() -> float:
    """Packets per second."""
    plan = plan_query("SELECT nodeid, temp, humidity, light, voltage FROM sensors SAMPLE PERIOD 5 s")
    assert isinstance(plan, QueryPlan)
    query = merge([plan])
    stream = Stream(1, 1, 1, query)
    layout = struct.Struct("<" + "".join(column.format.letter for column in query.columns))
    values = layout.pack(*range(len(query.columns)))
    line = b"".join(
        LinkFrame(
            FrameKind.DATA,
            i & 0xFF,
            codec.encode(PacketType.RESULT, query=1, node=i % 50, epoch=i // 50, nulls=0, values=values),
        ).to_bytes()
        for i in range(PACKETS)
    )
    endpoint = Endpoint(lambda _: None, lambda _: None)
    hello = codec.encode(
        PacketType.HELLO, node=0, session=1, seconds=0, ticks=0, query_version=0, queries=b""
    )
    endpoint.feed(LinkFrame(FrameKind.RESET_ACK, 0, hello).to_bytes())
    ingest, source = Ingest(), Source({1: stream}.get, lambda _: None)
    began, rows = time.process_time(), 0
    for at in range(0, len(line), 4096):
        rows += len(ingest.records(endpoint.feed(line[at : at + 4096]), source))
    assert rows == PACKETS
    return PACKETS / (time.process_time() - began)


def main() -> None:
    """Print the table."""
    rate = median([once() for _ in range(3)])
    table("Decoding", [("packets from serial bytes to log records, one core", f"{rate:,.0f}/s", "30,000/s")])


if __name__ == "__main__":
    main()
