"""A reading sampled at level 1 → the row at its user, testbed at real time, the wait for the slot taken off.

The slot wait ends when the root has the frame; what remains is serial line, log, Spark and HTTP.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import skerry
from bench.machine import median, table
from skerry_protocol import codec, mac
from skerry_protocol.packets import PacketError, PacketType
from skerry_testbed.core import AirFrame
from skerry_testbed.network import Network, check
from skerry_testbed.pytest import disc, grid
from skerry_testbed.runner import Testbed
from skerry_testbed.serial_port import SerialPort

ROWS = 120


def main() -> None:
    """Print the table."""
    bed = Testbed(check(Network(name="latency", seed=2, mote=grid(3, 2, spacing=10), radio=disc(30))))
    line = SerialPort(bed, 0)
    heard: dict[tuple[int, int], float] = {}

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
    waits = _ask(line.port, heard)
    stop.set()
    run.join()
    waits.sort()
    table(
        "Latency",
        [
            (
                "level-1 reading at the root → row at the user, median",
                f"{1000 * median(waits):.0f} ms",
                "500 ms",
            ),
            ("the same, 95 %", f"{1000 * waits[int(0.95 * len(waits))]:.0f} ms", ""),
        ],
    )


def _ask(link: int, heard: dict[tuple[int, int], float]) -> list[float]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = str(Path(sys.executable).parent / "skerry")
    waits: list[float] = []
    with tempfile.TemporaryDirectory() as data:
        arguments = [
            "gateway",
            "--link",
            f"socket://127.0.0.1:{link}",
            "--data",
            data,
            "--listen",
            f"127.0.0.1:{port}",
        ]
        gateway = subprocess.Popen([command, *arguments], stderr=subprocess.DEVNULL)
        client = skerry.connect(f"http://127.0.0.1:{port}")
        _until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
        _until(lambda: len(client.motes()) == 6 and client.status()["spark"]["state"] == "running")
        answer = client.query("SELECT nodeid, epoch FROM sensors WHERE nodeid > 0 SAMPLE PERIOD 2 s")
        for row in answer:
            now = time.monotonic()
            if (row["nodeid"], row["epoch"]) in heard:
                waits.append(now - heard[row["nodeid"], row["epoch"]])
            if len(waits) >= ROWS:
                break
        gateway.send_signal(signal.SIGTERM)
        gateway.wait(30)
    return waits


def _until(condition: object) -> None:
    while not condition():  # type: ignore[operator]
        time.sleep(0.1)


if __name__ == "__main__":
    main()
