"""Sample periods of milliseconds on emulated motes: every sample arrives, and pulses are those of the samples."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from hil_tests.queries import ask, rows
from skerry_testbed.network import Environment, Field
from skerry_testbed.pytest import MakeNetwork, disc, line_of

#: A vehicle each 0.7 s, or what looks like one to a mote.
SHAKEN = Environment(fields={"accel_x": Field(base=0.0, amplitude=1.0, period="690 ms")}, update="10 ms")
PULSES = """
    SELECT max(epoch) + 1 AS epoch, count(*) AS length FROM (
      SELECT epoch, epoch - row_number() OVER (ORDER BY epoch) AS run FROM samples WHERE accel_x > 0.3)
    GROUP BY run HAVING max(epoch) < (SELECT max(epoch) FROM samples) ORDER BY 1"""


def of_mote(found: list[dict[str, Any]], column: str) -> list[tuple[int, Any]]:
    return sorted((row["epoch"], row[column]) for row in found if row["nodeid"] == 1)


@pytest.mark.parametrize("board", ["iris", "cc2538"])
def test_each_sample_arrives_and_pulses_are_those_of_the_samples(network: MakeNetwork, board: str) -> None:
    net = network(line_of(2, spacing=10, boards=[board]), radio=disc(12), environment=SHAKEN)
    net.advance("60s")
    asked = {
        name: ask(net, query, f"SELECT {what} FROM sensors WHERE nodeid = 1 SAMPLE PERIOD 5 ms", end=90)
        for query, (name, what) in enumerate(
            {"accel_x": "accel_x", "length": "PULSE(accel_x > 0.3)", "count": "PULSES(accel_x > 0.3, 1 s)"}.items(), 1
        )
    }  # fmt: skip
    net.advance("50s")
    sampled = of_mote(rows(net.line, 1, asked["accel_x"]), "accel_x")
    epochs = [epoch for epoch, _ in sampled]
    assert epochs == list(range(epochs[0], 90 * 200)), "each epoch once"
    samples = pa.table({"epoch": epochs, "accel_x": [value for _, value in sampled]})  # noqa: F841 for duckdb
    ended = duckdb.sql(PULSES)
    pulses = ended.fetchall()
    assert len(pulses) > 20
    assert of_mote(rows(net.line, 2, asked["length"]), "w0") == pulses
    counts = duckdb.sql("SELECT epoch // 200 * 200 + 199 AS last, count(*) FROM ended GROUP BY 1 ORDER BY 1")
    assert counts is not None
    assert of_mote(rows(net.line, 3, asked["count"]), "w0") == counts.fetchall()
    assert net.motes[1].counters["crashes"] == 0
