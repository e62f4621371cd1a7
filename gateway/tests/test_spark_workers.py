"""The Python processes that Spark starts."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pyspark
import pytest

from skerry.proxy.spark import WORKERS, session


@pytest.mark.spark
def test_they_take_what_is_installed(tmp_path: Path) -> None:
    """Not Spark's archives of sources, which each process would compile anew."""
    spark = session("local[1]", tmp_path)
    try:
        [(file, path)] = (
            spark.sparkContext.parallelize([0], 1).map(lambda _: (pyspark.__file__, sys.path)).collect()
        )
    finally:
        spark.stop()
    assert file == pyspark.__file__
    archive = next(place for place, entry in enumerate(path) if entry.endswith("pyspark.zip"))
    assert path.index(str(Path(pyspark.__file__).parents[1])) < archive


def test_what_else_python_is_to_begin_with_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.told = 'begun'\n")
    monkeypatch.setattr(sys, "path", [str(WORKERS), "/nowhere/lib/pyspark.zip", str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "told", "not begun", raising=False)
    runpy.run_path(str(WORKERS / "sitecustomize.py"))
    assert vars(sys)["told"] == "begun"
    assert sys.path[-1] == "/nowhere/lib/pyspark.zip"
