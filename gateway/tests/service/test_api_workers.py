"""Processes that serve readers beside the gateway: each of them gives everybody what the gateway itself would, whatever ends meanwhile."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest

import skerry
from gateway.tests.peer import RootPeer
from gateway.tests.ports import free_port
from gateway.tests.process import COMMAND, Daemon, queue_rows, wait_for
from skerry.client.operator import Operator

pytestmark = [pytest.mark.spark, pytest.mark.slow]
#: From the start to the first row, in s: by then everybody has asked.
LATER_S = 240


class Serving:
    """``skerry serve`` for a gateway, on a port of its own; it can be killed and started again."""

    def __init__(self, daemon: Daemon, *options: str) -> None:
        self.port = free_port()
        self.log = daemon.data.parent / f"serve-{self.port}.log"
        self._command = [
            COMMAND, "serve", "--data", str(daemon.data), "--gateway", daemon.url, "--listen", f"127.0.0.1:{self.port}", *options,
        ]  # fmt: skip
        self._daemon = daemon

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self._command, stderr=log)
        wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", self.port)) == 0)

    def client(self, user: str | None = None) -> skerry.Client:
        return skerry.connect(self.url, user=user, token=self._daemon.token_of(user))

    def kill(self, number: int = signal.SIGKILL) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


def resumed(client: skerry.Client, rows: skerry.Rows, limit_s: float = 120) -> skerry.Rows:
    """Once the process is there, which may just have been killed."""
    deadline = time.monotonic() + limit_s
    while True:
        try:
            return client.resume(rows.id, after=rows.position)
        except skerry.GatewayError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def at_its_end(client: skerry.Client, query: str) -> None:
    """Read a query to its end, or until its user is refused."""
    with suppress(skerry.GatewayError):
        list(client.resume(query))


@dataclass
class Asker:
    """A user, whose reader goes from one process to the other."""

    where: str
    period_s: int
    rows: skerry.Rows
    got: list[tuple[int, float]] = field(default_factory=list)

    def read(self, client: skerry.Client, rows: int | None = None, seconds: float | None = None) -> None:
        """On at this client, from where he was at another."""
        reader = resumed(client, self.rows)
        table = reader.to_arrow(rows=rows, seconds=seconds)
        self.rows.position = reader.position
        self.got += [tuple(row.values()) for row in table.to_pylist()]


class Lab:
    """A gateway, its root, users with drawn queries, and what DuckDB has of the rows that the motes told."""

    def __init__(self, daemon: Daemon, peer: RootPeer, draw: random.Random) -> None:
        self.daemon, self.peer, self.draw = daemon, peer, draw
        tables = daemon.data / "tables"
        tables.mkdir(parents=True, exist_ok=True)
        (tables / "places.csv").write_text("node,floor\n1,0\n2,1\n3,1\n4,0\n")
        # Whoever asks later is served by the query that motes run for this one.
        self._first = daemon.client("all").query("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s")
        wait_for(peer.programs)
        [(self._query, self._program)] = peer.programs().items()
        self.begin = self.end = int(time.monotonic() - peer.began) // 2 * 2 + LATER_S
        self.askers: list[Asker] = []

    def ask(self, client: skerry.Client) -> None:
        low = 20 + self.begin / 10 + self.draw.randrange(60) / 100
        mote = self.draw.randrange(1, 4)
        where = self.draw.choice(
            [
                f"temp > {low:.2f}",
                f"temp BETWEEN {low:.2f} AND {low + 0.8:.2f}",
                f"nodeid = {mote}",
                f"nodeid <> {mote} AND temp < {low:.2f}",
                f"nodeid IN (SELECT node FROM places WHERE floor = {mote % 2}) AND temp < {low:.2f}",
            ]
        )
        period = self.draw.choice((1, 1, 2))
        sql = f"SELECT nodeid, temp FROM sensors WHERE {where} SAMPLE PERIOD {period} s"
        if "places" in where:
            sql = (
                "SELECT s.nodeid, s.temp FROM sensors s, places p "
                f"WHERE p.node = s.nodeid AND p.floor = {mote % 2} AND s.temp < {low:.2f} SAMPLE PERIOD {period} s"
            )
        self.askers.append(Asker(where, period, client.query(sql)))

    def tell(self, epochs: int) -> None:
        begin, self.end = self.end, self.end + epochs
        queue_rows(self.peer, self._query, range(begin, self.end), self._program)

    def settle(self) -> None:
        wait_for(lambda: not self.peer.waiting)
        wait_for(
            lambda: (
                (now := self.daemon.client().status())["processed"]
                == now["rows"]
                == 3 * (self.end - self.begin)
            )
        )

    def expected(self, asker: Asker) -> list[tuple[int, float]]:
        """What DuckDB answers, over the rows that there are. All have been asked before the first row."""
        told = [(e, n, (2000 + e * 10 + n) / 100) for e in range(self.begin, self.end) for n in range(1, 4)]
        database = duckdb.connect()
        database.execute("CREATE TABLE sensors (epoch INTEGER, nodeid INTEGER, temp DECIMAL(9, 2))")
        database.executemany("INSERT INTO sensors VALUES (?, ?, ?)", told)
        database.execute(f"CREATE TABLE places AS FROM '{self.daemon.data / 'tables' / 'places.csv'}'")
        asked = f"SELECT nodeid, temp FROM sensors WHERE ({asker.where}) AND epoch % {asker.period_s} = 0 ORDER BY epoch, nodeid"
        return [(node, float(temp)) for node, temp in database.execute(asked).fetchall()]

    def check(self, clients: list[skerry.Client]) -> None:
        """Each has all his rows once, and a new reader gets them all at each of these."""
        for asker in self.askers:
            expected = self.expected(asker)
            left = len(expected) - len(asker.got)
            if left:
                asker.read(self.draw.choice(clients), rows=left)
            assert asker.got == expected, asker
            asker.read(self.draw.choice(clients), seconds=0.3)
            assert asker.got == expected, asker
        for client in clients:
            asker = self.draw.choice([asker for asker in self.askers if self.expected(asker)])
            rows = client.resume(asker.rows.id).to_arrow(rows=len(self.expected(asker)))
            assert [tuple(row.values()) for row in rows.to_pylist()] == self.expected(asker)


@pytest.fixture(scope="module")
def ended() -> Iterator[list[Any]]:
    """What is to be killed in the end."""
    made: list[Any] = []
    yield made
    for one in made:
        if one.process.poll() is None:
            one.kill()


def workers(client: skerry.Client) -> dict[str, dict[str, Any]]:
    """By name; of the process that was to say so another one may have been killed."""
    while True:
        try:
            return {worker["name"]: worker for worker in client.status()["api_workers"]}
        except skerry.GatewayError as error:
            if "no gateway" not in str(error):
                raise


def test_readers_get_the_same_at_each_process_whatever_is_killed(
    peer: RootPeer, tmp_path: Path, ended: list[Any], drawn_seed: int
) -> None:
    draw = random.Random(drawn_seed)
    daemon = Daemon(peer.url, tmp_path / "data")
    ended.append(daemon)
    daemon.start()
    serving = [Serving(daemon), Serving(daemon)]
    for one in serving:
        one.start()
    ended += serving
    clients = [daemon.client(), *(one.client() for one in serving)]
    lab = Lab(daemon, peer, draw)
    for _ in range(12):
        lab.ask(draw.choice(clients))
    for round_ in range(4):
        lab.tell(20)
        readers = [
            threading.Thread(
                target=asker.read, args=(draw.choice(clients[1:]),), kwargs={"rows": None, "seconds": 4.0}
            )
            for asker in lab.askers
        ]
        for reader in readers:
            reader.start()
        wait_for(lambda: len(peer.waiting) < draw.randrange(50))
        match round_:
            case 0:
                killed = draw.choice(serving)
                killed.kill()
                killed.start()
            case 1:
                daemon.kill()
                daemon.start()
            case 2:
                # Readers find what is gone in the log.
                for file in (daemon.data / "matches").iterdir():
                    file.unlink(missing_ok=True)
        for reader in readers:
            reader.join()
        lab.settle()
    wait_for(lambda: len(workers(daemon.client())) == 2)
    lab.check(clients)
    # Readers who have left are not counted any more.
    wait_for(lambda: daemon.client().status()["feeds"] == 0)
    assert {worker["readers"] for worker in workers(daemon.client()).values()} == {0}
    # What the gateway answers comes through a worker, too.
    assert serving[0].client().tables() == daemon.client().tables()
    mean = serving[0].client("ben").query("SELECT AVG(temp, 2 s) AS mean FROM sensors SAMPLE PERIOD 1 s")
    assert mean.to_arrow(seconds=0.5).num_rows == 0
    with pytest.raises(skerry.GatewayError, match="no query 999"):
        serving[0].client().resume("999")
    # A query that is stopped ends at its readers.
    asker = lab.askers[0]
    ending: list[int] = []
    reading = threading.Thread(target=lambda: ending.append(len(list(clients[1].resume(asker.rows.id)))))
    reading.start()
    wait_for(lambda: daemon.client().status()["feeds"] == 1)
    clients[2].stop(asker.rows.id)
    reading.join(60)
    assert ending == [len(lab.expected(asker))]
    assert [one.kill(signal.SIGTERM) for one in serving] == [0, 0]
    assert [one.log.read_text().count("Traceback") for one in serving] == [0, 0]
    wait_for(lambda: workers(daemon.client()) == {})


def come_and_go(daemon: Daemon, asked: skerry.Rows) -> None:
    """Who is removed is at no process any more, and who has a new token, as ada, has his queries."""
    eve = daemon.client("eve")
    gone = eve.query("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s")
    reading = [threading.Thread(target=at_its_end, args=[eve, gone.id]) for _ in range(4)]
    for reader in reading:
        reader.start()
    wait_for(lambda: daemon.client().status()["feeds"] == 4)
    assert daemon.operator().remove("eve")["stopped"] == [gone.id]
    for reader in reading:
        reader.join(60)
    assert not any(reader.is_alive() for reader in reading)
    for _ in range(8):
        with pytest.raises(skerry.GatewayError, match="does not know this token"):
            eve.resume(gone.id)
    before = daemon.client("ada")
    daemon.tokens.update(daemon.operator().renew("ada")["tokens"])
    assert [query["id"] for query in daemon.client("ada").queries()] == [asked.id]
    with pytest.raises(skerry.GatewayError, match="does not know this token"):
        before.queries()


def test_the_gateways_own_workers_share_its_address_and_are_started_again(
    peer: RootPeer, tmp_path: Path, ended: list[Any]
) -> None:
    draw = random.Random(46)
    daemon = Daemon(peer.url, tmp_path / "data", users=("ada", "ben", "eve"))
    ended.append(daemon)
    options = (
        "--api-workers",
        "2",
        "--tokens",
        "--user-queries",
        "2",
        "--user-rate",
        "1000",
    )
    daemon.start(*options)
    with pytest.raises(skerry.GatewayError, match="does not know this token"):
        skerry.connect(daemon.url, token="c" * 24).status()
    with pytest.raises(skerry.GatewayError, match=r"takes operator\.key of the gateway's data directory"):
        Operator(daemon.url, "c" * 64).remove("ada")
    wait_for(lambda: {one["state"] for one in workers(daemon.client()).values()} == {"connected"})
    client = daemon.client()
    asked = client.query("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s")
    wait_for(peer.programs)
    [(query, program)] = peer.programs().items()
    # However many processes there are, a user has so many feeds in all.
    feeds = [iter(client.resume(asked.id).batches()) for _ in range(4)]
    queue_rows(peer, query, range(60, 70), program)
    assert all(next(feed).num_rows for feed in feeds)
    url = f"{daemon.url}/queries/{asked.id}/rows"
    with client.http.stream("GET", url) as fifth:
        assert fifth.status_code == 429
        assert "4 is the most" in fifth.read().decode()
    for feed in feeds:
        feed.close()  # type: ignore[attr-defined]
    with pytest.raises(skerry.GatewayError, match=f"no query {asked.id}"):
        daemon.client("ben").resume(asked.id)
    come_and_go(daemon, asked)
    client = daemon.client()
    # Readers who were at a worker that is gone go on at another one, or the same.
    got: list[float] = []
    stop = threading.Event()

    def read() -> None:
        for row in client.resume(asked.id):
            got.append(row["temp"])
            if stop.is_set() or len(got) == 3 * 40:
                return

    reading = threading.Thread(target=read)
    reading.start()
    for begin in range(70, 100, 10):
        queue_rows(peer, query, range(begin, begin + 10), program)
        wait_for(lambda: len(peer.waiting) < draw.randrange(30))
        before = workers(daemon.client())
        name = draw.choice(sorted(before))
        os.kill(before[name]["pid"], signal.SIGKILL)
        wait_for(
            lambda name=name, pid=before[name]["pid"]: (one := workers(client)[name])["state"] == "connected" and one["pid"] != pid
        )  # fmt: skip
    reading.join(120)
    assert got == [(2000 + 10 * e + n) / 100 for e in range(60, 100) for n in range(1, 4)]
    # One of another machine comes in at the same address.
    further = Serving(daemon)
    ended.append(further)
    further.start()
    assert [one["state"] for one in workers(further.client()).values()] == ["connected"] * 3
    assert resumed(further.client(), asked).to_arrow(rows=120).column("temp").to_pylist() == got
    pids = [one["pid"] for one in workers(daemon.client()).values() if one["pid"] != further.process.pid]
    assert "killed by signal SIGKILL" in daemon.log.read_text()
    daemon.kill(signal.SIGINT)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_what_is_wrong_with_a_worker_is_said(peer: RootPeer, tmp_path: Path, ended: list[Any]) -> None:
    daemon = Daemon(peer.url, tmp_path / "data")
    ended.append(daemon)
    daemon.start()
    other = tmp_path / "other"
    (other / "log").mkdir(parents=True)
    (other / "operator.key").write_text("0" * 64 + "\n")
    nowhere = f"http://127.0.0.1:{free_port()}"
    cases: list[tuple[str, tuple[str, ...]]] = [
        ("there is no such directory", ("--data", str(tmp_path / "none"), "--gateway", daemon.url)),
        ("no gateway's data directory", ("--data", str(tmp_path), "--gateway", daemon.url)),
        (
            "takes operator.key of the gateway's data directory",
            ("--data", str(other), "--gateway", daemon.url),
        ),
        (f"no gateway at {nowhere}", ("--data", str(daemon.data), "--gateway", nowhere)),
        (
            "the gateway asks for no tokens",
            ("--data", str(daemon.data), "--gateway", daemon.url, "--listen", "0.0.0.0:0"),
        ),
        (
            "in use",
            ("--data", str(daemon.data), "--gateway", daemon.url, "--listen", f"127.0.0.1:{daemon.port}"),
        ),
    ]
    for text, arguments in cases:
        where = () if "--listen" in arguments else ("--listen", f"127.0.0.1:{free_port()}")
        done = subprocess.run(
            [COMMAND, "serve", *arguments, *where], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 1, (text, done.stderr)
        assert text in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
    assert (daemon.data / "operator.key").stat().st_mode & 0o777 == 0o600
