"""Answers of a join over sources of which half are silent: how late they come, beside the same without the silent ones.

Each source is a TCP connection. An item is told by a source of one side, and a moment later by one of the other; both are joined by it.
An answer's latency is from when its second row was sent to when its reader has it. Rounds with and without silent sources take turns on
one gateway, whose query goes on: their tuples are inserted and deleted.
"""

from __future__ import annotations

import json
import random
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import skerry
from bench.measuring.open_files import allow_open_files
from bench.measuring.talkers import Talker
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from examples.running_gateway import gateway
from gateway.tests.process import wait_for

CREATE = "CREATE SENSORS sources (id INT, side TEXT, reading STREAM (item INT))"
QUERY = """
SELECT a.item AS item FROM sources a, sources b WINDOW 1 min WHERE a.side = 'left' AND b.side = 'right' AND a.item = b.item LATENESS 10 s"""
SIDES = "left", "right"
#: Until the second row of an item, in s; tuples of one statement.
_LATER_S, _AT_ONCE = 0.1, 100
_WAIT_S = 120.0


@dataclass(frozen=True)
class Sources(SeedOptions):
    talking: int = option(500, "sources that send rows")
    silent: int = option(500, "sources that never do")
    rounds: int = option(3, "rounds of each kind")
    items: int = option(1_000, "items in each round")
    rate: float = option(20.0, "items a second")


class Answers:
    """When each item was sent, and when it came."""

    def __init__(self, rows: skerry.Rows) -> None:
        self.sent: dict[int, float] = {}
        self.took: dict[int, float] = {}
        self._rows = rows
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for row in self._rows:
            self.took[row["item"]] = time.monotonic() - self.sent[row["item"]]


def insert(client: skerry.Client, first: int, addresses: list[tuple[str, str]]) -> None:
    """A tuple for each side and address."""
    values = [f"({number}, '{side}', '{address}')" for number, (side, address) in enumerate(addresses, first)]
    for at in range(0, len(values), _AT_ONCE):
        client.execute(f"INSERT INTO sources VALUES {', '.join(values[at : at + _AT_ONCE])}")


def send(
    sides: list[Talker], first: int, options: Sources, answers: Answers, chance: random.Random
) -> list[float]:
    """A round; its latencies, as far as answers come at all."""
    began, items = time.monotonic(), range(first, first + options.items)
    for place, item in enumerate(items):
        time.sleep(max(0.0, began + place / options.rate - time.monotonic()))
        line = json.dumps({"item": item}).encode() + b"\n"
        one, other = chance.sample(sides, 2)
        one.send(line, chance)
        # The one before has waited for so long.
        time.sleep(min(_LATER_S, 0.5 / options.rate))
        answers.sent[item] = time.monotonic()
        other.send(line, chance)
    wait_for(lambda: all(item in answers.took for item in items), _WAIT_S)
    return [answers.took[item] for item in items]


def measure(options: Sources, recorder: Recorder) -> None:
    """One gateway, and rounds of both kinds by turns."""
    # Two ends of each, and what else is open.
    allow_open_files(2 * (options.talking + options.silent) + 512)
    chance, sides, mute = random.Random(options.seed), [Talker(), Talker()], Talker()
    took: dict[int, list[float]] = {0: [], options.silent: []}
    table = recorder.table(
        "rounds",
        [
            Column("round"), Column("silent sources", form=","), Column("median", "ms", ",.0f", better="less"),
            Column("95 %", "ms", ",.0f", better="less"), Column("most", "ms", ",.0f"),
        ],
        labels=2,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="skerry-bench-") as directory, gateway(Path(directory)) as client:
        client.execute(CREATE)
        talking = [(SIDES[number % 2], sides[number % 2].address) for number in range(options.talking)]
        insert(client, 0, talking)
        answers = Answers(client.query(QUERY))
        wait_for(lambda: sum(side.listeners for side in sides) == options.talking, _WAIT_S)
        wait_for(lambda: client.status()["spark"]["state"] == "running", _WAIT_S)
        # Once, until everything has been used.
        first = 0
        send(sides, first, options, answers, chance)
        for number in recorder.steps(range(2 * options.rounds), "rounds"):
            # By turns the one and the other first.
            silent = options.silent if (number + 1) // 2 % 2 else 0
            if silent and not mute.listeners:
                insert(client, options.talking, [(SIDES[place % 2], mute.address) for place in range(silent)])
            elif not silent and mute.listeners:
                client.execute(f"DELETE FROM sources WHERE id >= {options.talking}")
            wait_for(lambda silent=silent: mute.listeners == silent, _WAIT_S)
            first += options.items
            found = send(sides, first, options, answers, chance)
            took[silent] += found
            table.row(
                number + 1, silent, *(1e3 * float(np.quantile(found, share)) for share in (0.5, 0.95, 1.0))
            )
    for talker in (*sides, mute):
        talker.close()
    late = {silent: float(np.quantile(found, 0.95)) for silent, found in took.items()}
    recorder.figure(
        f"95 % of answers come after, {options.silent} of {options.talking + options.silent} sources silent, ÷ without these",
        late[options.silent] / late[0], "×", ".2f", better="less", goal=1.1, main=True,
    )  # fmt: skip
    recorder.figure(
        "95 % of answers come after, half of the sources silent", late[options.silent], "s", ".2f", better="less", goal=1, main=True,
    )  # fmt: skip


BENCHMARK = Benchmark(measure, quick=Sources(talking=20, silent=20, rounds=1, items=40, rate=5.0), minutes=8)
