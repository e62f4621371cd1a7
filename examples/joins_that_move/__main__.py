"""``python -m examples.joins_that_move``: motes join their rows, at the base, then where that costs least. Ctrl-C ends it."""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import threading
from contextlib import closing
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from examples.joins_that_move.corridor import ASKED_S, MOTES, PAIRS, join, network
from examples.joins_that_move.spending import Meter, Spent
from skerry_testbed.asking import Asking
from skerry_testbed.errors import TestbedError
from skerry_testbed.runner import Testbed

#: Behind a change both queries run until the new one's windows are full: what is spent is measured after so long, in s.
SETTLED_S = 180.0
#: Answers that are shown.
SHOWN = 3


class Watch:
    """Where it is joined, since when, and what that costs."""

    def __init__(self, bed: Testbed, meter: Meter, console: Console) -> None:
        self._bed, self._meter, self._console = bed, meter, console
        self._joined: dict[str, Any] | None = None
        self._begun: Spent | None = None
        #: Strategy, and what was spent while it was it.
        self.spent: list[tuple[str, Spent]] = []
        self.answers = 0

    def row(self, text: str) -> None:
        """An answer."""
        self.answers += 1
        if self.answers <= SHOWN:
            told = json.loads(text)
            row = told["row"]
            self.say(f"{row['s']} and {row['t']} differ by {row['difference']:.2f} °C", told["at"])

    def look(self, joined: dict[str, Any] | None) -> None:
        """Called now and then."""
        if joined is None:
            return
        if self._joined is None or _place(joined) != _place(self._joined):
            self._over()
            self._joined, self._begun = joined, None
            self._since = self._bed.now_s
            for change in joined["learning"]["changes"][-1:]:
                self.say(f"moved from {change['from']} to {change['to']}: {change['why']}")
            self.say(f"joined {joined['kind']}: {where(joined)}")
        elif self._begun is None and self._bed.now_s - self._since >= SETTLED_S:
            self._begun = self._meter.now()

    def _over(self) -> None:
        if self._joined is not None and self._begun is not None:
            self.spent.append((self._joined["kind"], self._begun.until(self._meter.now())))

    def end(self) -> None:
        """The run is over."""
        self._over()

    def say(self, text: str, at_s: float | None = None) -> None:
        """A line, with the time of the run."""
        minutes, seconds = divmod(self._bed.now_s if at_s is None else at_s, 60)
        self._console.print(
            f"{minutes:3.0f}:{int(seconds):02} {text}", highlight=False, markup=False, soft_wrap=True
        )


def _place(joined: dict[str, Any]) -> tuple[Any, ...]:
    return joined["kind"], json.dumps(joined["hosts"])


def where(joined: dict[str, Any]) -> str:
    """By the mote that joins, its pairs."""
    by_host = [(f"mote {host['mote']}", host["pairs"]) for host in joined["hosts"]]
    base = [one["pair"] for one in joined["base"]]
    by_host += [("the gateway", base)] if base else []
    return "; ".join(f"{name} has {', '.join(f'{s} with {t}' for s, t in pairs)}" for name, pairs in by_host)


def run(options: argparse.Namespace, console: Console) -> Watch:
    """Raises TestbedError."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    described = network(options.seed, options.cost)
    console.print(
        f"{len(MOTES)} motes, seed {options.seed}: a corridor of six, the root at its end, and two rooms"
    )
    console.print(f"asked after {ASKED_S:.0f} s: {join(options.cost)}", highlight=False, soft_wrap=True)
    bed = Testbed(described)
    meter = Meter(bed)
    watch = Watch(bed, meter, console)
    columns = (TextColumn("{task.description}"), BarColumn())
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    # What the gateway says in lines of its own is told by the watch.
    with closing(Asking(bed, described.query, watch.row, lambda _: None)) as asking, progress:
        task = progress.add_task("", total=options.minutes)

        def step() -> None:
            progress.update(task, completed=bed.now_s / 60, description=f"{bed.now_s / 60:.0f} min")
            watch.look(asking.joined.get("1"))

        bed.run(options.minutes * 60, math.inf, stop.is_set, step)
        watch.end()
        if not stop.is_set():
            [asked, *_] = asking.report(bed.report()["queries"])["asked"]
            learning = (asked["joined"] or {}).get("learning")
            _tell_counted(watch, learning)
    return watch


def _tell_counted(watch: Watch, learning: dict[str, Any] | None) -> None:
    counted = learning["counted"] if learning is not None else None
    if learning is not None and counted is not None:
        shares = ", ".join(f"{name} {share:.1%}" for name, share in counted.items())
        watch.say(f"counted in {learning['epochs']} sample periods since: {shares}")


def main() -> int:
    """The command line. Exit codes: 0, 1 where something is missing."""
    parser = argparse.ArgumentParser(prog="python -m examples.joins_that_move", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of what motes measure, and of the radio (1)")
    parser.add_argument("--minutes", type=float, default=30, help="of virtual time (30)")
    parser.add_argument(
        "--cost", choices=("bytes", "energy"), default="bytes", help="what is to be little (bytes on the air)"
    )
    options = parser.parse_args()
    if options.minutes <= 0 or not 0 <= options.seed < 1 << 64:
        parser.error("--minutes is more than 0, and --seed from 0 to 2 to the power of 64")
    console = Console()
    try:
        watch = run(options, console)
    except TestbedError as error:
        print(f"joins_that_move: {error}", file=sys.stderr)
        return 1
    for strategy, spent in watch.spent:
        console.print(f"{strategy}: {spent}, over {spent.at_s / 60:.0f} min", highlight=False)
    console.print(f"{watch.answers} answers of {PAIRS} pairs", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
