"""How the tests' Spark runs its Java: begun quickly, for the seconds that a test lasts."""

from __future__ import annotations

import os
from pathlib import Path

#: Tests are over before a better compiler than the first would pay.
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable"
#: Made by :mod:`gateway.tests.spark_archive`.
ARCHIVE = Path(__file__).resolve().parents[2] / "build" / "spark.jsa"


def use() -> None:
    """For the Spark of this process and of those that it starts. Java passes over an archive that is not there."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{BRIEF} -XX:SharedArchiveFile={ARCHIVE}")
