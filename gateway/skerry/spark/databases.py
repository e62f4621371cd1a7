"""Tables of databases that have a JDBC driver, read by Spark in its own process."""

from __future__ import annotations

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from skerry.spark.messages import DatabaseRequest

#: What is raised where the database is to blame. Anything else is a fault of the gateway's.
_EXPECTED = (PySparkException, Py4JError, OSError, pa.ArrowException)


def read(spark: SparkSession, asked: DatabaseRequest) -> pa.Table:
    """One row more than is asked for at most, so that who asks sees that there are more. Raises whatever driver and database do."""
    # In each thread that reads, as the class loader is a thread's.
    spark.sql(f"ADD JAR '{asked.jar.replace(chr(39), chr(92) + chr(39))}'")
    reader = spark.read.format("jdbc").options(**asked.options)
    return reader.load().limit(asked.most + 1).toArrow().replace_schema_metadata(None)


def reason(error: Exception) -> str:
    """What the database or its driver says, where one of them does: the first cause's message."""
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if cause is None:
        said = next(iter(str(error).splitlines()), "")
        # Of what no database or table is to blame for, its kind tells more.
        return said if isinstance(error, _EXPECTED) and said else f"{type(error).__name__}: {said}"
    while cause.getCause() is not None:
        cause = cause.getCause()
    said = str(cause.getMessage() or cause.getClass().getSimpleName())
    return said.splitlines()[0]
