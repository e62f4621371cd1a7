"""The Python processes that Spark starts."""

from __future__ import annotations

import gc
import io
import os
import runpy
import socket
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest

from skerry.spark.streaming import WORKERS, session


@pytest.mark.spark
def test_they_take_what_is_installed(tmp_path: Path) -> None:
    """Not Spark's archives of sources, which each process would compile anew."""
    spark = session("local[1]", tmp_path)
    try:
        [(file, path)] = (
            spark.sparkContext.parallelize([0], 1).map(lambda _: (pyspark.__file__, sys.path)).collect()
        )
    finally:
        spark.stop()
    assert file == pyspark.__file__
    archive = next(place for place, entry in enumerate(path) if entry.endswith("pyspark.zip"))
    assert path.index(str(Path(pyspark.__file__).parents[1])) < archive


@pytest.mark.spark
def test_they_acknowledge_at_once(tmp_path: Path) -> None:
    """What each worker reads with is what Spark was told to take."""
    spark = session("local[1]", tmp_path)
    try:
        [main] = (
            spark.sparkContext.parallelize([0], 1).map(lambda _: sys.modules["__main__"].__file__).collect()
        )
    finally:
        spark.stop()
    assert main == str(WORKERS / "prompt_daemon.py")


def opened(
    sock: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> tuple[io.BufferedReader, io.BufferedWriter]:
    """What PySpark's worker would read from and write to."""
    files: list[Any] = []

    def pyspark_worker(sock: socket.socket, authenticated: bool) -> int:
        assert authenticated
        files.extend(os.fdopen(os.dup(sock.fileno()), mode, 65536) for mode in ("rb", "wb"))
        return 7

    daemon = runpy.run_path(str(WORKERS / "prompt_daemon.py"))
    monkeypatch.setitem(daemon["worker"].__globals__, "_worker", pyspark_worker)
    plain = os.fdopen
    assert daemon["worker"](sock, True) == 7
    assert os.fdopen is plain
    return files[0], files[1]


@pytest.mark.spark
def test_they_do_not_search_all_modules_for_garbage_after_each_task(tmp_path: Path) -> None:
    spark = session("local[1]", tmp_path)
    try:
        frozen = [
            spark.sparkContext.parallelize([0], 1)
            .map(lambda _: (os.getpid(), gc.get_freeze_count(), len(gc.get_objects())))
            .collect()[0]
            for _ in range(3)
        ]
    finally:
        spark.stop()
    assert len({process for process, _, _ in frozen}) == 1
    assert frozen[0][1] == 0 < frozen[1][1] == frozen[2][1]
    assert frozen[1][2] < frozen[0][2] / 5


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="this system has no TCP_QUICKACK")
def test_answers_do_not_put_off_acknowledgements(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        spark, (sock, _) = socket.create_connection(server.getsockname()), server.accept()
    with spark, sock:
        infile, outfile = opened(sock, monkeypatch)
        with infile, outfile:
            for _ in range(20):
                spark.sendall(b"task")
                assert infile.read(4) == b"task"
                assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) == 1
                outfile.write(b"answer")
                outfile.flush()
                assert spark.recv(100) == b"answer"
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) == 0, "answers end it"


def test_other_connections_are_read_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    spark, sock = socket.socketpair()
    with spark, sock:
        infile, outfile = opened(sock, monkeypatch)
        with infile, outfile:
            spark.sendall(b"task")
            assert infile.read(4) == b"task"
            outfile.write(b"answer")
            outfile.flush()
            assert spark.recv(100) == b"answer"


def test_what_else_python_is_to_begin_with_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.told = 'begun'\n")
    monkeypatch.setattr(sys, "path", [str(WORKERS), "/nowhere/lib/pyspark.zip", str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "told", "not begun", raising=False)
    runpy.run_path(str(WORKERS / "sitecustomize.py"))
    assert vars(sys)["told"] == "begun"
    assert sys.path[-1] == "/nowhere/lib/pyspark.zip"
