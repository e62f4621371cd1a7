"""Sets of users on one network of both boards: they ask, stop and come back, the root and the gateway are restarted, and each has what
his query alone would give. SKERRY_EVERYBODY_MINUTES and SKERRY_EVERYBODY_USERS say how long and
with how many users, as in 2,12,30."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

import skerry
from gateway.tests.generated import Row
from gateway.tests.process import Daemon, wait_for
from hil_tests import everybody
from hil_tests.everybody import Life
from hil_tests.test_against_duckdb import compare
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry_testbed.description import Fault
from skerry_testbed.runner import Testbed
from skerry_testbed.serial_port import SerialPort

MINUTES = int(os.environ.get("SKERRY_EVERYBODY_MINUTES", "10"))
USERS = [int(number) for number in os.environ.get("SKERRY_EVERYBODY_USERS", "2,12,30").split(",")]
#: Motes go no faster than this, as a clock: what a gateway and its line take of this machine's time, queries begin later.
SPEED = 10.0
#: So far motes may be ahead of what the gateway has heard of their time, in s: neither waits for this machine.
AHEAD_S = 5
#: Epochs so long before and after a restart may be short or missing.
BEFORE_S, AFTER_S = 20, 90


class Motes:
    """Emulated motes that go on in a thread, never further than they may."""

    def __init__(self, bed: Testbed) -> None:
        self.bed, self.line = bed, SerialPort(bed, 0, SPEED)
        self.limit_s, self.reboots, self.creeping = 0.0, 0, False
        self._moved, self._stop = threading.Condition(), threading.Event()
        self._thread = threading.Thread(
            target=lambda: bed.run(None, SPEED, self._stop.is_set, self._poll, closely=True)
        )

    def _poll(self) -> None:
        self.line.poll()
        while self.bed.now_s >= self.limit_s and not self._stop.is_set():
            with self._moved:
                self._moved.wait(0.01)
            self.line.poll()
            if self.creeping and self.line.connected:
                self.limit_s += 0.05
        while self.reboots:
            self.bed.inject(Fault(at=0, kind="reboot", mote=0))
            self.reboots -= 1

    def until(self, at_s: float) -> None:
        self.limit_s = max(self.limit_s, at_s)
        with self._moved:
            self._moved.notify()

    def start(self, daemon: Daemon) -> None:
        """Start a gateway. Motes wait until it has opened the line, and go on then, as the root has to answer."""
        self.creeping = True
        daemon.start()
        self.creeping = False

    @contextmanager
    def running(self) -> Iterator[Motes]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join()
            self.line.close()


def last_due_s(life: Life) -> int:
    """An epoch that has been answered when it is stopped."""
    return life.until_s - 30 - 2 * life.period_s


class Reader:
    """Takes a user's rows in a thread of its own, over restarts of the gateway, until the query ends or is stopped."""

    def __init__(self, client: skerry.Client, life: Life) -> None:
        self.life, self._asked = life, client.query(life.sql)
        self.client, self.failed = client, ""
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        try:
            for row in self._asked:
                self.life.got.append(row)
        except skerry.GatewayError as error:
            self.failed = str(error)

    def stop(self, root_s: int) -> None:
        """At its time, and not before the rows that are due have come: neither waits for this machine."""
        due_s = last_due_s(self.life)
        wait_for(lambda: max((at for at, _, _ in epochs(self.life, root_s)), default=0) >= due_s)
        self.client.stop(self._asked.id)


def epochs(life: Life, root_s: int) -> Iterator[tuple[int, int, list[dict[str, Any]]]]:
    """When each epoch of a user's rows began, in s, its number, and its rows. Numbers begin anew with the root's session, at ``root_s``."""
    since_s, before = root_s if life.asked_s > root_s else 0, -1
    # Epochs of aggregates come in their order; a row that was sent again may come behind the next epoch's.
    late = 0 if _plan(life).aggregate else 2
    for epoch, group in groupby(list(life.got), lambda row: int(row["epoch"])):
        # Of the session behind the root's restart: network time begins anew.
        if not since_s and (epoch < before - late or epoch * life.period_s < life.asked_s - BEFORE_S):
            since_s, before = root_s, -1
        assert epoch > before - late - 1, f"{life.sql}: epoch {epoch} comes behind {before}"
        before = max(before, epoch)
        yield since_s + epoch * life.period_s, epoch, list(group)


