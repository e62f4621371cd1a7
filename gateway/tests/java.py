"""How the tests' Spark runs its Java: begun quickly, for the seconds that a test lasts."""

from __future__ import annotations

import os
from pathlib import Path

from skerry.spark.java_options import VARIABLE

#: Tests are over before a better compiler than the first would pay.
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
#: Where the archive of Spark's classes is.
CACHE = Path(__file__).resolve().parents[2] / "build" / "cache"


def use() -> None:
    """For the Spark of this process and of those that it starts."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", BRIEF)
    os.environ.setdefault(VARIABLE, str(CACHE))
