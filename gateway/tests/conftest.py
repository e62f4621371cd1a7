"""Fixtures of the gateway's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon


@pytest.fixture
def peer() -> Iterator[RootPeer]:
    root = RootPeer()
    yield root
    root.close()


@pytest.fixture
def daemon(peer: RootPeer, tmp_path: Path) -> Iterator[Daemon]:
    gateway = Daemon(peer.url, tmp_path / "data")
    yield gateway
    if gateway.process is not None and gateway.process.poll() is None:
        gateway.kill()
