"""Questions about the past, on the cluster: SQL over Parquet files that all workers see, beside the stream."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from skerry.spark.messages import PastRequest
from skerry.storage.history.engine.messages import ClusterPart

#: The scheduler's pool, which has half of the cluster at most while the stream has rows.
_POOL = "past"


def write(spark: SparkSession, request: PastRequest) -> None:
    """Write the rows of a question. Raises whatever Spark does."""
    context, own = spark.sparkContext, spark.newSession()
    context.setLocalProperty("spark.scheduler.pool", _POOL)
    context.setJobGroup(group(request.number), "the past", interruptOnCancel=True)
    own.conf.set("spark.sql.shuffle.partitions", str(max(2, context.defaultParallelism)))
    for name, parts in request.asked.relations:
        frame_of(own, parts).createOrReplaceTempView(name)
    own.sql(request.asked.text).write.parquet(request.asked.into)


def cancel(spark: SparkSession, number: int) -> None:
    """End a question, also one that has not begun."""
    spark.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(group(number))


def group(number: int) -> str:
    """What the jobs of a question go by."""
    return f"past-{number}"


def frame_of(spark: SparkSession, parts: Sequence[ClusterPart]) -> DataFrame:
    """A relation."""
    return reduce(DataFrame.union, [_frame(spark, part) for part in parts])


def _frame(spark: SparkSession, part: ClusterPart) -> DataFrame:
    found = spark.read.parquet(*part.paths)
    if part.condition:
        found = found.where(part.condition)
    return found.selectExpr(*part.columns)
