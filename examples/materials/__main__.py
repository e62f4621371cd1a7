"""``python -m examples.materials``: boxes pass detectors until each is decided; Ctrl-C ends it, and all that it has started."""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from examples.materials import boxes, drawing
from examples.materials.boxes import Box
from examples.materials.decision import Bounds, Outcome
from examples.materials.detectors import Detector
from examples.materials.inspection import QUERY, Finding, findings, prepare
from examples.materials.judges import Judges
from examples.running_gateway import gateway
from skerry.client.errors import GatewayError


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
