"""Asks a root mote behind a TCP port for rows of every mote, and holds them against the network's description.

The same check for Renode and for the testbed: nothing of the gateway's daemon is needed but its planner. Prints the rows as CSV; exits
with 1 and a line that says why when rows are missing or wrong.
"""

from __future__ import annotations

import argparse
import socket
import sys
import time
from pathlib import Path

from hil_tests.renode.expected import Expected
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry_protocol.limits import FOREVER
from skerry_testbed.line import Line
from skerry_testbed.network import load
from skerry_testbed.queries import LEAD_S, rows

PERIOD_S = 5
SQL = f"SELECT nodeid, level, temp, light FROM sensors SAMPLE PERIOD {PERIOD_S} s"
#: Virtual time in s for motes to find their places in the tree before they are asked.
SETTLING_S = 20


def connect(port: int, limit: float) -> socket.socket:
    """The root's line. Raises TimeoutError when nobody listens until ``limit``, a time of time.monotonic."""
    while True:
        try:
            link = socket.create_connection(("127.0.0.1", port), timeout=1)
        except OSError:
            if time.monotonic() > limit:
                raise TimeoutError(f"nobody listens on 127.0.0.1:{port}") from None
            time.sleep(0.2)
        else:
            link.settimeout(0.05)
            return link


def pump(link: socket.socket, line: Line) -> None:
    """Hand on what has come."""
    try:
        data = link.recv(4096)
    except TimeoutError:
        return
    if not data:
        raise ConnectionError("the root's line was closed")
    line.received(data)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("network", type=Path, help="the description that the motes run by")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--epochs", type=int, default=3, help="rows wanted of each mote")
    parser.add_argument("--timeout", type=float, default=600, help="seconds of wall-clock time")
    options = parser.parse_args()
    network = load(options.network)
    expected, limit = Expected(network), time.monotonic() + options.timeout
    try:
        link = connect(options.port, limit)
        line = Line(link.sendall, time.monotonic)
        line.connect()
        while line.hello is None or line.network_time() < SETTLING_S:
            _in_time(limit, f"the root has not answered, or not run for {SETTLING_S} s")
            pump(link, line)
        plan = plan_query(SQL)
        assert isinstance(plan, QueryPlan)
        query = merge([plan])
        line.install(1, encode(query, int(line.network_time()) + LEAD_S, FOREVER))
        wanted = {mote.id: options.epochs for mote in network.mote}
        while any(count > 0 for count in wanted.values()):
            missing = {node: count for node, count in wanted.items() if count > 0}
            _in_time(limit, f"rows are missing: {missing} (mote: rows)")
            pump(link, line)
            wanted = {
                node: options.epochs
                - len({row["epoch"] for row in rows(line, 1, query) if row["nodeid"] == node})
                for node in wanted
            }
    except (TimeoutError, ConnectionError) as error:
        print(f"ask: {error}", file=sys.stderr)
        return 1
    found = rows(line, 1, query)
    print("nodeid,level,epoch,temp,light")
    for row in found:
        print(f"{row['nodeid']},{row['level']},{row['epoch']},{row['temp']},{row['light']}")
    return _judge(expected, found)


def _in_time(limit: float, what: str) -> None:
    if time.monotonic() > limit:
        raise TimeoutError(f"out of time: {what}")


def _judge(expected: Expected, found: list[dict[str, float]]) -> int:
    wrong = []
    hops = expected.hops()
    for row in found:
        node, at = int(row["nodeid"]), row["epoch"] * PERIOD_S
        wrong += [
            fault
            for attribute in ("temp", "light")
            if (fault := expected.wrong(node, attribute, row[attribute], at))
        ]
        if row["level"] < hops[node]:
            wrong.append(f"mote {node}: level {row['level']}: it is {hops[node]} hops from the root")
    for fault in wrong:
        print(f"ask: {fault}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
