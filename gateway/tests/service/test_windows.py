"""Windows through the whole gateway: asked over HTTP, computed beside Spark, going on after kill -9."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, queue_rows, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_windows_go_on_after_kill_9(tmp_path: Path) -> None:
    peer = RootPeer()
    daemon = Daemon(peer.url, tmp_path / "data")
    daemon.start()
    try:
        sql = "SELECT epoch, nodeid, AVG(temp, 10 s, 5 s) AS mean, COUNT(temp, 10 s, 5 s) AS n FROM sensors GROUP BY nodeid"
        rows = daemon.client("ada").query(f"{sql} SAMPLE PERIOD 1 s")
        wait_for(peer.programs)
        [(query, program)] = peer.programs().items()
        queue_rows(peer, query, range(60, 83), program)
        wait_for(lambda: not peer.waiting)
        got = [row for _, row in zip(range(5), rows, strict=False)]
        daemon.kill()
        daemon.start()
        # A window comes with the first row that is 12 s behind its end.
        queue_rows(peer, query, range(83, 110), program)
        wait_for(lambda: not peer.waiting)
        # The second reading begins amid the groups of a window, which therefore comes again.
        again = daemon.client("ada").resume(rows.id, rows.position)
        got += [row for _, row in zip(range(18), again, strict=False)]
    finally:
        daemon.kill(signal.SIGTERM)
        peer.close()

    def window(end: int, node: int) -> dict[str, float]:
        epochs = range(max(60, end - 10), end)
        mean = 20 + sum(epochs) / len(epochs) / 10 + node / 100
        return {"epoch": end - 1, "nodeid": node, "mean": mean, "n": len(epochs)}

    expected = [window(end, node) for end in range(65, 100, 5) for node in (1, 2, 3)]
    assert got[:5] == [pytest.approx(row) for row in expected[:5]]
    assert got[5:] == [pytest.approx(row) for row in expected[3:]]
