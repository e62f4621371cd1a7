"""The Python processes that Spark starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark
import pytest

from skerry.proxy.spark import WORKERS, session


@pytest.mark.spark
def test_they_take_what_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not Spark's archives of sources, which each process would compile anew; and what else Python is told to begin with holds, too."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import sys\nsys.told = 'begun'\n")
    monkeypatch.setenv("PYTHONPATH", str(other))
    spark = session("local[1]", tmp_path)

    def found(_: int) -> tuple[str | None, str, list[str]]:
        return pyspark.__file__, getattr(sys, "told", "not begun"), sys.path

    try:
        [(file, told, path)] = spark.sparkContext.parallelize([0], 1).map(found).collect()
    finally:
        spark.stop()
    assert file == pyspark.__file__
    assert told == "begun"
    assert str(WORKERS) in path
    assert path.index(str(Path(pyspark.__file__).parents[1])) < next(
        place for place, entry in enumerate(path) if entry.endswith("pyspark.zip")
    )
