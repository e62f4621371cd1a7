"""Partial states count once: stored and not acknowledged when the gateway dies, they come again from a root that knows no better."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from construct import Container

from gateway.tests.logs import plan_of
from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, wait_for
from skerry.ingest.frames import Frame
from skerry.ingest.ingest import Ingest
from skerry.ingest.stored_frames import Lines
from skerry.network.link.endpoint import Endpoint
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.storage.log.record import Kind, Records
from skerry.storage.log.stream_log import StreamLog, read
from skerry.streams.stream import Source, Stream
from skerry_protocol import codec
from skerry_protocol.codes import PacketType
from skerry_protocol.framing import Deframer, FrameKind, LinkFrame
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, grid
from skerry_testbed.runner import Testbed
from skerry_testbed.serial_port import SerialPort

MOTES = 4
STREAM = Stream(1, 1, 1, merge([plan_of("SELECT COUNT(*), SUM(nodeid) FROM sensors SAMPLE PERIOD 4 s")]))


class Station:
    """What a gateway has of one root, in virtual time. ``told``: whether its acknowledgements leave it. ``pace``: seconds that its own
    clock counts in a second of the root's, as beside an emulation that is so slow."""

    def __init__(self, data: Path, out: NetworkHandle, pace: int) -> None:
        self.told, self._out, self._pace = True, out, pace
        self.log, self.ingest, self.line = StreamLog(data), Ingest(), Lines(data).of(0)
        self.ingest.restore(self.log, {1: STREAM})
        self.endpoint = Endpoint(self._write, self._greet)
        self.endpoint.remember(self.line.stored(self.log))
        self.hello: Container[object] | None = None
        out.bed.line_listeners[:] = [self._received]

    def _write(self, data: bytes) -> None:
        if self.told or Deframer().feed(data)[0].kind is not FrameKind.ACK:
            self._out.bed.send(data)

    def _greet(self, hello: Container[object]) -> None:
        self.hello = hello

    def _received(self, data: bytes) -> None:
        source = Source({1: STREAM}.get, lambda _: None)
        self.ingest.store(self.endpoint.feed(data), source, self.log, 0, self.line)
        self.endpoint.acknowledge()

    def run(self, seconds: float) -> None:
        """Let virtual time pass."""
        for _ in range(round(seconds * 100)):
            self._out.advance(0.01)
            self.endpoint.tick(self._out.now * self._pace)

    def until_stored(self) -> None:
        """As far as the next partial state, not a moment further."""
        before = self.log.rows
        for _ in range(3000):
            self.run(0.01)
            if self.log.rows > before:
                return
        raise AssertionError("no partial state came")

    def die(self) -> None:
        """As of kill -9: only files are left."""
        self._out.bed.line_listeners.clear()
        self.log.close()


def totals(records: Records) -> dict[int, tuple[int, int, int]]:
    """What came of each epoch: motes, COUNT(*), SUM(nodeid)."""
    by_name = {column.name: i for i, column in enumerate(STREAM.mote_query.columns)}
    total, count = by_name["f0"], by_name["f1"]
    found: dict[int, tuple[int, int, int]] = {}
    for r in records[records["kind"] == Kind.PART]:
        motes, counted, summed = found.get(int(r["epoch"]), (0, 0, 0))
        found[int(r["epoch"])] = (
            motes + int(r["motes"]), counted + int(r["count"][count]), summed + int(r["value"][total])
        )  # fmt: skip
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("reception", "pace"), [(1.0, 1), (0.6, 1), (1.0, 20)])
def test_emulated_motes_count_once_whenever_the_gateway_is_lost(
    network: MakeNetwork, tmp_path: Path, reception: float, pace: int
) -> None:
    net = network(grid(MOTES, 1, spacing=10), radio=disc(35, reception))
    station = Station(tmp_path, net, pace)
    station.run(1)
    station.endpoint.send(
        codec.encode(
            PacketType.QUERY_INSTALL, query_version=1, query=1, total=len(encode(STREAM.mote_query, 0)), offset=0,
            data=encode(STREAM.mote_query, 0),
        )
    )  # fmt: skip
    station.run(30)
    # Before and after the acknowledgement; back at once, between rounds, and after some.
    repeats = 0
    for told, away in ((False, 0.1), (True, 0.1), (False, 3.0), (True, 5.0), (False, 9.0), (False, 0.0)):
        station.told = told
        station.until_stored()
        if told:
            station.run(0.2)
        station.die()
        net.advance(away)
        station = Station(tmp_path, net, pace)
        station.run(6)
        repeats += station.endpoint.counters.repeated
        assert station.hello is not None
        station.run(5)
    station.run(30)
    assert repeats >= 4, "each that was stored and not acknowledged came again"
    found = totals(read(station.log.path, 0, station.log.rows))
    everybody = (MOTES, MOTES, sum(range(MOTES)))
    whole = [state == everybody for state in list(found.values())[4:-4]]
    assert all(count <= MOTES and motes <= MOTES for motes, count, _ in found.values()), found
    # Of a bad line some states may be lost by motes; none by the gateway.
    assert np.mean(whole) > (0.99 if reception == 1 else 0.8), found


