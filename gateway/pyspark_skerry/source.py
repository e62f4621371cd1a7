"""The data source as Spark knows it. What reads is imported when something is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark_skerry.reading import Reading


class DefaultSource(DataSource):
    """``format("skerry")``; docs/spark.md describes options and columns."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "skerry"

    def schema(self) -> StructType:
        """Columns of what is asked for. Raises DataError, of options that are not right."""
        from pyspark_skerry.columns import spark_schema

        return spark_schema(self._reading().schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        """For spark.read."""
        from pyspark_skerry.readers import PastReader

        return PastReader(self._reading(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For spark.readStream."""
        from pyspark_skerry.readers import LiveReader

        return LiveReader(self._reading(schema))

    def _reading(self, schema: StructType | None = None) -> Reading:
        from pyspark_skerry.options import reading_of

        return reading_of(dict(self.options), schema)
