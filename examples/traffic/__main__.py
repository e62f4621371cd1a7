"""``python -m examples.traffic``: where a jam goes, from days of a road's loop detectors; Ctrl-C ends it, and all that it has started."""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import duckdb

from examples.running_gateway import gateway, wait_for_spark
from examples.shown_state import ShownState
from skerry.client.errors import GatewayError

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "i80-emeryville.csv"
WANTED = (
    "Put the records of I-80's loop detectors there, or name them with --data: CSV with the columns timestamp, station, percentObs, flow, "
    "occupancy and speed, a row each 5 minutes"
)
FIELDS = "flow", "occupancy", "speed"
CREATE = "CREATE SENSORS road (station INT, reading STREAM (at TIMESTAMP TIME, flow DOUBLE, occupancy DOUBLE, speed DOUBLE 'mph'))"
QUERY = """
SELECT a.at AS first, b.at AS second, a.speed AS slow, b.speed AS slower FROM road AS a, road AS b
WINDOW(a, b) = {minutes} min WHERE a.station = {one} AND b.station = {other} AND a.speed < {mph} AND b.speed < {mph} LATENESS 1 d"""


def stations(path: Path, folder: Path) -> list[int]:
    """A file for each station that has measured anything, as the gateway replays it; their numbers. Raises OSError."""
    rows = defaultdict(list)
    with path.open(newline="") as opened:
        for row in csv.DictReader(opened):
            # What was not observed is imputed.
            if float(row["percentObs"]) > 0:
                rows[int(row["station"])].append([row["timestamp"], *(row[name] for name in FIELDS)])
    folder.mkdir(parents=True, exist_ok=True)
    for station, lines in rows.items():
        with (folder / f"{station}.csv").open("w", newline="") as opened:
            csv.writer(opened).writerows([["at", *FIELDS], *lines])
    return sorted(rows)


class Spread:
    """How many pairs of slow readings lie so many minutes apart."""

    def __init__(self) -> None:
        self.found = Counter[int]()
        self._last = ""

    def add(self, row: dict[str, Any]) -> None:
        """One more pair."""
        minutes = round((row["second"] - row["first"]).total_seconds() / 60)
        self.found[minutes] += 1
        self._last = f": {row['slow']:.0f} mph here, {row['slower']:.0f} mph there {minutes:+d} min"

    def __str__(self) -> str:
        """In a line."""
        return f"{self.found.total()} pairs{self._last}"


def expected(folder: Path, one: int, other: int, minutes: int, mph: int) -> Counter[int]:
    """The same of all pairs, by DuckDB over the stations' files. Raises duckdb.Error."""
    a, b = (f"read_csv('{folder / f'{station}.csv'}')" for station in (one, other))
    rows = duckdb.execute(
        f"SELECT date_diff('minute', a.at, b.at), count(*) FROM {a} AS a JOIN {b} AS b "
        f"ON abs(epoch(a.at) - epoch(b.at)) <= {60 * minutes} WHERE a.speed < {mph} AND b.speed < {mph} GROUP BY ALL"
    ).fetchall()
    return Counter(dict(rows))


def run(options: argparse.Namespace) -> Counter[int]:
    """Raises GatewayError, OSError, duckdb.Error."""
    with tempfile.TemporaryDirectory(prefix="skerry-traffic-") as directory:
        folder = Path(directory)
        known = stations(options.data, folder / "data" / "streams")
        if len(known) < 2:
            raise GatewayError(f"{options.data} has {len(known)} stations that measure: two are compared")
        one, other = known[0], known[-1]
        print(
            f"stations {one} and {other} at {options.speed:g} times their speed; the gateway starts …",
            flush=True,
        )
        with gateway(folder) as client:
            client.execute(CREATE)
            values = ", ".join(
                f"({station}, 'replay:{station}.csv?speed={options.speed:g}&clock=road')" for station in known
            )
            query = QUERY.format(minutes=options.minutes, one=one, other=other, mph=options.mph)
            pairs = Spread()
            with client.query(query) as rows, ShownState(client, lambda: str(pairs)) as state:
                wait_for_spark(client)
                client.execute(f"INSERT INTO road VALUES {values}")
                for row in rows:
                    pairs.add(row)
        wanted = expected(folder / "data" / "streams", one, other, options.minutes, options.mph)
    found = pairs.found
    missing, more = wanted - found, found - wanted
    print(
        f"{found.total()} pairs; DuckDB has {wanted.total()} over the same files: {missing.total()} are missing, {more.total()} too many, "
        f"{state.late} rows were late"
    )
    if missing or more:
        raise GatewayError(
            f"not as DuckDB has it: {dict(missing)} missing, {dict(more)} too many, by minutes"
        )
    return found


def main() -> int:
    """0 when the file has been played, and DuckDB answers the same."""
    parser = argparse.ArgumentParser(prog="python -m examples.traffic", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help=f"detectors' records (default {DATA})")
    parser.add_argument(
        "--speed", type=float, default=20_000, help="seconds of the road in one of yours (default 20000)"
    )
    parser.add_argument(
        "--minutes", type=int, default=30, help="how far apart slow readings may be (default 30)"
    )
    parser.add_argument("--mph", type=int, default=45, help="what is slower is a jam (default 45)")
    options = parser.parse_args()
    if not options.data.exists():
        print(f"{options.data} is not there. {WANTED}", file=sys.stderr)
        return 1
    try:
        found = run(options)
    except KeyboardInterrupt:
        print("stopped")
        return 1
    except (GatewayError, OSError, duckdb.Error) as error:
        print(error, file=sys.stderr)
        return 1
    print("the second station is slow so many minutes after the first (before: below 0):")
    for minutes, count in sorted(found.items()):
        print(f"{minutes:+4d} min {count:6}  {'#' * (60 * count // max(found.values()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
