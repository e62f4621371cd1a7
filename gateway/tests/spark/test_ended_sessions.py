"""What is kept of a Spark that has ended."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from skerry.spark.ended_sessions import forget_ended


def test_a_jvm_that_somebody_else_has_started_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with PYSPARK_GATEWAY_PORT: PySpark knows no process then."""
    gateway = SimpleNamespace(shutdown=lambda: pytest.fail("it is not ours"))
    monkeypatch.setattr(SparkContext, "_gateway", gateway)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    assert not forget_ended()
    assert SparkContext._gateway is gateway
