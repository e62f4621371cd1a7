"""A soak: a network, its links and what goes wrong with it drawn from one seed; and what has to hold all the same."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hil_tests.clocks import time_errors
from skerry_testbed.network import (
    Bursts,
    Crystals,
    Environment,
    Fault,
    Field,
    Interference,
    Mote,
    Network,
    Radio,
    check,
)
from skerry_testbed.pytest import NetworkHandle
from skerry_testbed.queries import ask, rows

PERIOD_S = 10
#: Before the first fault: to join and get the query.
SETTLE_S = 90.0
#: After the last: who was cut off for long listens only 32 s of every 17 minutes (docs/network.md), and by then his children may, too.
RECOVER_S = 2500.0
#: Then epochs count, and rows that come later than PATIENCE_S after the last are lost.
FINAL_EPOCHS, PATIENCE_S = 20, 60.0
FINAL_YIELD = 0.98
TIME_ERROR_S = 0.001
#: The root says what time it is when it boots and when the line is opened; its crystal drifts from then on.
CLOCK_SLACK_S = 5.0
BASE, SLOPE_X, SLOPE_Y = 10.0, 0.4, 0.3
#: °C; the CC2538 mote's sensor is read to 0.3.
VALUE_ERROR = 0.8
#: Links better than this both ways are counted on for who can be reached.
GOOD_LINK = 0.7

Rng = random.Random


@dataclass
class Outcome:
    """What a run came to; ``problems`` is empty when all held."""

    seed: int
    motes: int
    faults: Counter[str]
    yield_during: float
    yield_after: float
    worst_time_s: float
    duplicates: int
    problems: list[str] = field(default_factory=list)


def draw(seed: int, minutes: float) -> Network:
    """The network of a seed, with faults over so many minutes."""
    rng = Rng(seed)
    columns, rows_ = rng.choice([(3, 3), (4, 3), (5, 2), (4, 4), (8, 1)])
    boards = rng.choice([("iris",), ("cc2538",), ("iris", "cc2538")])
    motes = [
        Mote(
            id=n, x=n % columns * 10 + rng.uniform(-1, 1), y=n // columns * 10 + rng.uniform(-1, 1), board=boards[n % len(boards)],
            root=n == 0,
        )
        for n in range(columns * rows_)
    ]  # fmt: skip
    end = SETTLE_S + minutes * 60
    if rng.random() < 0.3:
        _walk(rng, rng.choice(motes[1:]), end)
    model = _radio(rng)
    crystal = None
    if rng.random() < 0.5:
        crystal = Crystals()
        for mote in motes:
            mote.temperature = [
                (at, rng.uniform(-20, 60)) for at in sorted(rng.uniform(0, end) for _ in range(4))
            ]
    fields = {"temp": Field(base=BASE, gradient=(SLOPE_X, SLOPE_Y))}
    return check(
        Network(
            name=f"soak {seed}", seed=seed, mote=motes, radio=model, crystal=crystal, environment=Environment(fields=fields),
            interference=list(_interference(rng, motes, end)), fault=list(_faults(rng, motes, end)),
        )
    )  # fmt: skip


def _walk(rng: Rng, mote: Mote, end: float) -> None:
    """Somewhere and back."""
    times = sorted(rng.uniform(SETTLE_S, end) for _ in range(3))
    x, y = mote.x + rng.uniform(-30, 30), mote.y + rng.uniform(-30, 30)
    mote.path = [(times[0], mote.x, mote.y), (times[1], x, y), (times[2], mote.x, mote.y)]


def _radio(rng: Rng) -> Radio:
    bursts = None
    if rng.random() < 0.5:
        bursts = Bursts(
            good=rng.uniform(10, 120), bad=rng.uniform(0.5, 8), reception=rng.uniform(0, 0.5), symmetric=rng.random() < 0.5
        )  # fmt: skip
    if rng.random() < 0.5:
        return Radio(model="disc", range_m=16, reception=rng.uniform(0.8, 1), bursts=bursts)
    return Radio(
        exponent=3.5, reference_db=46, shadowing_db=rng.uniform(0, 3), asymmetry_db=rng.uniform(0, 3), bursts=bursts
    )  # fmt: skip


def _interference(rng: Rng, motes: list[Mote], end: float) -> Iterator[Interference]:
    for _ in range(rng.choice([0, 0, 1, 2])):
        mote, begin = rng.choice(motes), rng.uniform(SETTLE_S, end * 0.8)
        yield Interference(
            x=mote.x + 3, y=mote.y + 3, power_dbm=rng.uniform(-20, 0), duty=rng.uniform(0.05, 0.4), burst=rng.uniform(2e-3, 0.05),
            begin=begin, end=rng.uniform(begin + 1, end),
        )  # fmt: skip


def _faults(rng: Rng, motes: list[Mote], end: float) -> Iterator[Fault]:
    """One every 75 s or so. What is cut is healed within two minutes and half, and everything at the end."""
    ids = [mote.id for mote in motes]
    dead = 0
    for _ in range(max(1, round((end - SETTLE_S) / 75))):
        at = rng.uniform(SETTLE_S, end - 1)
        healed = min(end, at + rng.uniform(10, 150))
        mote, other = rng.sample(ids, 2)
        kind = rng.choice(
            ["kill", "reboot", "mass_reboot", "link_down", "partition", "clock_drift", "serial_noise"]
        )
        if kind == "kill" and mote:
            yield Fault(at=at, kind="kill", mote=mote)
            if rng.random() < 0.6 or dead >= len(ids) // 5:
                yield Fault(at=healed, kind="reboot", mote=mote)
            else:
                dead += 1
        elif kind == "reboot":
            yield Fault(at=at, kind="reboot", mote=mote)
        elif kind == "mass_reboot":
            yield Fault(
                at=at,
                kind="mass_reboot",
                motes=rng.sample(ids, rng.randint(2, len(ids))),
                within=min(20.0, end - at),
            )
        elif kind == "link_down":
            one_way = rng.random() < 0.5
            yield Fault(at=at, kind="link_down", mote=mote, to=other, one_way=one_way)
            yield Fault(at=healed, kind="link_up", mote=mote, to=other, one_way=one_way)
        elif kind == "partition":
            inside = rng.sample(ids, rng.randint(1, len(ids) // 2))
            yield Fault(at=at, kind="partition", motes=inside)
            for a, b in itertools.product(inside, set(ids) - set(inside)):
                yield Fault(at=healed, kind="link_up", mote=a, to=b)
        elif kind == "clock_drift":
            yield Fault(at=at, kind="clock_drift", mote=mote, ppm=rng.uniform(-80, 80))
        elif kind == "serial_noise":
            yield Fault(at=at, kind="serial_noise", bytes=rng.randint(1, 500))


class Session:
    """Rows of the query that runs, asked again whenever the root has rebooted."""

    def __init__(self, net: NetworkHandle) -> None:
        self._net = net
        self.rows: list[dict[str, Any]] = []
        self.began: list[float] = []
        self._ask()

    def _ask(self) -> None:
        line = self._net.line
        assert line.hello is not None
        line.query_version = 0
        line.records.clear()
        self._root_session = line.hello.session
        self._query = ask(self._net, 1, f"SELECT nodeid, temp FROM sensors SAMPLE PERIOD {PERIOD_S} s")
        self.began.append(self._net.now)

    def step(self, duration_s: float) -> None:
        """Let time pass; take rows."""
        line = self._net.line
        end = self._net.now + duration_s
        while self._net.now < end - 1e-6:
            self._net.advance(min(1.0, end - self._net.now))
            assert line.hello is not None
            same = line.hello.session == self._root_session
            for row in rows(line, 1, self._query):
                # Those of the second in which the root rebooted are by a clock that is gone.
                ahead = row["epoch"] * PERIOD_S - line.network_time() if same else -math.inf
                self.rows.append({**row, "session": self._root_session, "ahead": ahead})
            line.records.clear()
            if not same:
                self._net.advance(3.0)
                self._ask()


def expected_resets(network: Network) -> Counter[int]:
    """How often each mote is made to restart."""
    found: Counter[int] = Counter()
    for fault in network.fault:
        found.update([fault.mote] if fault.kind == "reboot" and fault.mote is not None else [])
        found.update(fault.motes if fault.kind == "mass_reboot" else [])
    return found


def reached(net: NetworkHandle) -> set[int]:
    """Living motes with a way of good links between living motes to the root."""
    links, index = net.bed.links, net.bed.index
    alive = [n for n, mote in net.motes.items() if mote.alive]

    def good(a: int, b: int) -> bool:
        return links.reception(index[a], index[b]) >= GOOD_LINK

    found, new = {0}, {0}
    while new:
        new = {b for b in alive if b not in found and any(good(a, b) and good(b, a) for a in new)}
        found |= new
    return found


def run(net: NetworkHandle, minutes: float, recover_s: float = RECOVER_S) -> Outcome:
    """Of a network that was drawn for so many minutes, and is connected: run it, and see what holds."""
    network = net.bed.network
    net.advance(SETTLE_S - 60)
    session = Session(net)
    session.step(max(0.0, SETTLE_S - net.now))
    living = 0.0
    start = net.now
    for _ in range(round(minutes * 60 / PERIOD_S)):
        session.step(PERIOD_S)
        living += sum(mote.alive for mote in net.motes.values())
    during = {(row["session"], row["nodeid"], row["epoch"]) for row in session.rows if row["at"] > start}
    session.step(recover_s)
    net.frames.clear()
    first = int(net.line.network_time() // PERIOD_S) + 1
    session.step(FINAL_EPOCHS * PERIOD_S)
    clocks = time_errors(net)
    session.step(PATIENCE_S)
    counted = reached(net)
    final = {
        (row["nodeid"], row["epoch"])
        for row in session.rows
        if row["session"] == session.rows[-1]["session"] and first <= row["epoch"] < first + FINAL_EPOCHS
    }
    arrived = Counter(node for node, _ in final if node in counted)
    copies = Counter((row["session"], row["nodeid"], row["epoch"]) for row in session.rows)
    outcome = Outcome(
        seed=network.seed, motes=len(net.motes), faults=Counter(fault.kind for fault in network.fault if fault.kind != "link_up"),
        yield_during=len(during) / living, yield_after=arrived.total() / (len(counted) * FINAL_EPOCHS),
        worst_time_s=max(clocks.get(n, math.inf) for n in counted), duplicates=sum(count - 1 for count in copies.values()),
    )  # fmt: skip
    _judge(net, network, session, outcome, {n: FINAL_EPOCHS - arrived[n] for n in counted})
    return outcome


def _judge(
    net: NetworkHandle, network: Network, session: Session, outcome: Outcome, missing: dict[int, int]
) -> None:
    """Write down what did not hold. That no CPU stopped on a fault, ``NetworkHandle.advance`` has seen to."""
    problems = outcome.problems
    wanted = expected_resets(network)
    for n, mote in net.motes.items():
        if (resets := mote.counters["resets"]) != wanted[n]:
            problems.append(f"mote {n} restarted {resets} times, {wanted[n]} were meant")
    moving = {mote.id for mote in network.mote if mote.path}
    for row in session.rows:
        sender = next((mote for mote in network.mote if mote.id == row["nodeid"]), None)
        if row["ahead"] > CLOCK_SLACK_S:
            problems.append(
                f"mote {row['nodeid']}: a row of epoch {row['epoch']}, {row['ahead']:.0f} s before it begins"
            )
        if sender is None:
            problems.append(f"a row of mote {row['nodeid']}, which is none")
        elif sender.id not in moving and row["temp"] is not None:
            right = BASE + SLOPE_X * sender.x + SLOPE_Y * sender.y
            if abs(row["temp"] - right) > VALUE_ERROR:
                problems.append(
                    f"mote {sender.id}, epoch {row['epoch']}: temp {row['temp']}, {right:.1f} was right"
                )
    if outcome.yield_after < FINAL_YIELD:
        late = {n: count for n, count in missing.items() if count}
        problems.append(f"{outcome.yield_after:.1%} of the rows after recovery; missing by mote: {late}")
    if outcome.worst_time_s > TIME_ERROR_S:
        problems.append(f"time is off by {outcome.worst_time_s * 1e3:.2f} ms after recovery")
