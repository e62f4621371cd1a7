"""Kill -9 of the gateway, of Spark's driver and of its executor's Python, while users come and go: nothing is lost, nothing doubled."""

from __future__ import annotations

import pytest

from gateway.tests.killed import Site
from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon


@pytest.mark.spark
@pytest.mark.slow
def test_each_feed_is_what_duckdb_answers_whatever_is_killed(
    peer: RootPeer, daemon: Daemon, drawn_seed: int
) -> None:
    site = Site(peer, daemon, drawn_seed, "--master", "local[2]")
    site.play(
        [
            site.come,
            site.come,
            site.come,
            site.go,
            site.go,
            site.kill_gateway,
            site.kill_driver,
            lambda: site.kill_python_worker(daemon.started),
        ]
    )