def _plan(life: Life) -> QueryPlan:
    plan = plan_query(f"{life.asked.sql} SAMPLE PERIOD {life.period_s} s")
    assert isinstance(plan, QueryPlan)
    return plan


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("users", USERS)
def test_each_user_has_what_his_query_alone_would_give(tmp_path: Path, users: int) -> None:
    seed = int(os.environ.get("SKERRY_EVERYBODY_SEED", str(users)))
    print(f"seed {seed}, {users} users, {MINUTES} minutes")
    network = everybody.describe(tmp_path, seed, MINUTES)
    by_minute = everybody.readings(network, MINUTES)
    assert all(len(minute) == 12 for minute in by_minute[1:MINUTES])
    # Whole minutes, so that epochs of the new session begin where those of the old one would.
    gateway_s, root_s = MINUTES * 60 // 3, MINUTES // 2 * 60 + 60
    restarts = [(gateway_s - BEFORE_S, gateway_s + AFTER_S), (root_s - BEFORE_S, root_s + AFTER_S)]
    lives = everybody.lives(seed, users, MINUTES, [(since - 60, end) for since, end in restarts])
    bed = Testbed(network)
    with Motes(bed).running() as motes:
        daemon = Daemon(f"socket://127.0.0.1:{motes.line.port}", tmp_path / "data")
        motes.until(20)
        motes.start(daemon)
        try:
            _live(motes, daemon, lives, gateway_s, root_s)
        finally:
            daemon.kill(signal.SIGTERM)
    wrong = [line for life in lives for line in _check(life, by_minute, root_s, restarts)]
    assert not wrong, "\n".join(wrong)


def _live(motes: Motes, daemon: Daemon, lives: list[Life], gateway_s: int, root_s: int) -> None:
    readers: list[Reader] = []
    clients = {life.user: daemon.client(life.user) for life in lives}
    since_s = 0
    for now in range(50, MINUTES * 60 + 120):
        motes.until(now)
        wait_for(lambda now=now: motes.bed.now_s >= now)
        if now == gateway_s:
            daemon.kill()
            motes.start(daemon)
        if now == root_s:
            motes.reboots += 1
            since_s = now
        if now % AHEAD_S == 0 and not 0 <= now - root_s < 20:
            _heard(daemon, now - since_s - AHEAD_S)
        for life in [life for life in lives if life.asked_s == now]:
            readers.append(Reader(clients[life.user], life))
        for reader in [reader for reader in readers if reader.life.until_s == now and reader.life.always]:
            reader.stop(root_s)
    # Who began late ends late.
    for now in range(MINUTES * 60 + 120, MINUTES * 60 + 480):
        if not any(reader.thread.is_alive() for reader in readers if not reader.life.always):
            break
        motes.until(now)
        wait_for(lambda now=now: motes.bed.now_s >= now)
        _heard(daemon, now - since_s - AHEAD_S)
    for reader in readers:
        if not reader.life.always:
            reader.thread.join(120)
            assert not reader.thread.is_alive(), f"{reader.life.user}: {reader.life.sql} does not end"
        assert not reader.failed or "no query" in reader.failed, f"{reader.life.user}: {reader.failed}"


def _heard(daemon: Daemon, network_s: int) -> None:
    """Wait until the gateway knows that the motes have come so far."""
    client = daemon.client()
    wait_for(lambda: (client.status()["network_time_s"] or 0) >= network_s)


def _check(life: Life, by_minute: list[list[Row]], root_s: int, restarts: list[tuple[int, int]]) -> list[str]:
    """What is wrong with a user's rows, in lines."""
    plan = _plan(life)
    rows: dict[int, list[dict[str, object]]] = {}
    for at, epoch, group in epochs(life, root_s):
        assert not plan.aggregate or at not in rows, f"{life.sql}: epoch {epoch} comes twice"
        rows.setdefault(at, []).extend({n: row[n] for n in row if n != "epoch"} for row in group)
    told = f"{life.user} asked at {life.asked_s} s: {life.sql}"
    if life.always:
        assert rows, f"{told}: nothing came"
        begins_s = life.asked_s + 90 + AHEAD_S + life.period_s
        for since, end in restarts:
            # What a restart may take away is no first epoch.
            begins_s = end + life.period_s if since <= begins_s <= end else begins_s
        assert min(rows) <= begins_s, f"{told}: begins at {min(rows)}"
        assert max(rows) >= last_due_s(life), f"{told}: the last is of {max(rows)}"
    if life.always and not plan.aggregate:
        # It was stopped while rows of its last epoch were on their way.
        del rows[max(rows)]
    wrong: list[str] = []
    for at in range(min(rows, default=0), max(rows, default=0) + 1, life.period_s):
        if any(since <= at <= end for since, end in restarts):
            continue
        try:
            compare(life.asked, plan, rows.get(at, []), everybody.read_at(by_minute, at), everybody.NAMES)
        except AssertionError as error:
            wrong.append(f"at {at} s: {error}"[:600])
    return [f"{told}: {len(wrong)} epochs are wrong", *wrong] if wrong else []
