"""The archive of Spark's Java classes: made once, used from then on, never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, wait_for
from skerry.spark import java_options
from skerry.spark.class_archive import UNDER_WAY, Archiving


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of its own for what may be deleted."""
    monkeypatch.setenv(java_options.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_java_is_told_of_an_archive_that_is_there(cache: Path) -> None:
    file = java_options.archive()
    assert file is not None
    assert file.parent == cache
    assert java_options.options() == ""
    cache.mkdir()
    file.touch()
    assert f"-XX:SharedArchiveFile={file}" in java_options.options().split()


def test_another_java_has_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = java_options.archive()
    other = tmp_path / "jdk" / "bin" / "java"
    other.parent.mkdir(parents=True)
    other.touch(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert java_options.archive() not in (None, before)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    assert java_options.archive() is None


@pytest.mark.parametrize("content", [b"", b"not an archive" * 1000], ids=["empty", "other"])
def test_java_passes_over_what_is_no_archive(cache: Path, content: bytes) -> None:
    file = java_options.archive()
    assert file is not None
    cache.mkdir()
    file.write_bytes(content)
    said = [
        subprocess.run(["java", *options, "-version"], capture_output=True, text=True, check=True)
        for options in ([], java_options.options().split())
    ]
    assert said[0].stderr
    assert [said[1].stdout, said[1].stderr] == [said[0].stdout, said[0].stderr.replace(", sharing", "")]


@pytest.mark.spark
def test_a_gateway_s_archive_is_used_by_the_next_one(cache: Path, tmp_path: Path) -> None:
    file = java_options.archive()
    assert file is not None
    archiving = Archiving(after_s=0)
    archiving.start()
    wait_for(file.exists)
    archiving.stop()
    assert list(cache.iterdir()) == [file]

    root = RootPeer()
    daemon = Daemon(root.url, tmp_path / "data")
    daemon.start()
    wait_for(lambda: daemon.client().status()["spark"]["state"] == "running")
    maps = Path(f"/proc/{daemon.child('java')}/maps").read_text()
    daemon.kill()
    root.close()
    assert str(file) in maps


def test_a_gateway_that_stops_leaves_nothing_half_made(cache: Path) -> None:
    archiving = Archiving(after_s=0)
    archiving.start()
    wait_for(lambda: list(cache.glob(f"{UNDER_WAY}*/*")))
    archiving.stop()
    assert list(cache.iterdir()) == []


def test_what_a_killed_one_left_is_cleared(cache: Path) -> None:
    left = cache / f"{UNDER_WAY}old"
    left.mkdir(parents=True)
    a_day_ago = time.time() - 86400
    os.utime(left, (a_day_ago, a_day_ago))
    archiving = Archiving(after_s=0)
    archiving.start()
    wait_for(lambda: not left.exists())
    archiving.stop()


def test_without_java_it_says_so(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "skerry.spark.class_archive"],
        env={**os.environ, "JAVA_HOME": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 1
    assert "there is no java" in run.stderr
