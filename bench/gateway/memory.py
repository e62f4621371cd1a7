"""Memory of a gateway and all that it has started, over a real network whose users come and go: proportional (PSS), all together."""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

import skerry
from bench.gateway.row_latency import running
from bench.measuring.gateways import gateway_over
from bench.measuring.processes import JAVA, PYTHON, WORKERS, memory_shares
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from gateway.tests.process import wait_for

#: s between two looks.
LOOK_S = 10.0
#: What users ask: rows, conditions, averages of motes and of the network, windows.
QUERIES = (
    "SELECT nodeid, temp, light FROM sensors SAMPLE PERIOD {0} s",
    "SELECT nodeid, temp FROM sensors WHERE temp > {1} SAMPLE PERIOD {0} s",
    "SELECT nodeid, light, voltage FROM sensors WHERE nodeid % 3 = {2} SAMPLE PERIOD {0} s",
    "SELECT AVG(temp), COUNT(*) FROM sensors SAMPLE PERIOD {0} s",
    "SELECT nodeid % 4 AS part, MAX(light) AS most FROM sensors GROUP BY nodeid % 4 SAMPLE PERIOD {0} s",
    "SELECT nodeid, MAX(temp, 64 s) AS most FROM sensors GROUP BY nodeid SAMPLE PERIOD {0} s",
)


@dataclass(frozen=True)
class Crowd(SeedOptions):
    seed: int = option(1, "what is random is drawn from it")
    minutes: float = option(30.0, "for how long")
    motes: int = option(20, "motes of the network")
    users: int = option(24, "users who are there")
    stay: float = option(240.0, "s that each stays, on average")


class Users:
    """So many, each of whom reads his rows until his time is over; then another one comes."""

    def __init__(self, client: skerry.Client, options: Crowd) -> None:
        self._client, self._options = client, options
        self._chance = random.Random(options.seed)
        self._over = threading.Event()
        self._count = threading.Lock()
        self.rows = self.came = 0
        #: What went wrong.
        self.troubles: list[str] = []
        self._threads = [threading.Thread(target=self._one, daemon=True) for _ in range(options.users)]

    def start(self) -> None:
        """All of them."""
        for thread in self._threads:
            thread.start()

    def _one(self) -> None:
        while not self._over.is_set():
            with self._count:
                self.came += 1
                text = self._chance.choice(QUERIES).format(
                    self._chance.choice((2, 4, 8)), self._chance.randrange(15, 25), self._chance.randrange(3)
                )
                ends = time.monotonic() + self._chance.expovariate(1 / self._options.stay)
            try:
                rows = self._client.query(text)
                while not self._over.is_set() and (left := ends - time.monotonic()) > 0:
                    found = rows.to_arrow(seconds=min(left, 5.0)).num_rows
                    with self._count:
                        self.rows += found
                rows.stop()
            except skerry.GatewayError as error:
                # Motes run a bounded number of queries at once.
                self.troubles.append(f"{text}: {error}")
                self._over.wait(10)

    def stop(self) -> None:
        """All of them, within some seconds."""
        self._over.set()
        for thread in self._threads:
            thread.join(30)


def measure(options: Crowd, recorder: Recorder) -> None:
    """Looks each 10 s while users come and go, and once more when they have left and a minute has gone by."""
    table = recorder.table(
        "course",
        [
            Column("after", "min", ".0f"), Column("all", "GiB", ".2f", better="less"), Column(PYTHON, "GiB", ".2f"),
            Column(JAVA, "GiB", ".2f"), Column(WORKERS, "GiB", ".2f"),
        ],
    )  # fmt: skip
    looks: list[dict[str, float]] = []
    with running(options.seed, {}, options.motes) as link, gateway_over(link) as daemon:
        recorder.progress("starting")
        daemon.start()
        client = daemon.client("crowd")
        wait_for(
            lambda: (
                client.status()["spark"]["state"] == "running" and client.status()["motes"] == options.motes
            )
        )
        assert daemon.process is not None
        users, began, told = Users(client, options), time.monotonic(), 0.0
        users.start()
        while (gone := time.monotonic() - began) < 60 * options.minutes:
            time.sleep(min(LOOK_S, 10 * options.minutes))
            with suppress(FileNotFoundError, ProcessLookupError):
                looks.append({name: held / 2**30 for name, held in memory_shares(daemon.process.pid).items()})
            if gone >= told and looks:
                told += 60 * options.minutes / 10
                table.row(
                    gone / 60, sum(looks[-1].values()), *(looks[-1][name] for name in (PYTHON, JAVA, WORKERS))
                )
            recorder.progress(
                f"{gone / 60:.0f} min, {sum(looks[-1].values()):.2f} GiB, {users.came} users, {users.rows} rows"
            )
        users.stop()
        last = looks[-1]
    for trouble in users.troubles[:3]:
        recorder.remark(f"Refused: {trouble}")
    if not users.rows:
        recorder.problem("no rows came")
    recorder.remark(f"{users.came} users came, and got {users.rows:,} rows.")
    figure = recorder.figure
    named = f"{options.motes} motes, {options.users} users who come and go"
    figure(
        f"memory of all processes at most, {named}", max(sum(look.values()) for look in looks), "GiB", ".2f", better="less",
        goal=0.93, reference="1.0 GB", main=True,
    )  # fmt: skip
    figure("the same at the end", sum(last.values()), "GiB", ".2f", better="less")
    figure("Java's part of that", last[JAVA], "GiB", ".2f", better="less")


BENCHMARK = Benchmark(measure, quick=Crowd(minutes=1.0, motes=6, users=6, stay=20.0), minutes=31)
