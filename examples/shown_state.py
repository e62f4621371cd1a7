"""How a join is while an example runs: a line each few seconds, until its ``with`` ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import skerry
from skerry.client.errors import GatewayError

_SHOW_S = 2.0


def line(join: dict[str, Any]) -> str | None:
    """How far it has come, and what it keeps; None: it has had no rows yet. ``join``: as the gateway's status has it."""
    greatest = [us for us in join["greatest_us"].values() if us is not None]
    if not greatest:
        return None
    day = datetime.fromtimestamp(max(greatest) / 1e6, UTC)
    late = f", {join['late']} late" if join["late"] else ""
    return f"{day:%d %b %Y %H:%M}  {join['algorithm']} keeps {join['rows']} rows, {join['bytes'] / 1e6:.1f} MB{late}"


class ShownState:
    """``found``: what has been found so far, to go behind it."""

    def __init__(self, client: skerry.Client, found: Callable[[], str]) -> None:
        self._client, self._found, self._over = client, found, threading.Event()
        #: Rows that came too late for the join.
        self.late = 0
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> ShownState:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _show(self) -> None:
        last = None
        while not self._over.wait(_SHOW_S):
            try:
                joins = self._client.status()["joins"]
            except GatewayError:
                continue
            for join in joins:
                self.late = join["late"]
                now = line(join)
                if now is not None and now != last:
                    print(f"{now}; {self._found()}", flush=True)
                    last = now
