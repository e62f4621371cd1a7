"""What cannot be in an [environment]. Raises NetworkError, which names key, value and what would be right."""

from __future__ import annotations

import math
from pathlib import Path

from skerry_testbed.checks import duration, require
from skerry_testbed.core import SENSORS
from skerry_testbed.description import Environment, NetworkError

#: That sensors measure.
ATTRIBUTES = tuple(SENSORS)


def check_environment(environment: Environment, folder: Path, ids: list[int]) -> None:
    for table in ("fields", "columns"):
        for name in getattr(environment, table):
            if name not in ATTRIBUTES:
                raise NetworkError(
                    f"environment.{table}.{name}: no such attribute; motes can sense {', '.join(ATTRIBUTES)}"
                )
    for name, field in environment.fields.items():
        key = f"environment.fields.{name}"
        period = duration(f"{key}.period", field.period)
        require(period >= 1e-3, f"{key}.period", field.period, "at least 1 ms")
        require(0 <= field.noise < math.inf, f"{key}.noise", field.noise, "0 or more")
        for part in (field.base, *field.gradient, field.amplitude):
            require(math.isfinite(part), key, part, "finite numbers")
    update = duration("environment.update", environment.update)
    require(update >= 0.01, "environment.update", environment.update, "at least 10 ms")
    if environment.trace is None:
        for key in ("columns", "nodes", "time", "start", "step"):
            value = getattr(environment, key)
            require(
                value is None or value in ({}, []), f"environment.{key}", value, "environment.trace beside it"
            )
        require(
            environment.speedup == 1.0,
            "environment.speedup",
            environment.speedup,
            "environment.trace beside it",
        )
        return
    start = environment.start or 0.0
    require(math.isfinite(start), "environment.start", environment.start, "a finite number")
    path = folder.resolve() / environment.trace
    require(path.is_file(), "environment.trace", environment.trace, f"a Parquet file; {path} is none")
    require(
        not environment.fields, "environment.fields", list(environment.fields), "either a trace or fields"
    )
    if environment.step is not None:
        step = duration("environment.step", environment.step)
        require(step >= 0.01, "environment.step", environment.step, "at least 10 ms")
        require(
            environment.speedup == 1.0,
            "environment.speedup",
            environment.speedup,
            "either a step or a speedup",
        )
    require(0 < environment.speedup < math.inf, "environment.speedup", environment.speedup, "more than 0")
    if isinstance(environment.nodes, list):
        count = len(environment.nodes)
        require(
            count == len(ids),
            "environment.nodes",
            environment.nodes,
            f"one of its node ids for each of {len(ids)} motes",
        )
    else:
        for node in environment.nodes:
            require(node in map(str, ids), "environment.nodes", node, "ids of motes")
    environment.trace = str(path)
