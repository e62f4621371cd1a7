"""What the motes' sensors see at a virtual time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from skerry_testbed.duration import seconds
from skerry_testbed.environment_checks import ATTRIBUTES
from skerry_testbed.network import Environment, Mote, NetworkError

if TYPE_CHECKING:
    import pandas as pd

Reading = tuple[int, str, float]


class SyntheticField:
    """Attributes by formula: see :class:`skerry_testbed.network.Field`."""

    def __init__(self, environment: Environment, motes: list[Mote], rng: np.random.Generator) -> None:
        self._fields = environment.fields
        self._motes = motes
        self._rng = rng
        self.step_s = seconds(environment.update)

    def readings(self, now_s: float) -> Iterator[Reading]:
        """(mote index, attribute, SI value) at a time."""
        for name, field in self._fields.items():
            swing = field.amplitude * math.sin(2 * math.pi * now_s / seconds(field.period))
            for index, mote in enumerate(self._motes):
                noise = self._rng.normal(0.0, field.noise) if field.noise else 0.0
                slope = field.gradient[0] * mote.x + field.gradient[1] * mote.y
                yield index, name, field.base + slope + swing + noise


class Trace:
    """Attributes from a recording, each sample held until the node's next. A sensor whose recording is NaN, or has not begun, fails."""

    def __init__(self, environment: Environment, motes: list[Mote]) -> None:
        self._name = environment.trace
        frame = _read(str(environment.trace))
        time = environment.time or next((name for name in ("time", "epoch") if name in frame.columns), "time")
        columns = environment.columns or {name: name for name in ATTRIBUTES if name in frame.columns}
        for name in (time, "nodeid", *columns.values()):
            if name not in frame.columns:
                raise self._error(f"no column {name!r}; it has {', '.join(map(str, frame.columns))}")
        if not columns:
            raise self._error("no column of an attribute; map them with columns = { temp = '…' }")
        nodes = _nodes(environment, motes)
        frame = frame[frame["nodeid"].isin(nodes)]
        due = self._due_times(frame[time], environment)
        frame, due = frame[due >= 0], due[due >= 0]
        for mote, node in zip(motes, nodes, strict=True):
            if node not in frame["nodeid"].to_numpy():
                other = f"{mote.id} = {frame['nodeid'].iloc[0]}"
                raise self._error(
                    f"no sample of node {node}, for mote {mote.id}: give it another's, as in nodes = {{ {other} }}"
                )
        self.step_s = seconds(environment.update if environment.step is None else environment.step)
        index_of: dict[int, list[int]] = {}
        for index, node in enumerate(nodes):
            index_of.setdefault(node, []).append(index)
        order = np.argsort(due, kind="stable")
        self._due = due[order]
        self._indices = [index_of[int(node)] for node in frame["nodeid"].to_numpy()[order]]
        self._values = {name: self._numbers(frame[column])[order] for name, column in columns.items()}
        self._motes = len(motes)
        self._next: int | None = None

    def _error(self, text: str) -> NetworkError:
        return NetworkError(f"environment.trace {self._name}: {text}")

    def _numbers(self, column: pd.Series) -> npt.NDArray[np.float64]:
        try:
            return np.asarray(column.to_numpy(dtype=float))
        except (TypeError, ValueError):
            raise self._error(f"column {column.name!r} has {column.dtype}: expected numbers") from None

    def _moments(self, stamp: pd.Series) -> npt.NDArray[np.float64]:
        """Dates as seconds since 1970, or numbers of seconds as they are."""
        import pandas as pd

        missing = int(stamp.isna().sum())
        if missing:
            raise self._error(f"column {stamp.name!r} says no time in {missing} of {len(stamp)} rows")
        if pd.api.types.infer_dtype(stamp) in ("date", "datetime", "datetime64"):
            moments = pd.to_datetime(stamp, utc=True).dt.tz_localize(None).to_numpy()
            return np.asarray(moments.astype("datetime64[ns]").astype("int64") / 1e9)
        return self._numbers(stamp)

    def _due_times(self, stamp: pd.Series, environment: Environment) -> npt.NDArray[np.float64]:
        """Virtual time in s of each sample; negative before ``start``."""
        if not len(stamp):
            raise self._error(
                "none of the motes' nodes is in its nodeid column: map them with environment.nodes"
            )
        moment = self._moments(stamp)
        last = float(moment.max())
        if environment.start is not None and environment.start > last:
            raise self._error(
                f"start = {environment.start}: the last sample of these nodes is at {last:.15g}"
            )
        start = float(moment.min()) if environment.start is None else environment.start
        if environment.step is None:
            return np.asarray((moment - start) / environment.speedup)
        times = np.unique(moment[moment >= start])
        return np.where(moment >= start, np.searchsorted(times, moment) * seconds(environment.step), -1.0)

    def readings(self, now_s: float) -> Iterator[Reading]:
        """Samples that have come due since the last call."""
        if self._next is None:
            self._next = 0
            for index in range(self._motes):
                for name in self._values:
                    yield index, name, math.nan
        while self._next < len(self._due) and self._due[self._next] <= now_s + 1e-9:
            for index in self._indices[self._next]:
                for name, values in self._values.items():
                    yield index, name, float(values[self._next])
            self._next += 1


def _read(path: str) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise NetworkError(f"environment.trace {path}: no Parquet file: {reason}") from None


def _nodes(environment: Environment, motes: list[Mote]) -> list[int]:
    """The trace's node id of each mote."""
    if isinstance(environment.nodes, list):
        return environment.nodes
    return [environment.nodes.get(str(mote.id), mote.id) for mote in motes]


def build(environment: Environment, motes: list[Mote], rng: np.random.Generator) -> SyntheticField | Trace:
    """The environment that a description asks for."""
    return Trace(environment, motes) if environment.trace else SyntheticField(environment, motes, rng)
