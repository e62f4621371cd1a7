"""How the tests' Spark runs its Java: begun quickly, for the seconds that a test lasts."""

from __future__ import annotations

import os
from pathlib import Path

#: Java's classes as :mod:`gateway.tests.class_archive` has laid them out. Java passes over what is no such archive, or another Java's.
CACHE = Path(__file__).resolve().parents[2] / "build" / "cache"
ARCHIVE = CACHE / "spark.jsa"
#: Tests are over before a better compiler than the first would pay.
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:cds=off -Xlog:cds+dynamic=off"


def use() -> None:
    """For the Spark of gateways that this process starts."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{BRIEF} -XX:SharedArchiveFile={ARCHIVE}")
