"""What names a Spark master. Apart from Spark, which is asked for one much later, and then again and again."""

from __future__ import annotations

import re

_THREADS = r"(?:\*|[1-9]\d*)"
_ADDRESS = r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:/,\[\]]+):(\d+)"
_FORMS = tuple(
    re.compile(form)
    for form in (
        "local",
        rf"local\[\s*{_THREADS}\s*\]",
        rf"local\[\s*{_THREADS}\s*,\s*[1-9]\d*\s*\]",
        r"local-cluster\[\s*[1-9]\d*\s*,\s*[1-9]\d*\s*,\s*[1-9]\d*\s*\]",
        rf"spark://{_ADDRESS}(?:,{_ADDRESS})*",
        "yarn",
        rf"k8s://(?:https?://)?{_ADDRESS}",
        r"k8s://https?://[^\s:/,\[\]]+",
    )
)


def check_master(master: str) -> None:
    """Raises ValueError, one line, for what Spark would never take."""
    ports = re.findall(r":(\d+)(?=,|$)", master) if not master.startswith("local") else []
    if not any(form.fullmatch(master) for form in _FORMS) or any(not 0 < int(port) < 65536 for port in ports):
        raise ValueError(
            f"--master {master}: expected local[N] for N threads of this process, spark://HOST:PORT of a cluster "
            "(further masters behind commas), yarn, or k8s://HOST:PORT"
        )


def is_cluster(master: str) -> bool:
    """Whether it has workers beside this machine's process."""
    return not re.match(r"local(\[|$)", master)