HELLO = codec.encode(PacketType.HELLO, node=0, session=3, seconds=9, ticks=0, query_version=0, queries=b"")


def state(epoch: int, motes: int) -> bytes:
    return codec.encode(
        PacketType.PARTIAL,
        query=1,
        epoch=epoch,
        motes=motes,
        overflow=0,
        states=[{"count": motes, "value": 0}],
    )


class Line:
    """What an endpoint writes, as frames, and a clock."""

    def __init__(self, stored: list[Frame]) -> None:
        self.deframer, self.frames, self.now = Deframer(), list[LinkFrame](), 0.0
        self.endpoint = Endpoint(lambda data: self.frames.extend(self.deframer.feed(data)), lambda _: None)
        self.endpoint.remember(stored)

    def hear(self, kind: FrameKind, sequence: int, payload: bytes = b"") -> list[codec.Packet]:
        return self.endpoint.feed(LinkFrame(kind, sequence, payload).to_bytes())

    def wait(self, seconds: float) -> list[FrameKind]:
        """What goes out meanwhile."""
        self.frames.clear()
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.endpoint.tick(self.now)
        return [frame.kind for frame in self.frames]


def test_what_is_stored_is_acknowledged_in_the_old_numbers_before_reset() -> None:
    line = Line([Frame.of(250, state(5, 3)), Frame.of(251, state(6, 3))])
    # The root is asked for what is unacknowledged until it answers, however long that takes.
    assert set(line.wait(60.0)) == {FrameKind.POLL}
    asked = line.frames[-1].sequence
    # The other's number, or another state: not stored.
    for sequence, other in ((251, state(5, 3)), (252, state(6, 3)), (251, state(6, 2))):
        assert line.hear(FrameKind.DATA, sequence, other) == []
    line.frames.clear()
    assert line.hear(FrameKind.DATA, 251, state(6, 3)) == []
    assert line.frames == [LinkFrame(FrameKind.ACK, 252)]
    line.hear(FrameKind.POLL, asked)
    # That round brought what is stored, and the acknowledgement may be lost: two more have to bring nothing of the kind.
    assert set(line.wait(1.0)) == {FrameKind.POLL}
    line.hear(FrameKind.POLL, asked)  # an answer to a repetition of the one before
    assert line.frames[-1].sequence == asked + 1
    line.hear(FrameKind.DATA, 251, state(6, 3))
    assert line.frames[-1] == LinkFrame(FrameKind.ACK, 252)
    for number in (asked + 1, asked + 2):
        line.hear(FrameKind.POLL, number)
        assert FrameKind.RESET not in line.wait(1.0)
    line.hear(FrameKind.DATA, 252, state(7, 3))
    line.hear(FrameKind.POLL, asked + 3)
    assert line.wait(0.2) == [FrameKind.RESET]
    line.hear(FrameKind.RESET_ACK, 0, HELLO)
    # In the new numbers all is new.
    assert [p.body.epoch for p in line.hear(FrameKind.DATA, 0, state(6, 3))] == [6]


