"""Packets decoded per second on one core: bytes of the serial line to records of the log."""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass

from bench.measuring.plans import query_of
from bench.measuring.rounds import alternated
from bench.runner.benchmark import Benchmark, Options, option
from bench.runner.recorder import Recorder
from bench.runner.result import Spread
from skerry.ingest.ingest import Ingest
from skerry.network.link.endpoint import Endpoint
from skerry.streams.stream import Source, Stream
from skerry_protocol import codec
from skerry_protocol.codes import PacketType
from skerry_protocol.framing import FrameKind, LinkFrame


@dataclass(frozen=True)
class Packets(Options):
    packets: int = option(60_000, "how many in a round")
    rounds: int = option(3, "how often")


def once(packets: int) -> float:
    """Packets per second."""
    query = query_of("SELECT nodeid, temp, humidity, light, voltage FROM sensors SAMPLE PERIOD 5 s")
    stream = Stream(1, 1, 1, query)
    layout = struct.Struct("<" + "".join(column.format.letter for column in query.columns))
    values = layout.pack(*range(len(query.columns)))
    line = b"".join(
        LinkFrame(
            FrameKind.DATA,
            i & 0xFF,
            codec.encode(PacketType.RESULT, query=1, node=i % 50, epoch=i // 50, nulls=0, values=values),
        ).to_bytes()
        for i in range(packets)
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
    assert rows == packets
    return packets / (time.process_time() - began)


def measure(options: Packets, recorder: Recorder) -> None:
    """Rounds of it."""
    found = alternated({"decoding": lambda: once(options.packets)}, options.rounds, recorder)
    recorder.figure(
        "packets from serial bytes to log records, one core", Spread.of(found["decoding"]), "/s", ",.0f", better="more",
        goal=30_000, main=True,
    )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Packets(packets=3_000, rounds=2), minutes=0.2)
