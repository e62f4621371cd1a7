"""What the motes' sensors see at a virtual time."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from skerry_testbed.duration import seconds
from skerry_testbed.network import Environment, Mote, NetworkError

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
                yield index, name, field.base + field.gradient[0] * mote.x + field.gradient[1] * mote.y + swing + noise


class Trace:
    """Attributes from a recording, each sample held until the next."""

    def __init__(self, environment: Environment, motes: list[Mote]) -> None:
        frame = pd.read_parquet(str(environment.trace))
        time = environment.time or next((name for name in ("time", "epoch") if name in frame.columns), None)
        columns = environment.columns or {name: name for name in ("temp", "humidity", "light", "voltage") if name in frame.columns}
        for name in (time, "nodeid", *columns.values()):
            if name not in frame.columns:
                raise NetworkError(f"environment.trace {environment.trace}: no column {name!r}; it has {', '.join(frame.columns)}")
        nodes = {index: environment.nodes.get(str(mote.id), mote.id) for index, mote in enumerate(motes)}
        frame = frame[frame["nodeid"].isin(set(nodes.values()))]
        if frame.empty:
            raise NetworkError(f"environment.trace {environment.trace}: none of the motes' ids is in its nodeid column")
        stamp = frame[time]
        moment = stamp.astype("int64") / 1e9 if pd.api.types.is_datetime64_any_dtype(stamp) else stamp.astype(float)
        if environment.start is not None:
            frame, moment = frame[moment >= environment.start], moment[moment >= environment.start]
        times = np.unique(moment.to_numpy())
        if environment.step is not None:
            due = np.searchsorted(times, moment.to_numpy()) * seconds(environment.step)
        else:
            due = moment.to_numpy() - times[0]
        self.step_s = seconds(environment.step) if environment.step is not None else seconds(environment.update)
        index_of: dict[int, list[int]] = {}
        for index, node in nodes.items():
            index_of.setdefault(node, []).append(index)
        order = np.argsort(due, kind="stable")
        self._due = due[order]
        self._nodes = [index_of[int(node)] for node in frame["nodeid"].to_numpy()[order]]
        self._values = {name: frame[column].to_numpy(dtype=float)[order] for name, column in columns.items()}
        self._next = 0

    def readings(self, now_s: float) -> Iterator[Reading]:
        """Samples that have come due since the last call."""
        while self._next < len(self._due) and self._due[self._next] <= now_s + 1e-9:
            for index in self._nodes[self._next]:
                for name, values in self._values.items():
                    yield index, name, float(values[self._next])
            self._next += 1


def build(environment: Environment, motes: list[Mote], rng: np.random.Generator) -> SyntheticField | Trace:
    """The environment that a description asks for."""
    return Trace(environment, motes) if environment.trace else SyntheticField(environment, motes, rng)
