"""A disk that is full, or refuses: intake stops with an alarm, goes on by itself, and nothing accepted is lost."""

from __future__ import annotations

import errno
import os
import re
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import skerry
from gateway.tests.peer import RootPeer
from gateway.tests.process import SQL, Daemon, ask, queue_rows, wait_for
from gateway.tests.storage.state.drawn import counters, query_row
from skerry.storage.log.record import RECORD
from skerry.storage.log.stream_log import read
from skerry.storage.state import RESERVE, DataDirectory, StorageError
from skerry.storage.state.database import Changes


def stored(daemon: Daemon) -> list[tuple[int, int]]:
    return [(int(r["epoch"]), int(r["node"])) for r in read(daemon.data / "log", 0, 10_000)]


def rows_of(epochs: range) -> list[tuple[int, int]]:
    return [(epoch, node) for epoch in epochs for node in range(1, 4)]


def alarms(daemon: Daemon) -> list[str]:
    return [alarm["name"] for alarm in daemon.client().status()["alarms"]]


@pytest.mark.spark
@pytest.mark.slow
def test_a_log_that_cannot_grow_stops_intake_until_it_can(peer: RootPeer, daemon: Daemon) -> None:
    daemon.start()
    asked, query, program = ask(peer, daemon)
    queue_rows(peer, query, range(60, 70), program)
    wait_for(lambda: not peer.waiting)
    assert daemon.process is not None
    # In the middle of a record: what is half written is taken back.
    limit = (30 + 4) * RECORD.itemsize + RECORD.itemsize // 2
    before = resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    queue_rows(peer, query, range(70, 80), program)
    # What users ask may be written meanwhile, and is refused, too.
    wait_for(lambda: "intake" in alarms(daemon))
    assert set(alarms(daemon)) <= {"intake", "state"}
    [alarm] = [alarm for alarm in daemon.client().status()["alarms"] if alarm["name"] == "intake"]
    assert "File too large" in alarm["text"]
    there = stored(daemon)
    assert there == rows_of(range(60, 80))[: len(there)]
    assert 30 <= len(there) <= 34
    assert peer.acknowledged == len(there), "what is not stored is not acknowledged"
    assert daemon.client().status()["link"]["state"] == "connected"
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, before)
    wait_for(lambda: not peer.waiting)
    assert stored(daemon) == rows_of(range(60, 80))
    assert alarms(daemon) == []
    got = [(row["nodeid"], row["temp"]) for _, row in zip(range(60), asked, strict=False)]
    assert got == [(n, (2000 + 10 * e + n) / 100) for e, n in rows_of(range(60, 80))]
    log = daemon.log.read_text()
    assert log.count("alarm: no rows are taken in") == 1
    assert len(re.findall("alarm over.*no rows are taken in", log)) == 1
    assert log.count("alarm over") == log.count("skerry: alarm: "), "what began is over"


@pytest.mark.spark
@pytest.mark.slow
def test_rows_do_not_go_to_a_log_that_was_taken_away(peer: RootPeer, daemon: Daemon) -> None:
    """They would be gone with the file, which nobody else sees any more."""
    daemon.start()
    asked, query, program = ask(peer, daemon)
    queue_rows(peer, query, range(60, 64), program)
    wait_for(lambda: not peer.waiting)
    log, away = daemon.data / "log", daemon.data / "away"
    log.rename(away)
    with pytest.raises(skerry.GatewayError, match=f"{log}: rows 0 to 11 are not there"):
        daemon.client().compact()
    queue_rows(peer, query, range(64, 68), program)
    wait_for(lambda: "intake" in alarms(daemon))
    assert peer.acknowledged == 12
    [text] = [alarm["text"] for alarm in daemon.client().status()["alarms"] if alarm["name"] == "intake"]
    assert f"{log}: it was taken away while the gateway ran: put it back" in text
    away.rename(log)
    wait_for(lambda: not peer.waiting)
    got = [(row["nodeid"], row["temp"]) for _, row in zip(range(24), asked, strict=False)]
    assert got == [(n, (2000 + 10 * e + n) / 100) for e, n in rows_of(range(60, 68))]
    assert daemon.client().compact()["compacted"] == 24
    wait_for(lambda: alarms(daemon) == [])
    daemon.kill(signal.SIGTERM)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 32 MB of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = os.geteuid() == 0 and not subprocess.call(
        ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(disk)], stderr=subprocess.DEVNULL
    )
    if not mounted:
        pytest.skip(f"uid {os.geteuid()} may not mount a tmpfs of 32 MB: mounting needs root")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk: Path, leave: int) -> Path:
    """Fill a disk but for some bytes."""
    filler = disk / "filler"
    with filler.open("wb") as out:
        for _ in range(1000):
            free = os.statvfs(disk)
            try:
                os.posix_fallocate(out.fileno(), 0, free.f_bavail * free.f_frsize - leave)
                return filler
            except OSError as error:
                # Spark has noted its progress in between.
                if error.errno != errno.ENOSPC:
                    raise
    raise AssertionError(f"{disk} never stays as full as it was")


