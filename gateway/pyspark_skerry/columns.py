"""Columns as Spark has them."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType


def spark_schema(schema: pa.Schema) -> StructType:
    """Arrow's types in Spark's; units and decimal places are in the columns' metadata, as ``unit`` and ``digits``."""
    return StructType(
        [
            StructField(
                field.name, from_arrow_type(field.type, prefer_timestamp_ntz=False), True, _known(field)
            )
            for field in schema
        ]
    )


def _known(field: pa.Field) -> dict[str, str | int]:
    metadata = field.metadata or {}
    found: dict[str, str | int] = {}
    if metadata.get(b"unit"):
        found["unit"] = metadata[b"unit"].decode()
    if b"digits" in metadata:
        found["digits"] = int(metadata[b"digits"])
    return found
