"""Clusters of a stream of points that may change: river's DBSTREAM, and its Page-Hinkley test for drift."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from skerry.mining.errors import MiningError, check_positive, check_whole
from skerry.mining.state import numbers, pack, unpack

DIMENSIONS = 256
#: Distances count no more than so many radii, so that no single row looks like drift.
_FAR = 4.0
#: Of the Page-Hinkley test, in radii: what distances may change by, and the sum of changes that is drift.
_DELTA, _THRESHOLD, _LEAST = 0.05, 20.0, 30
FOUND = pa.schema([("cluster", pa.int64()), ("weight", pa.float64()), ("middle", pa.list_(pa.float64()))])
Points = np.ndarray[Any, np.dtype[np.float64]]


class Clusters:
    """``radius``: how far a point may lie from the middle of its neighbourhood. ``half_life``: after so many rows, a row counts half.
    ``settle``: rows after which clusters are known; from then on, rows that lie further from these than rows before are drift, and
    clusters are learnt anew, for as many rows. Raises MiningError."""

    def __init__(
        self, columns: Sequence[str], radius: float, half_life: int = 10_000, settle: int = 500
    ) -> None:
        if not 1 <= len(columns) <= DIMENSIONS or len({*columns}) != len(columns):
            raise MiningError(f"{len(columns)} columns are clustered: name 1 to {DIMENSIONS} different ones")
        check_positive("radius", radius)
        check_whole("half_life", half_life, 1, 1_000_000_000)
        check_whole("settle", settle, 1, 1_000_000_000)
        self.columns, self.radius, self.half_life, self.settle = (
            tuple(columns),
            float(radius),
            half_life,
            settle,
        )
        #: Rows so far whose columns all are numbers, and the rows at which drift was found.
        self.rows, self.drifts = 0, list[int]()
        self._since = 0
        self._known: Points | None = None
        self._model, self._test = _model(radius, half_life), _test()

    def add(self, rows: pa.RecordBatch | pa.Table) -> list[int]:
        """The next rows; the numbers of those at which drift was found, from 0 on. Raises MiningError."""
        found = []
        for point in self._points(rows):
            if self._known is not None:
                away = float(np.sqrt(((self._known - point) ** 2).sum(axis=1).min())) / self.radius
                self._test.update(min(away, _FAR))
                if self._test.drift_detected:
                    found.append(self.rows)
                    self._known, self._since = None, self.rows
                    self._model, self._test = _model(self.radius, self.half_life), _test()
            self._model.learn_one(dict(enumerate(point.tolist())))
            self.rows += 1
            if self._known is None and self.rows - self._since >= self.settle:
                self._known = self._centres()
        self.drifts += found
        return found

    def _points(self, rows: pa.RecordBatch | pa.Table) -> Points:
        missing = [name for name in self.columns if name not in rows.schema.names]
        if missing:
            raise MiningError(f"rows have no column '{missing[0]}': they have {', '.join(rows.schema.names)}")
        points = np.stack([numbers(rows.column(name)) for name in self.columns], axis=1)
        return points[np.isfinite(points).all(axis=1)]

    def _centres(self) -> Points:
        """Of the neighbourhoods that rows were in of late."""
        neighbourhoods = self._model._micro_clusters.values()
        return np.array([[one.center[d] for d in range(len(self.columns))] for one in neighbourhoods])

    def found(self) -> pa.Table:
        """Clusters by what is known now: the number that :meth:`labels` gives, how much rows weigh in it, of which old ones count less, and
        its middle. The heaviest first."""
        neighbourhoods = self._model._micro_clusters
        of = self._model._generate_labels(self._model._generate_weighted_adjacency_matrix())
        parts: dict[int, list[Any]] = {}
        for number, one in neighbourhoods.items():
            if of[number] is not None:
                parts.setdefault(int(of[number]), []).append(one)
        rows = []
        for label, own in parts.items():
            weights = np.array([one.weight for one in own])
            middles = np.array([[one.center[d] for d in range(len(self.columns))] for one in own])
            rows.append((label, float(weights.sum()), (weights @ middles / weights.sum()).tolist()))
        rows.sort(key=lambda row: (-row[1], row[0]))
        return pa.table([list(column) for column in zip(*rows, strict=True)] or [[], [], []], schema=FOUND)

    def labels(self, rows: pa.RecordBatch | pa.Table) -> pa.Array:
        """Which cluster each row is nearest to by what is known now, from 0 on; NULL where there is none, or the row has gaps."""
        points = np.stack([numbers(rows.column(name)) for name in self.columns], axis=1)
        neighbourhoods = self._model._micro_clusters
        of = self._model._generate_labels(self._model._generate_weighted_adjacency_matrix())
        # Neighbourhoods that too few rows were in belong to no cluster.
        strong = [number for number in neighbourhoods if of[number] is not None]
        if not strong or not len(points):
            return pa.nulls(len(points), pa.int64())
        centres = np.array(
            [[neighbourhoods[number].center[d] for d in range(len(self.columns))] for number in strong]
        )
        away = ((points[:, None, :] - centres[None]) ** 2).sum(axis=2)
        gaps = ~np.isfinite(away).all(axis=1)
        labels = np.array([of[number] for number in strong])[np.where(gaps[:, None], 0, away).argmin(axis=1)]
        return pa.array(labels, pa.int64(), mask=gaps)

    def to_bytes(self) -> bytes:
        """For :meth:`from_bytes`."""
        model, test = self._model, self._test
        return pack("clusters", {
            "columns": self.columns, "radius": self.radius, "half_life": self.half_life, "settle": self.settle, "rows": self.rows,
            "drifts": self.drifts, "since": self._since, "known": self._known,
            "time": model._time_stamp, "s": model.s, "s_t": model.s_t,
            "micro": [[i, list(m.center.values()), m.last_update, m.weight] for i, m in model._micro_clusters.items()],
            "test": [test._x_mean.n, test._x_mean.get(), test._sum_increase, test._sum_decrease, test._min_increase, test._max_decrease],
        })  # fmt: skip

    @classmethod
    def from_bytes(cls, data: bytes) -> Clusters:
        """Raises MiningError."""
        # It takes a second.
        from river.cluster import dbstream

        neighbourhood: Any = dbstream.DBSTREAMMicroCluster
        kept = unpack("clusters", data)
        made = cls(kept["columns"], kept["radius"], kept["half_life"], kept["settle"])
        made.rows, made.drifts, made._since, made._known = (
            kept["rows"],
            kept["drifts"],
            kept["since"],
            kept["known"],
        )
        model, test = made._model, made._test
        model._time_stamp, model.s, model.s_t = kept["time"], kept["s"], kept["s_t"]
        for number, centre, last, weight in kept["micro"]:
            model._micro_clusters[number] = neighbourhood(dict(enumerate(centre)), last, weight)
        count, mean, test._sum_increase, test._sum_decrease, test._min_increase, test._max_decrease = kept[
            "test"
        ]
        test._x_mean = type(test._x_mean)._from_state(count, mean)
        return made


def _model(radius: float, half_life: int) -> Any:
    from river.cluster import DBSTREAM

    # What fades to a tenth of a row's weight within a tenth of a half-life's rows is gone at the next cleaning.
    return DBSTREAM(
        clustering_threshold=radius, fading_factor=1 / half_life, cleanup_interval=max(math.ceil(half_life / 10), 1),
        intersection_factor=0.1, minimum_weight=3,
    )  # fmt: skip


def _test() -> Any:
    from river.drift import PageHinkley

    return PageHinkley(min_instances=_LEAST, delta=_DELTA, threshold=_THRESHOLD)
