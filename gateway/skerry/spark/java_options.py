"""How Spark's Java begins: with its classes as an earlier run laid them out, where there is an archive of them.

Java otherwise unpacks, checks and links some twenty thousand classes at each start, which takes longer than all else there.
:mod:`skerry.spark.class_archive` makes the archive. Source: JEP 350, dynamic class-data sharing.
"""

from __future__ import annotations

import os
import shutil
from hashlib import sha256
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

#: Names the directory of what is kept to be quicker the next time, and may be deleted at any time.
VARIABLE = "SKERRY_CACHE"
#: Java goes on without an archive that it cannot use, and says nothing of it.
QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def cache() -> Path:
    """The directory of what may be deleted; it need not be there. RuntimeError: the user has no home."""
    own = os.environ.get(VARIABLE)
    if own:
        return Path(own)
    general = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (general if general.is_absolute() else Path.home() / ".cache") / "skerry"


def archive() -> Path | None:
    """Where the archive of this Spark's classes on this Java is, whether it has been made or not; None: there is no place for it."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        return None
    try:
        binary = Path(java).resolve(strict=True)
        jars = Path(_find_spark_home()) / "jars"
        # Java refuses what was made by another build of it, or from other files, whose times it looks at.
        parts = [str(binary), binary.stat().st_mtime_ns, str(jars), jars.stat().st_mtime_ns]
        return cache() / f"spark-{sha256(repr(parts).encode()).hexdigest()[:16]}.jsa"
    except (OSError, RuntimeError):
        return None


def options() -> str:
    """Options for Java; "": there is no archive yet."""
    file = archive()
    return f"-XX:SharedArchiveFile={file} {QUIET}" if file is not None and file.is_file() else ""
