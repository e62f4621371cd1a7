"""``python -m examples.materials``: boxes pass detectors until each is decided; Ctrl-C ends it, and all that it has started."""

from __future__ import annotations

import argparse
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import skerry
from examples.materials import boxes, drawing
from examples.materials.boxes import Box
from examples.materials.decision import Bounds, Outcome
from examples.materials.detectors import Detector
from examples.materials.inspection import QUERY, Finding, findings, prepare
from examples.materials.judges import Judges
from skerry.client.errors import GatewayError

_STARTS_S = 120.0


class Belt:
    """Boxes that several detectors take from."""

    def __init__(self, waiting: list[Box]) -> None:
        self._waiting, self._lock = list(waiting), threading.Lock()

    def __iter__(self) -> Iterator[Box]:
        return self

    def __next__(self) -> Box:
        with self._lock:
            if not self._waiting:
                raise StopIteration
            return self._waiting.pop(0)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        port: int = opened.getsockname()[1]
        return port


@contextmanager
def gateway(folder: Path) -> Iterator[skerry.Client]:
    """A gateway without motes, in a folder of its own. Raises GatewayError where it does not start."""
    port, log = _free_port(), folder / "gateway.log"
    # It asks for a root mote's line; nobody speaks on this one, and nothing here needs one.
    silent = socket.create_server(("127.0.0.1", 0))
    link = f"socket://127.0.0.1:{silent.getsockname()[1]}"
    command = [
        str(Path(sys.executable).parent / "skerry"),
        "gateway",
        "--link",
        link,
        "--data",
        str(folder / "data"),
    ]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*command, "--listen", f"127.0.0.1:{port}"], stderr=errors, start_new_session=True
        )
    try:
        client, began = skerry.connect(f"http://127.0.0.1:{port}", user="inspector"), time.monotonic()
        while True:
            try:
                client.status()
                break
            except GatewayError as error:
                if process.poll() is not None or time.monotonic() - began > _STARTS_S:
                    raise GatewayError(f"the gateway did not start: {log.read_text()[-500:]}") from error
                time.sleep(0.3)
        yield client
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        silent.close()


def run(options: argparse.Namespace) -> list[tuple[Box, Finding]]:
    """Until all boxes are decided: each with what was found."""
    count = options.boxes
    waiting = boxes.many(options.seed, count - count // 2, count // 2)
    belt, by_number = Belt(waiting), {box.number: box for box in waiting}
    options.pictures.mkdir(parents=True, exist_ok=True)
    print(
        f"{count} boxes drawn by seed {options.seed}, {options.lanes} detectors, at speed {options.speed:g}"
    )
    found = list[tuple[Box, Finding]]()
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="skerry-materials-")))
        detectors = [
            Detector(iter(belt), options.seed + lane, options.speed) for lane in range(options.lanes)
        ]
        for detector in detectors:
            ends.callback(detector.close)
        judges = Judges(options.seed)
        print("the gateway starts …", flush=True)
        client = ends.enter_context(gateway(folder))
        prepare(client, [detector.address for detector in detectors])
        rows = ends.enter_context(client.query(QUERY))
        seen = set[int]()
        for finding in findings(rows, judges, Bounds()):
            if finding.box in seen:
                continue
            box = by_number[finding.box]
            others = ", ".join(f"{who}: {says}" for who, says in finding.says.items())
            print(
                f"lane {finding.lane}  box {finding.box:3}  {finding.seconds:5.1f} s  {finding!s:20}  ({others})",
                flush=True,
            )
            if finding.outcome == Outcome.MORE:
                continue
            seen.add(finding.box)
            found.append((box, finding))
            detectors[finding.lane - 1].move_on()
            if finding.material is not None:
                path = options.pictures / f"box-{finding.box}.{options.format}"
                drawing.draw(path, finding.box, finding.material, finding.seconds, finding.counts)
            if len(found) == count:
                break
    return found


def _told(found: list[tuple[Box, Finding]], pictures: Path) -> None:
    right = sum(box.material == (finding.material or boxes.SAFE) for box, finding in found)
    seconds = sorted(finding.seconds for _, finding in found)
    if found:
        middle = seconds[len(seconds) // 2]
        print(
            f"{right} of {len(found)} boxes are what was found; half were decided within {middle:g} s of exposure; pictures: {pictures}"
        )


def main() -> int:
    """0 when all boxes were decided."""
    parser = argparse.ArgumentParser(prog="python -m examples.materials", description=__doc__)
    parser.add_argument("--boxes", type=int, default=20, help="how many pass (default 20)")
    parser.add_argument("--lanes", type=int, default=3, help="detectors (default 3)")
    parser.add_argument("--seed", type=int, default=1, help="boxes and counts are drawn from it (default 1)")
    parser.add_argument(
        "--speed", type=float, default=1.0, help="seconds of exposure in one of yours (default 1)"
    )
    parser.add_argument(
        "--pictures",
        type=Path,
        default=Path("build/materials"),
        help="folder for spectra (default build/materials)",
    )
    parser.add_argument("--format", choices=("png", "svg"), default="png", help="of pictures (default png)")
    options = parser.parse_args()
    if options.boxes < 1 or options.lanes < 1 or options.speed <= 0:
        parser.error("boxes and lanes are at least 1, and speed is above 0")
    try:
        found = run(options)
    except KeyboardInterrupt:
        print("stopped")
        return 1
    except GatewayError as error:
        print(error, file=sys.stderr)
        return 1
    _told(found, options.pictures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
