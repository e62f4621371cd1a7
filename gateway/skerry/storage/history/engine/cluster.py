"""What the engine's process asks of a Spark cluster: the same SQL over the same rows, where they are many."""

from __future__ import annotations

import itertools
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import exp

from skerry.storage.history.engine.expressions import PAST, columns_of
from skerry.storage.history.engine.joins import attributes_of, earlier_name, table_name
from skerry.storage.history.engine.messages import (
    ClusterAnswer,
    ClusterCancel,
    ClusterPart,
    ClusterSelect,
    EarlierRows,
    Question,
)
from skerry.storage.history.engine.running import Running
from skerry.storage.history.engine.selects import columns_needed
from skerry.storage.history.engine.sources import cluster_past, cluster_readings
from skerry.storage.history.engine.tables import rows_of
from skerry_protocol.attributes import BY_NAME

#: So often, in s, it is seen whether an answer is still waited for.
_LOOK_S = 0.05


class ClusterLink:
    """The way to the cluster, which the gateway knows. ``say`` sends it a word."""

    def __init__(self, say: Callable[[object], None]) -> None:
        self._say = say
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[threading.Event, list[ClusterAnswer]]] = {}

    def answered(self, answer: ClusterAnswer) -> None:
        """The gateway's answer has come."""
        event, answers = self._waiting[answer.number]
        answers.append(answer)
        event.set()

    def ask(
        self,
        relations: Sequence[tuple[str, tuple[ClusterPart, ...]]],
        text: str,
        into: Path,
        running: Running,
    ) -> str | None:
        """Why the rows are not there; None: they are."""
        number, event, answers = next(self._numbers), threading.Event(), list[ClusterAnswer]()
        self._waiting[number] = event, answers
        self._say(ClusterSelect(number, tuple(relations), text, str(into)))
        told = False
        while not event.wait(_LOOK_S):
            if running.ends and not told:
                self._say(ClusterCancel(number))
                told = True
        del self._waiting[number]
        return answers[0].trouble


class ClusterQuestion:
    """One question's relations, as the cluster has them. ``directory``: for what is in no file yet, and for answers."""

    def __init__(self, link: ClusterLink, question: Question, running: Running, directory: Path) -> None:
        self._link, self._question, self._running = link, question, running
        self._directory = directory.resolve()
        self._numbers = itertools.count(1)
        self._relations: dict[str, tuple[ClusterPart, ...]] | None = None
        self._more: dict[str, pa.Table] = {}

    def register(self, name: str, table: pa.Table) -> None:
        """A relation that is made meanwhile."""
        self._more[name] = table

    def files(self, select: exp.Select) -> list[str] | str:
        """Files with the rows of a question, in their order; or why there are none. Raises as the relations' making does."""
        into = self._directory / f"answer-{next(self._numbers)}"
        if self._relations is None:
            self._directory.mkdir(parents=True)
            self._relations = self._made()
        relations = {
            **self._relations,
            **{name: self._written(name, [table]) for name, table in self._more.items()},
        }
        trouble = self._link.ask(list(relations.items()), select.sql("spark"), into, self._running)
        if trouble is not None:
            return trouble
        found = [str(file) for file in sorted(into.glob("part-*.parquet"))]
        return found or "it has written no file"

    def close(self) -> None:
        """Nothing of it is needed any more."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def _made(self) -> dict[str, tuple[ClusterPart, ...]]:
        question = self._question
        plan = question.plan
        newest, names = self._directory / f"{PAST}.parquet", columns_needed(plan)
        found = {PAST: cluster_past(question.sources, names, newest)}
        if plan.history is not None and not plan.history.recorded:
            found |= cluster_readings(question.sources, names, plan.period_ms, newest)
        for number, (probe, table) in enumerate(zip(plan.probes, question.tables, strict=True)):
            if isinstance(table, EarlierRows):
                names = columns_of(sorted({*attributes_of(plan, probe), BY_NAME["nodeid"].number}))
                name = earlier_name(number)
                found[name] = cluster_past(table.sources, names, self._directory / f"{name}.parquet")
            else:
                tables = [rows_of(plan, number, reading) for reading in table.readings]
                found[table_name(number)] = self._written(table_name(number), tables)
        return found

    def _written(self, name: str, tables: Sequence[pa.Table]) -> tuple[ClusterPart, ...]:
        paths = []
        for i, table in enumerate(tables):
            paths.append(str(self._directory / f"{name}-{i}.parquet"))
            pq.write_table(table, paths[-1])
        return (ClusterPart(tuple(paths), "", tuple(f"`{column}`" for column in tables[0].column_names)),)
