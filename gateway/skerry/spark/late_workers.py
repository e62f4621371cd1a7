"""Python workers that start too late. Spark waits ten seconds for one, which nobody can choose and which is little on a machine that does
much else; its streaming query ends then, and begins again in the same JVM, as a new one would be later still."""

from __future__ import annotations

import logging

_log = logging.getLogger(__name__)

#: What Spark says of it (PythonWorkerFactory).
_WORDS = "Python worker failed to connect back"
#: So often one after the other it is tried again.
TIMES = 10


class LateWorkers:
    """Of one streaming query."""

    def __init__(self) -> None:
        self._times = 0

    def forgives(self, error: Exception) -> bool:
        """Whether that is why a query has ended, and it may begin again."""
        if _WORDS not in str(error) or self._times >= TIMES:
            return False
        self._times += 1
        _log.warning(
            "no Python worker of Spark's has started within 10 s: try %d of %d follows", self._times, TIMES
        )
        return True

    def came(self) -> None:
        """There is a batch, so that they have started."""
        self._times = 0