def test_a_root_of_another_version_is_told_of_before_reset() -> None:
    line = Line([Frame.of(1, state(5, 3))])
    line.wait(1.0)
    line.hear(FrameKind.DATA, 4, bytes([9]) + state(5, 3)[1:])
    assert "version 9" in str(line.endpoint.version_error)
    assert line.frames[-1].kind is FrameKind.POLL, "it is no answer"


def test_a_line_that_breaks_is_polled_before_reset() -> None:
    line = Line([])
    assert line.wait(0.2) == [FrameKind.RESET]
    line.hear(FrameKind.RESET_ACK, 0, HELLO)
    for sequence in range(6):
        assert line.hear(FrameKind.DATA, sequence, state(sequence, 1))
    line.endpoint.acknowledge()
    line.hear(FrameKind.DATA, 6, state(6, 1))
    line.endpoint.reset()
    assert line.wait(0.2) == [FrameKind.POLL]
    line.frames.clear()
    # The last one was never acknowledged, and those before the last four the root has forgotten.
    for sequence in range(7):
        line.hear(FrameKind.DATA, sequence, state(sequence, 1))
    assert [frame.sequence for frame in line.frames] == [3, 4, 5, 6]


def test_nothing_is_taken_until_the_root_has_heard_every_reset() -> None:
    line = Line([])
    assert line.wait(1.2) == [FrameKind.RESET] * 3
    line.hear(FrameKind.RESET_ACK, 0, HELLO)
    assert line.hear(FrameKind.DATA, 0, state(5, 3)) == []
    line.wait(0.2)
    [fence] = line.frames
    assert (fence.kind, fence.sequence) == (FrameKind.DATA, 0)
    # An acknowledgement of what was asked before, and the answer to the second RESET.
    line.hear(FrameKind.ACK, 0)
    line.hear(FrameKind.RESET_ACK, 0, HELLO)
    assert line.hear(FrameKind.DATA, 0, state(5, 3)) == []
    line.wait(0.2)
    line.hear(FrameKind.ACK, 1)
    assert [p.body.epoch for p in line.hear(FrameKind.DATA, 0, state(5, 3))] == [5]
    line.endpoint.acknowledge()
    assert line.frames[-1] == LinkFrame(FrameKind.ACK, 1)


def test_a_crash_before_the_log_has_it_is_not_taken_for_stored(tmp_path: Path) -> None:
    log, line = StreamLog(tmp_path), Lines(tmp_path).of(0)
    wire = Line([])
    wire.wait(0.2)
    wire.hear(FrameKind.RESET_ACK, 0, HELLO)
    frames = [Frame.of(sequence, state(sequence, 1)) for sequence in range(3)]
    ingest, source = Ingest(), Source({1: STREAM}.get, lambda _: None)
    ingest.store(wire.hear(FrameKind.DATA, 0, state(0, 1)), source, log, 0, line)
    # Written down, and the log cannot take it: another row takes its number.
    log.close()
    with pytest.raises(OSError, match="Bad file"):
        ingest.store(wire.hear(FrameKind.DATA, 1, state(1, 1)), source, log, 0, line)
    log = StreamLog(tmp_path)
    assert Lines(tmp_path).of(0).stored(log) == frames[:1]
    log.append(read(log.path, 0, 1))
    assert Lines(tmp_path).of(0).stored(log) == frames[:1]
    ingest.store(wire.hear(FrameKind.DATA, 2, state(2, 1)), source, log, 0, line)
    assert Lines(tmp_path).of(0).stored(log) == [frames[0], frames[2]]
    torn = (tmp_path / "line-0").read_bytes()[:-1]
    (tmp_path / "line-0").write_bytes(torn)
    assert Lines(tmp_path).of(0).stored(log) == []


