"""``python -m examples.retail``: what sells in all stores of a shop within an hour; Ctrl-C ends it, and all that it has started."""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb

from examples.retail.stores import ALIASES, CREATE, answers, as_answer, deal, join
from examples.running_gateway import gateway, wait_for_spark
from examples.shown_state import ShownState
from skerry.client.errors import GatewayError

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "retail.parquet"
WANTED = (
    "Put an online shop's sales there, or name them with --data: Parquet with the columns time, invoice, item, quantity, unit_price, "
    "customer and country"
)


class Board:
    """What has come so far."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.found = Counter[tuple[Any, ...]]()
        self.items = Counter[str]()
        #: Rows that came too late for the join.
        self.late = 0

    def add(self, row: dict[str, Any]) -> None:
        """One more answer."""
        with self._lock:
            self.found[as_answer(row)] += 1
            self.items[row["item"]] += 1

    def most(self, count: int) -> list[tuple[str, int]]:
        """Items of the most answers."""
        with self._lock:
            return self.items.most_common(count)

    def __str__(self) -> str:
        """In a line."""
        most = ", ".join(f"{item} {count}" for item, count in self.most(3))
        return f"{self.items.total()} answers: {most}"


def run(options: argparse.Namespace) -> Board:
    """Raises GatewayError, OSError, duckdb.Error."""
    with tempfile.TemporaryDirectory(prefix="skerry-retail-") as directory:
        folder = Path(directory)
        files = folder / "data" / "streams"
        count = deal(options.data, files, options.stores, options.days)
        print(
            f"{count} sales of {options.days} days in {options.stores} stores; the gateway starts …",
            flush=True,
        )
        with gateway(folder) as client:
            client.execute(CREATE)
            sql = join(options.stores, options.minutes)
            print(sql, flush=True)
            values = ", ".join(
                f"({store}, 'replay:{store}.parquet?speed={options.speed:g}&clock=shop')"
                for store in range(1, options.stores + 1)
            )
            board = Board()
            with client.query(sql) as rows, ShownState(client, lambda: str(board)) as state:
                wait_for_spark(client)
                client.execute(f"INSERT INTO stores VALUES {values}")
                for row in rows:
                    board.add(row)
            board.late = state.late
        wanted = answers(files, options.stores, options.minutes)
    missing, more = wanted - board.found, board.found - wanted
    print(
        f"{board.found.total()} answers; DuckDB has {wanted.total()} over the same files: {missing.total()} are missing, {more.total()} "
        f"too many, {board.late} rows were late"
    )
    if missing or more:
        raise GatewayError(f"the first that differs: {next(iter([*missing, *more]))}")
    return board


def main() -> int:
    """0 when the sales have been played, and DuckDB answers the same."""
    parser = argparse.ArgumentParser(prog="python -m examples.retail", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help=f"the shop's sales (default {DATA})")
    parser.add_argument(
        "--stores", type=int, default=3, choices=range(2, len(ALIASES) + 1), help="how many (default 3)"
    )
    parser.add_argument("--days", type=int, default=21, help="of the sales, from the first on (default 21)")
    parser.add_argument("--minutes", type=int, default=60, help="how far apart sales may be (default 60)")
    parser.add_argument(
        "--speed", type=float, default=20_000, help="seconds of the shop in one of yours (default 20000)"
    )
    options = parser.parse_args()
    if not options.data.exists():
        print(f"{options.data} is not there. {WANTED}", file=sys.stderr)
        return 1
    try:
        board = run(options)
    except KeyboardInterrupt:
        print("stopped")
        return 1
    except (GatewayError, OSError, duckdb.Error) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"what {options.stores} stores sell within {options.minutes} min:")
    most = board.most(15)
    for item, count in most:
        print(f"{item:>8} {count:6}  {'#' * (60 * count // most[0][1])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
