"""Gas detectors for trying streams out: TCP servers that send whoever listens a line of JSON each second.

``python -m examples.detector PORT …`` starts one for each port. What they smell comes back each eight seconds, the same at all of them, and
has a level that is drawn; now and then one smells something else.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from contextlib import suppress
from datetime import UTC, datetime

#: What is smelt second after second, over and over; and how often it is something else.
GASES = ("CO", "CO", "CH4", "N2", "CO", "H2S", "CH4", "N2")
OTHER, OTHERWISE = "Cl2", 0.05


class Detector:
    """``number``: of which detector; what it sends is drawn from that and ``seed``."""

    def __init__(self, number: int, seed: int) -> None:
        self._random = random.Random(f"{seed} {number}")
        self._listening: set[asyncio.StreamWriter] = set()

    async def listen(self, port: int) -> None:
        """From now on. Raises OSError: it cannot be listened there."""
        await asyncio.start_server(self._accept, "127.0.0.1", port)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._listening.add(writer)
        with suppress(OSError):
            while await reader.read(1024):
                pass
        self._listening.discard(writer)
        writer.close()

    def row(self, second: int, now: datetime) -> dict[str, object]:
        """What is smelt in this second."""
        gas = OTHER if self._random.random() < OTHERWISE else GASES[second % len(GASES)]
        return {"gas": gas, "level": round(self._random.uniform(0.1, 2.0), 2), "at": now.isoformat()}

    def send(self, second: int, now: datetime) -> None:
        """A line to all who listen."""
        line = json.dumps(self.row(second, now)).encode() + b"\n"
        for writer in self._listening:
            writer.write(line)


async def run(ports: list[int], seed: int, every_s: float) -> None:
    """Until it is cancelled. Raises OSError."""
    detectors = [Detector(number, seed) for number in range(len(ports))]
    for detector, port in zip(detectors, ports, strict=True):
        await detector.listen(port)
        print(f"a detector sends lines at tcp://127.0.0.1:{port}?format=json", flush=True)
    second = 0
    while True:
        now = datetime.now(UTC)
        for detector in detectors:
            detector.send(second, now)
        second += 1
        await asyncio.sleep(every_s)


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m examples.detector", description=__doc__)
    parser.add_argument(
        "ports", type=int, nargs="+", metavar="PORT", help="of 127.0.0.1, one for each detector"
    )
    parser.add_argument("--seed", type=int, default=1, help="what is drawn is drawn from it (1)")
    parser.add_argument("--every", type=float, default=1.0, help="s between two lines (1)")
    options = parser.parse_args()
    try:
        asyncio.run(run(options.ports, options.seed, options.every))
    except OSError as error:
        parser.exit(1, f"detector: {error}\n")
    except KeyboardInterrupt:
        parser.exit(130)


if __name__ == "__main__":
    main()
