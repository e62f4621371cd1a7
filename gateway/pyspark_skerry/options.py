"""Options of the data source: what they may be, and what is said of others. Spark gives them in lower case."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_skerry.bounds import Bounds
from pyspark_skerry.query_rows import QueryRows, plan_of
from pyspark_skerry.reading import Reading, Start
from pyspark_skerry.stream_rows import StreamRows
from skerry.storage.history.snapshot import Snapshot
from skerry.storage.state import DataError

#: By their names in lower case.
NAMES = {
    name.lower(): name
    for name in (
        "data", "stream", "query", "columns", "motes", "startRow", "startTime", "endTime", "failOnDataLoss",
        "maxRowsPerTrigger",
    )
}  # fmt: skip
#: Node ids that motes can have.
_NODE_MAXIMUM = 0xFFFF
_EPOCH, _US = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


def reading_of(options: Mapping[str, str], schema: StructType | None) -> Reading:
    """What the options ask for; ``schema``: the columns that Spark expects, if it knows. Raises DataError."""
    given = {name.lower(): value.strip() for name, value in options.items()}
    for name, value in given.items():
        if name not in NAMES:
            near = [NAMES[close] for close in get_close_matches(name, NAMES, 1)]
            meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES.values())}"
            raise DataError(f"option {name} ('{value}') is none of the format skerry: {meant}")
    if not given.get("data"):
        raise DataError(
            "option data is missing: give the data directory, which 'skerry gateway --data' names"
        )
    # Workers begin elsewhere.
    data = Path(given["data"]).expanduser().absolute()
    reading = _rows(data, given)
    return reading if schema is None else reading.expecting(to_arrow_schema(schema, timezone="UTC"))


def _rows(data: Path, given: Mapping[str, str]) -> Reading:
    snapshot = Snapshot.of(data)
    columns = given.get("columns")
    names = tuple(name.strip() for name in columns.split(",")) if columns is not None else None
    bounds, start = _bounds(given), _start(given)
    lossless, most = _lossless(given), _most(given)
    if given.get("stream") and given.get("query"):
        raise DataError(
            f"options stream ('{given['stream']}') and query ('{given['query']}') are both given: give one of them"
        )
    reading: Reading
    if given.get("query"):
        plan, position = plan_of(snapshot, given["query"])
        alone, what = not plan.aggregate, f"query {given['query']}"
        reading = QueryRows(
            data, bounds, start, lossless, names, most,
            query=given["query"], plan_of_query=plan, position=position,
        )  # fmt: skip
        whole = reading.whole_schema(snapshot)
    elif given.get("stream"):
        selection = snapshot.select(given["stream"])
        reading = StreamRows(data, bounds, start, lossless, names, most, selection=selection)
        whole = reading.whole_schema(snapshot)
        alone, what = "nodeid" in whole.names, f"stream {given['stream']}"
    else:
        raise DataError(
            "options stream and query are missing: give stream 'sensors' for all readings of motes, the number of a stream as 'skerry "
            "status' shows it, or a query that 'skerry list' shows"
        )
    if bounds.motes is not None and not alone:
        raise DataError(
            f"option motes is '{given['motes']}', and rows of {what} are of no mote alone: leave it out"
        )
    reading.choose(whole)
    return reading


def _bounds(given: Mapping[str, str]) -> Bounds:
    since, until = _time(given, "startTime"), _time(given, "endTime")
    if since is not None and until is not None and until <= since:
        raise DataError(
            f"option endTime is '{given['endtime']}', which is not after startTime '{given['starttime']}': rows are given that were "
            "sampled from startTime on and before endTime"
        )
    row = _start(given).row
    return Bounds(row=row, since_us=since, until_us=until, motes=_motes(given))


def _start(given: Mapping[str, str]) -> Start:
    text = given.get("startrow")
    if text is None:
        return Start()
    if text in ("earliest", "latest"):
        return Start(latest=text == "latest")
    if not text.isdecimal() or int(text) >= 1 << 63:
        raise DataError(
            f"option startRow is '{text}': give the number of a row (0, 1, …), earliest or latest"
        )
    return Start(int(text))


def _time(given: Mapping[str, str], name: str) -> int | None:
    """UTC in us."""
    text = given.get(name.lower())
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        return (time - _EPOCH) // _US
    except (ValueError, OverflowError):
        raise DataError(
            f"option {name} is '{text}': give UTC as 2026-11-21 or 2026-11-21T08:30:00, or another zone's time as "
            "2026-11-21T09:30:00+01:00"
        ) from None


def _motes(given: Mapping[str, str]) -> frozenset[int] | None:
    text = given.get("motes")
    if text is None:
        return None
    found = [part.strip() for part in text.split(",")]
    for part in found:
        if not part.isdecimal() or int(part) > _NODE_MAXIMUM:
            raise DataError(
                f"option motes is '{text}', and '{part}' is no mote: give node ids of 0 to {_NODE_MAXIMUM} with commas between, as 1,2,7"
            )
    return frozenset(map(int, found))


def _lossless(given: Mapping[str, str]) -> bool:
    text = given.get("failondataloss", "true").lower()
    if text not in ("true", "false"):
        raise DataError(f"option failOnDataLoss is '{text}': give true or false")
    return text == "true"


def _most(given: Mapping[str, str]) -> int:
    text = given.get("maxrowspertrigger")
    if text is None:
        return Reading.rows_per_batch
    if not text.isdecimal() or not 0 < int(text) < 1 << 31:
        raise DataError(
            f"option maxRowsPerTrigger is '{text}': give a number of rows of the log, of 1 to {(1 << 31) - 1:,}"
        )
    return int(text)