@pytest.fixture
def cramped(peer: RootPeer, small_disk: Path) -> Iterator[Daemon]:
    """A gateway whose data are on the small disk."""
    daemon = Daemon(peer.url, small_disk / "data")
    daemon.start()
    yield daemon
    daemon.kill(signal.SIGTERM)


@pytest.mark.spark
@pytest.mark.slow
def test_a_full_disk_stops_rows_first_and_questions_last(
    peer: RootPeer, small_disk: Path, cramped: Daemon
) -> None:
    asked, query, program = ask(peer, cramped)
    queue_rows(peer, query, range(60, 62), program)
    wait_for(lambda: not peer.waiting)
    filler = fill(small_disk, RESERVE // 2)
    queue_rows(peer, query, range(62, 64), program)
    wait_for(lambda: alarms(cramped) == ["intake"])
    # Of the same mote query: one of another would cut the rows that wait off, at a time that depends on the machine's speed.
    kept = cramped.client("ada").query(SQL)
    filler.unlink()
    filler = fill(small_disk, 0)
    with pytest.raises(skerry.GatewayError, match=r"could not be remembered.*No space left"):
        cramped.client("ada").query("SELECT temp FROM sensors SAMPLE PERIOD 2 s")
    assert set(alarms(cramped)) == {"intake", "state"}
    assert [q["id"] for q in cramped.client("ada").queries()] == [asked.id, kept.id], (
        "who was refused has left nothing"
    )
    # Killed on a full disk: it knows what it was asked before.
    cramped.kill()
    filler.unlink()
    cramped.start()
    wait_for(lambda: not peer.waiting)
    wait_for(lambda: alarms(cramped) == [])
    assert stored(cramped) == rows_of(range(60, 64))
    assert [q["id"] for q in cramped.client("ada").queries()] == [asked.id, kept.id]
    got = [row["nodeid"] for _, row in zip(range(12), cramped.client("ada").resume(asked.id), strict=False)]
    assert got == [1, 2, 3] * 4


@pytest.mark.spark
@pytest.mark.slow
def test_readers_go_on_by_themselves_when_there_is_room(
    peer: RootPeer, small_disk: Path, cramped: Daemon
) -> None:
    """Spark's checkpoint is on the full disk too."""
    asked, query, program = ask(peer, cramped)
    reader, begin = iter(asked), 60
    # Full to the last byte, and with room for the checkpoint but not for rows.
    for leave in (None, 0, 300_000):
        filler = fill(small_disk, leave) if leave is not None else None
        epochs = range(begin, begin + 10)
        queue_rows(peer, query, epochs, program)
        if filler is not None:
            wait_for(lambda: alarms(cramped) == ["intake"])
            filler.unlink()
        expected = [(n, (2000 + 10 * e + n) / 100) for e, n in rows_of(epochs)]
        assert [(row["nodeid"], row["temp"]) for _, row in zip(expected, reader, strict=False)] == expected
        begin += 10
    assert alarms(cramped) == []


def test_state_that_cannot_be_written_stays_as_it_was(small_disk: Path) -> None:
    directory = DataDirectory(small_disk / "data")

    def saved(count: int) -> None:
        changes = Changes()
        changes.whole("gateway", [counters(count)])
        changes.whole("queries", [query_row(str(number), "x" * 1000, 0) for number in range(count)])
        directory.state.save(changes)

    saved(100)
    filler = fill(small_disk, 0)
    with pytest.raises(StorageError, match=r"state\.sqlite: No space left on device"):
        saved(10_000)
    there = directory.state.load()
    assert there is not None
    assert len(there["queries"]) == 100
    with pytest.raises(StorageError, match=r"0\.0 MB free on its disk, of which 4\.2 MB are kept"):
        directory.check_room()
    with pytest.raises(StorageError, match=r"published.*: No space left on device"):
        directory.published.publish({1: '"x"' * 10_000}, {}, everything=True)
    assert not list(directory.path.rglob("*.new"))
    filler.unlink()
    saved(1000)
    directory.published.publish({}, {})
    there = directory.state.load()
    assert there is not None
    assert len(there["queries"]) == 1000
    directory.close()