@pytest.fixture
def gateway(peer: RootPeer, tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(peer.url, tmp_path / "data")
    yield made
    if made.process is not None and made.process.poll() is None:
        made.kill()


@pytest.mark.slow
@pytest.mark.spark
def test_kill_9_between_storing_and_acknowledging(peer: RootPeer, gateway: Daemon) -> None:
    gateway.start()
    ada = gateway.client("ada")
    rows = ada.query("SELECT COUNT(*) AS n FROM sensors SAMPLE PERIOD 1 s")
    wait_for(peer.programs)
    peer.waiting.extend(state(epoch, 3) for epoch in (60, 61))
    wait_for(lambda: not peer.waiting)
    # Acknowledgements are lost from now on.
    peer.deaf = True
    peer.waiting.extend(state(epoch, 3) for epoch in (62, 63))
    log = gateway.data / "log"
    wait_for(lambda: len(read(log, 0, 100)) == 4)
    gateway.kill()
    peer.deaf = False
    # Meanwhile the time of these epochs is over.
    peer.began -= 100
    # One mote's state is late, and equals what another one's would be.
    peer.waiting.append(state(63, 3))
    gateway.start()
    wait_for(lambda: not peer.waiting)
    told = [row for _, row in zip(range(4), ada.resume(rows.id), strict=False)]
    assert [row["n"] for row in told] == [3, 3, 3, 6]
    stored = [(int(r["epoch"]), int(r["motes"])) for r in read(log, 0, 100) if r["kind"] == Kind.PART]
    assert stored == [(60, 3), (61, 3), (62, 3), (63, 3), (63, 3)]


class Mote(SerialPort):
    """An emulated network's line, in a thread of its own. ``deaf``: acknowledgements of the gateway do not reach the root.

    The network's time stands still while no gateway listens: one that a loaded machine is long to start finds no queues that overflowed.
    """

    def __init__(self, bed: Testbed) -> None:
        self.deaf, self._deframer, self._to_root = False, Deframer(), bed.send
        super().__init__(bed, 0)
        self._stop = threading.Event()
        bed.send = self._heard  # type: ignore[method-assign]
        self._thread = threading.Thread(target=bed.run, args=(None, 3.0, self._stop.is_set, self.poll))
        self._thread.start()

    def _heard(self, data: bytes) -> None:
        for frame in self._deframer.feed(data):
            if not (self.deaf and frame.kind is FrameKind.ACK):
                self._to_root(frame.to_bytes())

    def poll(self) -> None:
        super().poll()
        since = time.monotonic()
        while not (self.connected or self._stop.wait(0.01)):
            super().poll()
        self._testbed.held_s += time.monotonic() - since

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self.close()


@pytest.mark.slow
@pytest.mark.spark
def test_kill_9_of_a_gateway_of_emulated_motes(network: MakeNetwork, tmp_path: Path) -> None:
    made = network(grid(MOTES, 1, spacing=10), radio=disc(35))
    made.bed.line_listeners.clear()
    root = Mote(made.bed)
    gateway, log = Daemon(f"socket://127.0.0.1:{root.port}", tmp_path / "data"), tmp_path / "data" / "log"

    def came() -> int:
        """How many partial states are in the log."""
        return int(np.sum(read(log, 0, 100)["kind"] == Kind.PART))

    try:
        gateway.start()
        gateway.client("ada").query("SELECT SUM(nodeid), COUNT(*) FROM sensors SAMPLE PERIOD 4 s")
        wait_for(lambda: came() > 2)
        # In this order: the root hears no acknowledgement of what comes after the count.
        root.deaf = True
        before = came()
        wait_for(lambda: came() > before)
        gateway.kill()
        # What it acknowledged last may still be on the line: the root is to hear none of that.
        wait_for(lambda: not root.connected)
        root.deaf = False
        gateway.start()
        wait_for(lambda: came() > before + 4)
        repeated = gateway.client().status()["link"]["repeated"]
        found = totals(read(log, 0, 100))
    finally:
        if gateway.process is not None and gateway.process.poll() is None:
            gateway.kill()
        root.stop()
    assert repeated, "what was stored and not acknowledged came again"
    assert list(found) == list(range(min(found), max(found) + 1))
    # The query reaches motes one after the other; the last epoch may not be over.
    assert set(list(found.values())[2:-1]) == {(MOTES, MOTES, sum(range(MOTES)))}, found
