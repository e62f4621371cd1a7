"""``make demo``: twenty emulated motes, two users, three queries, one minute.

Runs the same commands that a user would type, each a process of its own: the testbed, the gateway, and two users
with the Python client.
"""

from __future__ import annotations

import json
import queue
import socket
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import skerry
from skerry_testbed import built
from skerry_testbed.children import Children

NETWORK = built.FILES / "networks" / "demo.toml"
#: Seconds of wall clock that the queries run.
DURATION_S = 60
#: Wait for motes to join before the queries start all the same.
JOIN_LIMIT_S = 40
#: How much longer they run at most where one has had no row yet: a machine that does much else takes minutes to start Spark.
LATE_LIMIT_S = 240


@dataclass
class Question:
    """One user's query and what came back."""

    user: str
    sql: str
    style: str
    rows: int = 0
    first_s: float | None = None
    columns: list[str] = field(default_factory=list)


QUESTIONS = (
    Question("ada", "SELECT nodeid, temp, light FROM sensors WHERE temp > 22 SAMPLE PERIOD 5 s", "cyan"),
    Question("grace", "SELECT nodeid, light FROM sensors WHERE light < 300 SAMPLE PERIOD 10 s", "magenta"),
    Question("grace", "SELECT AVG(temp), COUNT(*) FROM sensors SAMPLE PERIOD 5 s", "yellow"),
)

Row = tuple[Question, dict[str, Any]]


def main() -> int:
    """Run the demo; 0 when every query got rows."""
    console = Console(highlight=False)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="skerry-demo-") as directory:
        report = Path(directory) / "report.json"
        # The gateway ends first, then the testbed, which writes its report.
        with Children() as children:
            try:
                with children.interruptible():
                    url = _start(children, Path(directory), report, console)
                    client = skerry.connect(url)
                    motes = _wait_for_motes(client, console)
                    _ask(url, console, began)
                    status = client.status()
            except KeyboardInterrupt:
                console.print("stopped")
                return 1
        _summary(console, json.loads(report.read_text()), status, motes)
    return 0 if all(question.rows for question in QUESTIONS) else 1


def _start(children: Children, directory: Path, report: Path, console: Console) -> str:
    """Start testbed and gateway; returns the gateway's URL once it answers."""
    mote_port, http_port = _free_port(), _free_port()
    skerry_command = str(Path(sys.executable).parent / "skerry")
    commands = (
        ["testbed", str(NETWORK), "--speed", "1", "--port", str(mote_port), "--report", str(report)],
        ["gateway", "--link", f"socket://127.0.0.1:{mote_port}", "--data", str(directory / "data"),
         "--listen", f"127.0.0.1:{http_port}"],
    )  # fmt: skip
    started = []
    for command in commands:
        console.print(f"[dim]$ skerry {' '.join(command)}[/]", soft_wrap=True)
        log = (directory / f"{command[0]}.log").open("wb")
        started.append(children.start([skerry_command, *command], stdout=log, stderr=log))
    url = f"http://127.0.0.1:{http_port}"
    with console.status("gateway and Spark are starting"):
        while not _answers(http_port):
            for child, command in zip(started, commands, strict=True):
                if child.poll() is not None:
                    console.print((directory / f"{command[0]}.log").read_text())
                    raise SystemExit(f"skerry {command[0]} ended with exit code {child.returncode}")
            time.sleep(0.2)
    return url


def _wait_for_motes(client: Any, console: Console) -> int:
    """Wait until all motes have reported; returns how many did."""
    wanted = NETWORK.read_text().count("[[mote]]")
    deadline = time.monotonic() + JOIN_LIMIT_S
    with console.status("") as line:
        while (joined := len(client.motes())) < wanted and time.monotonic() < deadline:
            line.update(f"motes join the tree: {joined} of {wanted}")
            time.sleep(0.5)
    console.print(f"{joined} of {wanted} motes are in the tree")
    return joined


def _ask(url: str, console: Console, began: float) -> None:
    """Both users ask at once; rows are printed as they come."""
    rows: queue.Queue[Row] = queue.Queue()
    for question in QUESTIONS:
        console.print(f"[{question.style}]{question.user:>6}[/]  {question.sql}", soft_wrap=True)
        threading.Thread(target=_user, args=(url, question, rows), daemon=True).start()
    deadline = time.monotonic() + DURATION_S
    with console.status("") as line:
        while (left := deadline - time.monotonic()) > 0 or (
            left > -LATE_LIMIT_S and not all(question.rows for question in QUESTIONS)
        ):
            total = sum(question.rows for question in QUESTIONS)
            line.update(f"{total} rows, " + (f"{left:.0f} s left" if left > 0 else "not yet of all queries"))
            try:
                question, row = rows.get(timeout=0.2)
            except queue.Empty:
                continue
            if question.first_s is None:
                question.first_s = time.monotonic() - began
            question.rows += 1
            values = "  ".join(f"{name}={value}" for name, value in row.items())
            console.print(f"[{question.style}]{question.user:>6}[/]  {values}", soft_wrap=True)


def _user(url: str, question: Question, rows: queue.Queue[Row]) -> None:
    for row in skerry.connect(url, user=question.user).query(question.sql):
        rows.put((question, row))


def _summary(console: Console, report: dict[str, Any], status: dict[str, Any], motes: int) -> None:
    asked = Table("user", "query", "rows", "first row", title="what was asked")
    for question in QUESTIONS:
        first = "none" if question.first_s is None else f"{question.first_s:.0f} s"
        asked.add_row(question.user, question.sql, str(question.rows), first)
    console.print(asked)
    table = Table(
        "mote", "level", "radio duty cycle", "energy", "frames", "repeated", title="each mote, whole run"
    )
    for mote in report["motes"]:
        table.add_row(
            str(mote["node"]),
            str(mote["level"]),
            f"{100 * mote['radio_duty_cycle']:.2f} %",
            f"{1000 * mote['energy']['total_j']:.0f} mJ",
            str(mote["frames"]["sent"]),
            str(mote["frames"]["retransmitted"]),
        )
    console.print(table)
    delivered = sum(query["delivered"] for query in report["queries"])
    produced = sum(query["produced"] - query["under_way"] for query in report["queries"])
    share = 100 * delivered / produced if produced else 0
    console.print(
        f"{motes} motes, {len(report['queries'])} mote queries served {len(QUESTIONS)} users' queries; "
        f"yield {share:.2f} % ({delivered} of {produced} records), "
        f"{status['rows']} rows in the stream log",
        soft_wrap=True,
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    sys.exit(main())
