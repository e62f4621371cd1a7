"""A Spark session as a user's own job has it: the gateway's has other settings."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def users_session(directory: Path) -> SparkSession:
    """On this machine, with two cores. A task whose Python a busy machine is slow to start is tried again, as on a cluster."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2,4]")
        .appName("user")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.local.dir", str(directory / "spark"))
    )
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session
