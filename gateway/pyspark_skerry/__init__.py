"""Streams of sensor motes, and their past, as a data source of Spark: ``spark.read.format("skerry")`` and ``spark.readStream``.

PySpark imports this wherever any Python data source is used, so that it brings along only what says that there is one.
"""

from __future__ import annotations

from importlib.metadata import version

from pyspark_skerry.source import DefaultSource

__all__ = ["DefaultSource", "__version__"]

__version__ = version("skerry")
