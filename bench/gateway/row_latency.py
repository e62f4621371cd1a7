"""A reading sampled at level 1 → the row at its user, testbed at real time, the wait for the slot taken off.

The slot wait ends when the root has the frame; what remains is serial line, log, Spark and HTTP.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import skerry
from bench.measuring.emulated import described
from bench.measuring.gateways import gateway_over
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from gateway.tests.process import wait_for
from skerry_protocol import codec, mac
from skerry_protocol.codes import PacketType
from skerry_protocol.errors import PacketError
from skerry_testbed.core import AirFrame
from skerry_testbed.pytest import disc, grid
from skerry_testbed.runner import Testbed
from skerry_testbed.serial_port import SerialPort


@dataclass(frozen=True)
class Options(SeedOptions):
    seed: int = option(2, "what is random is drawn from it")
    rows: int = option(120, "how many are timed")


#: When the air had a row first, by its mote and epoch; s of the monotonic clock.
Heard = dict[tuple[int, int], float]


@contextmanager
def running(seed: int, heard: Heard, motes: int = 6) -> Iterator[str]:
    """Motes in two rows, of an even number, at the speed of real time; gives the address of the root's line."""
    bed = Testbed(described("latency", grid(motes // 2, 2, spacing=10), disc(30), seed))
    line = SerialPort(bed, 0)

    def hear(frame: AirFrame) -> None:
        try:
            decoded = mac.decode(frame.psdu)
            packet = codec.decode(decoded.payload) if decoded else None
        except PacketError:
            return
        if packet is not None and packet.type is PacketType.BUNDLE:
            for record in packet.body.records:
                if record.type == PacketType.RESULT:
                    body = codec.decode_record(record.type, record.body).body
                    heard.setdefault((body.node, body.epoch), time.monotonic())

    bed.air_listeners.append(hear)
    stop = threading.Event()
    run = threading.Thread(target=lambda: bed.run(None, 1.0, stop.is_set, line.poll), daemon=True)
    run.start()
    try:
        yield f"socket://127.0.0.1:{line.port}"
    finally:
        stop.set()
        run.join()


def waits_of(client: skerry.Client, heard: Heard, rows: int, recorder: Recorder) -> list[float]:
    """How long rows took from the air to here, in s; rows that were not seen on the air are skipped."""
    wait_for(lambda: len(client.motes()) == 6 and client.status()["spark"]["state"] == "running")
    waits: list[float] = []
    for row in client.query("SELECT nodeid, epoch FROM sensors WHERE nodeid > 0 SAMPLE PERIOD 2 s"):
        now, key = time.monotonic(), (row["nodeid"], row["epoch"])
        if key in heard:
            waits.append(now - heard[key])
            recorder.progress(f"{len(waits)} of {rows} rows")
        if len(waits) == rows:
            break
    return waits


def measure(options: Options, recorder: Recorder) -> None:
    """One gateway over one network."""
    heard: Heard = {}
    with running(options.seed, heard) as link, gateway_over(link) as daemon:
        recorder.progress("starting")
        daemon.start()
        waits = sorted(waits_of(daemon.client(), heard, options.rows, recorder))
    recorder.figure(
        "level-1 reading at the root → row at the user, median", 1e3 * statistics.median(waits), "ms", ".0f", better="less",
        goal=500, main=True,
    )  # fmt: skip
    recorder.figure("the same, 95 %", 1e3 * waits[int(0.95 * len(waits))], "ms", ".0f", better="less")


BENCHMARK = Benchmark(measure, quick=Options(rows=6), minutes=2)
