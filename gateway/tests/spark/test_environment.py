"""Whatever environment a gateway is started in, its Spark starts, or an alarm says why not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, ask, queue_rows, wait_for
from skerry.spark import environment

#: What other programs' set-up leaves behind.
OTHERS = {
    "JAVA_TOOL_OPTIONS": "-XX:NoSuchOption=1",
    "_JAVA_OPTIONS": "-Xmx1k",
    "JDK_JAVA_OPTIONS": "-XX:NoSuchOption=2",
    "CLASSPATH": "/no/such.jar",
    "SPARK_HOME": "/no/such/spark",
    "SPARK_MASTER_HOST": "nowhere.invalid",
    "PYSPARK_SUBMIT_ARGS": "--master spark://nowhere.invalid:7077 pyspark-shell",
    "PYSPARK_PYTHON": "/no/such/python",
    "PYSPARK_GATEWAY_PORT": "1",
    "HADOOP_CONF_DIR": "/no/such/hadoop",
    "HADOOP_HOME": "/no/such/hadoop",
    "LC_ALL": "C",
}


def test_what_is_somebody_elses_is_left_out(tmp_path: Path) -> None:
    ours = {
        "SPARK_CONF_DIR": "/ours",
        "SPARK_LOCAL_IP": "127.0.0.2",
        "SPARK_SUBMIT_OPTS": "-Xmx1g",
        "PATH": "/bin",
    }
    made = environment.environment(OTHERS | ours, "local[2]", tmp_path, tmp_path / "home")
    assert ours.items() <= made.items()
    assert not {name for name, value in made.items() if value == OTHERS.get(name)}
    assert (made["HOME"], made["SPARK_HOME"]) == (str(tmp_path), str(tmp_path / "home"))
    assert made["PYSPARK_PYTHON"] == sys.executable
    assert made["LC_ALL"] == "C.UTF-8"
    # Where YARN is, only its configuration says.
    kept = environment.environment(OTHERS, "yarn", tmp_path, tmp_path / "home")
    assert kept["HADOOP_CONF_DIR"] == OTHERS["HADOOP_CONF_DIR"]
    assert environment.environment({"HOME": "/h"}, "local", tmp_path, tmp_path)["HOME"] == "/h"


def test_a_user_without_a_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment.trouble() is None
    monkeypatch.setattr(os, "getuid", lambda: 1_999_999_999)
    told = environment.trouble()
    assert told is not None
    assert "user id 1999999999 has no name on this machine" in told
    assert "/etc/passwd" in told


@pytest.mark.spark
@pytest.mark.slow
def test_rows_come_in_an_environment_that_is_others(
    peer: RootPeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in OTHERS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("HOME")
    daemon = Daemon(peer.url, tmp_path / "plot 1, north é" / "data")
    daemon.data.mkdir(parents=True)
    try:
        daemon.start()
        asked, query, program = ask(peer, daemon)
        queue_rows(peer, query, range(60, 62), program)
        assert [row["nodeid"] for _, row in zip(range(6), asked, strict=False)] == [1, 2, 3] * 2
        # A Spark that a busy machine was slow to start has been one.
        wait_for(lambda: daemon.client().status()["alarms"] == [])
        assert "Picked up" not in daemon.log.read_text()
    finally:
        daemon.kill()


@pytest.mark.spark
@pytest.mark.slow
def test_a_java_that_does_not_start_is_an_alarm_with_its_last_words(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/no/such/java")
    daemon.start()
    client = daemon.client()
    wait_for(lambda: client.status()["alarms"], 60)
    [alarm] = client.status()["alarms"]
    assert alarm["name"] == "spark"
    assert "Java did not start" in alarm["text"]
    assert "/no/such/java" in alarm["text"]
