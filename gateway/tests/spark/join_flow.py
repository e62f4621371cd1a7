"""Joins of a log and their streaming query on a real Spark, of whose processes some are lost meanwhile."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import duckdb

from gateway.tests.joins import users_joins
from gateway.tests.joins.test_joins_of_log import answers_of, plan_of
from gateway.tests.process import wait_for
from skerry.execution.join_buckets import Joined
from skerry.joins.join import Join
from skerry.planner.model import source_plans as plans
from skerry.spark.join_file import JoinFile
from skerry.spark.supervisor import SparkDriver
from skerry.storage.log import stream_log
from skerry.storage.log.source_batches import SourceBatch, Through, through_of
from skerry.storage.log.stream_log import StreamLog


class JoinFlow:
    """Answers go to the log as they do in a gateway."""

    def __init__(self, master: str, data: Path, joins: Mapping[str, Join]) -> None:
        self.data, self._joins, self._lock = data, joins, threading.Lock()
        self._plans = {name: plan_of(users_joins.sql(join)) for name, join in joins.items()}
        self._log, self._file = StreamLog(data), JoinFile(data)
        self._file.append(
            [["join", name, 0, plan.join.executed()] for name, plan in self._plans.items()]  # type: ignore[union-attr]
        )
        #: Rows up to which all has been through, and which have been appended.
        self._through = self._end = 0
        self.troubles: list[str] = []
        self.spark = SparkDriver(master, data, self._log.path, lambda _: None)
        self.spark.take_joined, self.spark.joined_through = self._take, self._known
        self.spark.start()

    def _take(self, joined: Joined) -> bool:
        with self._lock:
            self._log.append_sources(list(joined.answers))
            self._through = joined.end
            self.troubles += [now.trouble for now in joined.groups.values() if now.trouble is not None]
        return True

    def _known(self) -> dict[int, Through]:
        with self._lock:
            return through_of(stream_log.read_there(self._log.path, 0, self._log.rows)[1], plans.ANSWERS)

    def append(self, batch: SourceBatch) -> None:
        with self._lock:
            self._log.append_sources([batch])
            self._end = self._log.rows

    def begun(self) -> None:
        """Until a batch has begun that is not done."""
        progress = self.data / "joins" / "checkpoint"

        def last(part: str) -> int:
            return max((int(file.name) for file in (progress / part).glob("[0-9]*")), default=-1)

        wait_for(lambda: last("offsets") > last("commits") or self._through >= self._end)

    def wait(self) -> None:
        """Until all has been through."""
        wait_for(lambda: self._through >= self._end)

    def kill_driver(self) -> None:
        """… which is started again."""
        child = self.spark._child
        assert child is not None
        os.kill(child.pid, signal.SIGKILL)

    def check(self) -> int:
        """Each join's answers are DuckDB's; how many there are."""
        connection, total = duckdb.connect(), 0
        streams, own = users_joins.logged(self.data, 0)
        assert not self.troubles
        for name, join in self._joins.items():
            expected = users_joins.answers(join, streams, own, connection)
            found = answers_of(self._log.path, replace(self._plans[name], stream=plans.ANSWERS + int(name)))
            assert found == expected, users_joins.sql(join)
            total += expected.total()
        return total

    def close(self) -> None:
        self.spark.stop()
        self._file.close()
        self._log.close()
