"""The environment of the Spark driver: ours, whatever the one that the gateway was started in holds.

Java and Spark take options, directories and class paths from variables that somebody else may have set for another program.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import skerry
import skerry_protocol

#: Variables by which Java takes options that nobody gave on its command line (JDK 17, tool specifications: java).
_OF_JAVA = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "JAVA_OPTS")
#: Of Spark's own variables those that a user of skerry sets: see docs/gateway.md.
_KEPT = ("SPARK_CONF_DIR", "SPARK_LOCAL_IP", "SPARK_SUBMIT_OPTS")
_PREFIXES = ("SPARK_", "PYSPARK_", "HADOOP_", "YARN_", "LC_")
#: Where YARN is, only these say.
_OF_YARN = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
#: Where workers import skerry from: where it is here.
PACKAGES = os.pathsep.join(
    dict.fromkeys(str(Path(str(package.__file__)).parents[1]) for package in (skerry, skerry_protocol))
)


def make_spark_home(directory: Path) -> Path:
    """A SPARK_HOME in a directory: the package's programs and jars, without its archives of PySpark's sources. Spark puts those before
    all else on the path of its Python processes, each of which would compile all of them anew, as Python keeps nothing of an archive's.
    Raises OSError; LookupError: there is no PySpark."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise LookupError("PySpark is not installed: run pip install pyspark")
    home = directory / "home"
    home.mkdir(parents=True, exist_ok=True)
    for part in ("bin", "jars"):
        link = home / part
        link.unlink(missing_ok=True)
        link.symlink_to(Path(found.origin).parent / part)
    return home


def environment(given: Mapping[str, str], master: str, home: Path, spark_home: Path) -> dict[str, str]:
    """``given`` without what is somebody else's; ``home``: for a user that has none."""
    kept = (*_KEPT, *_OF_YARN) if master == "yarn" else _KEPT
    own = {
        name: value
        for name, value in given.items()
        if name in kept or (name not in _OF_JAVA and not name.startswith(_PREFIXES))
    }
    own.setdefault("HOME", str(home))
    # Java could not name files that are written in other characters than those of the locale.
    own["LANG"] = own["LC_ALL"] = "C.UTF-8"
    own["PYTHONUNBUFFERED"] = "1"
    already = own.get("PYTHONPATH", "").split(os.pathsep)
    own["PYTHONPATH"] = os.pathsep.join([PACKAGES, *filter(None, already)])
    own["SPARK_HOME"] = str(spark_home)
    own["PYSPARK_PYTHON"] = own["PYSPARK_DRIVER_PYTHON"] = sys.executable
    return own


def trouble() -> str | None:
    """Why Spark cannot start here, known without trying; None: nothing is known."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return (
            f"user id {os.getuid()} has no name on this machine, and Java's login fails without one: run the gateway as a user of "
            "/etc/passwd, or add this one there"
        )
    return None
