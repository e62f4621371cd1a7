"""Emulated networks, and queries that begin when a benchmark says so."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any

from bench.measuring.plans import query_of
from skerry.planner.model.plans import MoteQuery
from skerry.planner.physical.program import encode
from skerry_protocol.limits import FOREVER
from skerry_testbed.network import Environment, Field, Mote, Network, Radio, check
from skerry_testbed.pytest import NetworkHandle

#: Virtual seconds until all motes have booted.
BOOT_S = 2.5


def described(
    name: str,
    motes: Sequence[Mote],
    radio: Radio,
    seed: int,
    fields: dict[str, Field] | None = None,
    **more: Any,
) -> Network:
    """A network; ``fields``: what sensors see where the benchmark sets nothing."""
    environment = more.pop("environment", None) or Environment(fields=fields or {})
    return check(
        Network(name=name, seed=seed, mote=list(motes), radio=radio, environment=environment, **more)
    )


def started(network: Network, settle_s: float) -> NetworkHandle:
    """The network at work: its root's line is open, and since then so much virtual time has passed."""
    with contextlib.redirect_stdout(io.StringIO()):  # results have the seed
        net = NetworkHandle(network)
    net.advance(BOOT_S)
    net.line.connect()
    net.advance(settle_s)
    return net


def install(
    net: NetworkHandle, number: int, query: MoteQuery | str, start: int, end: int = FOREVER
) -> MoteQuery:
    """Install a query that runs from one second of network time to another. (``skerry_testbed.queries.ask`` begins at once.)"""
    if isinstance(query, str):
        query = query_of(query)
    net.line.install(number, encode(query, start, end))
    return query


def next_epoch(net: NetworkHandle, period_s: int, lead_s: int) -> int:
    """The first second of network time, at least so far ahead, at which an epoch begins."""
    return (int(net.line.network_time()) + lead_s) // period_s * period_s + period_s


def advance_to(net: NetworkHandle, network_s: float) -> None:
    """Until network time is so late."""
    net.advance(network_s - net.line.network_time())
