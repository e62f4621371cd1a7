"""Window joins on Spark: one stateful operator over all streams, keyed by bucket, checkpointed by Spark."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupStateTimeout

from skerry.joins.executor import OUTPUT, STATE, BucketJoin
from skerry.joins.group import Group
from skerry.joins.state import RunFiles


def joined(
    blocks: DataFrame,
    group: Group,
    buckets: int,
    files: RunFiles,
    limit_bytes: int | None = None,
) -> DataFrame:
    """Answers of a group's joins, as :data:`~skerry.joins.executor.OUTPUT`, over a stream of :data:`~skerry.joins.executor.INPUT`.
    ``files``: where executors put large parts of the state, each under a name that stays what it is when a batch is repeated."""
    operator = BucketJoin(group, buckets, files, limit_bytes)
    return blocks.groupBy("bucket").applyInPandasWithState(
        operator, OUTPUT, STATE, "append", GroupStateTimeout.NoTimeout
    )
