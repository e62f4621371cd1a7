"""What several roots bring while the disk is busy is taken in together, and refused together."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.process import SQL, queue_rows, wait_for
from skerry.service.gateway import Gateway
from skerry.storage.log.record import Records
from skerry.storage.log.stream_log import read
from skerry_protocol import codec
from skerry_protocol.codes import PacketType
from skerry_protocol.framing import FrameKind, LinkFrame

ROOTS = 8


@pytest.fixture
def roots() -> Iterator[list[RootPeer]]:
    made = [RootPeer(node=100 * number) for number in range(ROOTS)]
    yield made
    for peer in made:
        peer.close()


def test_roots_share_an_append_and_its_failure(roots: list[RootPeer], tmp_path: Path) -> None:
    with opened(roots, tmp_path) as gateway:
        wait_for(lambda: all(root.network.clock.known for root in gateway.roots))
        gateway.queries.ask(SQL, "ada")
        wait_for(lambda: all(peer.programs() for peer in roots))
        append = gateway.log.append
        sizes: list[int] = []
        busy, free, failing = threading.Event(), threading.Event(), threading.Event()

        def slow(records: Records) -> int:
            sizes.append(len(records))
            busy.set()
            free.wait()
            if failing.is_set():
                raise OSError(28, "No space left on device")
            return append(records)

        gateway.log.append = slow  # type: ignore[method-assign]
        for peer in roots:
            [(query, program)] = peer.programs().items()
            queue_rows(peer, query, range(60, 65), program, range(peer.node + 1, peer.node + 3))
        assert busy.wait(60)
        wait_for(lambda: all(peer._flying for peer in roots))
        failing.set()
        free.set()
        wait_for(lambda: "intake" in [alarm["name"] for alarm in gateway.alarms.active()])
        failing.clear()
        wait_for(lambda: not any(peer.waiting for peer in roots))
        assert max(sizes) > 4, "no root has more under way"
        stored = read(gateway.log.path, 0, 1000)
        assert set(Counter(zip(stored["node"].tolist(), stored["epoch"].tolist(), strict=True)).values()) == {
            1
        }
        assert len(stored) == ROOTS * 10
        assert "intake" not in [alarm["name"] for alarm in gateway.alarms.active()]


def test_of_roots_that_say_hello_together_is_remembered_once(tmp_path: Path) -> None:
    gateway = Gateway([f"root-{number}" for number in range(ROOTS)], tmp_path)
    written = [bytearray() for _ in range(ROOTS)]
    try:
        for root, out in zip(gateway.roots, written, strict=True):
            root.link.attach(out.extend)
        gateway.links.take([b""] * ROOTS)
        assert all(written)
        save, saved = gateway.persistence.save, list[set[int]]()

        def counted() -> None:
            saved.append({root.network.root for root in gateway.roots if root.network.session})
            save()

        gateway.persistence.save = counted  # type: ignore[method-assign]
        hellos = [
            codec.encode(PacketType.HELLO, node=100 * number, session=3, seconds=9, ticks=0, query_version=0, queries=b"")
            for number in range(ROOTS)
        ]  # fmt: skip
        gateway.links.take([LinkFrame(FrameKind.RESET_ACK, 0, hello).to_bytes() for hello in hellos])
        assert saved[0] == {100 * number for number in range(ROOTS)}
        assert len(saved) == 1
        assert not gateway.persistence.unsaved
    finally:
        gateway.close()
