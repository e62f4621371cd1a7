"""What a source sends → the ``CREATE SENSORS`` that it fits, for who looks at it the first time. Units nobody can guess."""

from __future__ import annotations

import csv
import json
import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from skerry.sources.shown import plain
from skerry.sources.stream_type import Timed, Value
from skerry.sql.sensor_statements import KEYWORDS

#: Parts of JSON so deep are looked at, and so many fields proposed.
_DEPTH, _FIELDS = 4, 200
#: Words in the name of a field that is the row's time, best first.
_TIMES = ("time", "timestamp", "at", "moment", "date", "when", "ts")
#: Numbers of so many units since 1970 lie between 1990 and a year from now.
_SINCE_1970 = {"unix s": 1, "unix ms": 1000, "unix us": 1_000_000}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEP = re.compile(r"[A-Za-z_][\w-]*")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
#: Other ways to write times, tried in this order.
_PATTERNS = (
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%Y/%m/%d %H:%M:%S",
)

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Proposed:
    """A field. ``path``: where it is in JSON; None: under its name. ``format``: of a time."""

    name: str
    type: str
    path: str | None = None
    format: str | None = None
    time: bool = False

    def to_sql(self) -> str:
        """As it stands in CREATE SENSORS."""
        parts = [self.name, self.type]
        parts += [f"FORMAT '{self.format}'"] if self.format not in (None, "iso") else []
        parts += [f"FROM '{self.path.replace(chr(39), chr(39) * 2)}'"] if self.path is not None else []
        return " ".join([*parts, "TIME"] if self.time else parts)


def proposed(values: Iterable[Value], form: str = "json") -> tuple[Proposed, ...]:
    """The fields of what has come, in the order in which they were first seen; () where no value has any. ``form``: of lines."""
    rows = list(filter(None, (_mapping(value, form) for value in values)))
    found: dict[Path, list[Any]] = {}
    for row in rows:
        for path, value in _leaves(row, ()):
            # No text of a path has room for a quotation mark.
            if not any(isinstance(step, str) and "'" in step for step in path):
                found.setdefault(path, []).append(value)
    names = _names(list(found)[:_FIELDS], by_place=form == "csv")
    fields = [
        Proposed(names[path], kind, None if form == "csv" else _path(path, names[path]), how)
        for path, seen in found.items()
        if path in names
        for kind, how in [_type(seen, path)]
    ]
    times = [field for field in fields if field.type == "TIMESTAMP"]
    best = min(times, key=lambda field: _rank(field.name), default=None)
    return tuple(
        Proposed(field.name, field.type, field.path, field.format, time=field is best) for field in fields
    )


def statements(address: str, fields: Sequence[Proposed], name: str = "things") -> tuple[str, str]:
    """``CREATE SENSORS`` and ``INSERT`` for one source."""
    own = ", ".join(field.to_sql() for field in fields)
    return (
        f"CREATE SENSORS {name} (id INT, feed STREAM ({own}))",
        f"INSERT INTO {name} VALUES (1, '{address.replace(chr(39), chr(39) * 2)}')",
    )


def is_name(text: str) -> bool:
    """Whether a table may be called so."""
    return _NAME.fullmatch(text) is not None and text.upper() not in KEYWORDS


def format_of(address: str) -> str:
    """How its lines are written."""
    return dict(parse_qsl(urlsplit(address, allow_fragments=False).query)).get("format", "json")


def shown(value: Value) -> str:
    """A value on one line, for people."""
    bare = value.value if isinstance(value, Timed) else value
    if isinstance(bare, bytes):
        return plain(bare.decode(errors="replace").strip())
    return plain(json.dumps(bare, default=_for_json, ensure_ascii=False))


def _for_json(value: object) -> float | str:
    """A number that a page was read with exactly is one again, where doubles have it; any other object is its text."""
    number = float(value) if isinstance(value, Decimal) else math.inf
    return number if math.isfinite(number) else str(value)


def for_shell(text: str) -> str:
    """As one word of a shell, in which nothing is run: names may be anybody's."""
    # What ! does in quotation marks no backslash undoes.
    return shlex.quote(text) if "!" in text else '"' + re.sub(r'([$`"\\])', r"\\\1", text) + '"'


def _mapping(value: Value, form: str) -> Mapping[str, Any] | None:
    bare = value.value if isinstance(value, Timed) else value
    if not isinstance(bare, bytes):
        return bare
    try:
        if form == "csv":
            [cells] = csv.reader([bare.decode().rstrip("\r\n")])
            return {f"c{place}": cell if cell != "" else None for place, cell in enumerate(cells, 1)}
        found = json.loads(bare, parse_float=Decimal)
    except (ValueError, RecursionError, csv.Error):
        return None
    return found if isinstance(found, dict) else None


def _leaves(value: Any, path: Path) -> Iterable[tuple[Path, Any]]:
    if isinstance(value, Mapping) and len(path) < _DEPTH:
        for name, part in value.items():
            yield from _leaves(part, (*path, name))
    elif isinstance(value, list) and value and len(path) < _DEPTH and not _is_array(value):
        for place, part in enumerate(value[:4]):
            yield from _leaves(part, (*path, place))
    elif path and not isinstance(value, Mapping):
        yield path, value


def _is_array(value: list[Any]) -> bool:
    return all(
        one is None or (isinstance(one, int | float | Decimal) and not isinstance(one, bool)) for one in value
    )


def _names(paths: Sequence[Path], *, by_place: bool) -> dict[Path, str]:
    """A name for each, which no other has; ``by_place``: names are those of cells."""
    found: dict[Path, str] = {}
    for path in paths:
        last = (
            path[-1] if isinstance(path[-1], str) else f"{path[-2] if len(path) > 1 else 'value'}_{path[-1]}"
        )
        name = str(last)
        if not _NAME.fullmatch(name):
            name = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "field"
            name = f"f_{name}" if name[0].isdigit() else name
        if not by_place and name.lower() in {other.lower() for other in found.values()}:
            name = "_".join(re.sub(r"\W+", "_", str(step), flags=re.ASCII) for step in path)
        # Of these a statement is made; a field of JSON has its path all the same.
        name = f"{name}_" if name.upper() in KEYWORDS else name
        base, number = name, 1
        while name.lower() in {other.lower() for other in found.values()}:
            number += 1
            name = f"{base}_{number}"
        found[path] = name
    return found


def _path(path: Path, name: str) -> str | None:
    if path == (name,):
        return None
    return "$" + "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" if _STEP.fullmatch(step) else f"['{step}']"
        for step in path
    )


def _type(seen: Sequence[Any], path: Path) -> tuple[str, str | None]:
    there = [value for value in seen if value is not None]
    numbers = [number for number in map(_number, there) if number is not None]
    found: tuple[str, str | None] = "TEXT", None
    if not there:
        return found
    if all(isinstance(value, bool) or str(value).lower() in ("true", "false") for value in there):
        found = "BOOLEAN", None
    elif all(isinstance(value, list) for value in there):
        whole = all(isinstance(one, int) or one is None for value in there for one in value)
        found = ("INT[]" if whole else "DOUBLE[]"), None
    elif all(isinstance(value, datetime) for value in there):
        found = "TIMESTAMP", "iso"
    elif len(numbers) == len(there):
        found = _of_numbers(numbers, str(path[-1]))
    elif all(isinstance(value, str) for value in there):
        forms = (form for form in ("iso", *_PATTERNS) if all(_is_time(text, form) for text in there))
        form = next(forms, None)
        found = ("TIMESTAMP", form) if form is not None else found
    return found


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float | Decimal):
        return Decimal(str(value))
    if isinstance(value, str) and len(value) < 40 and _NUMBER.fullmatch(value):
        # What begins with 0 is a name: of an article, of a place.
        return None if re.match(r"[+-]?0\d", value) else Decimal(value)
    return None


def _of_numbers(numbers: Sequence[Decimal], name: str) -> tuple[str, str | None]:
    latest = datetime.now(UTC) + timedelta(days=366)
    finite = all(number.is_finite() for number in numbers)
    for form, per_s in _SINCE_1970.items():
        first, last = 631_152_000 * per_s, latest.timestamp() * per_s
        if finite and _rank(name) < len(_TIMES) and all(first <= number <= last for number in numbers):
            return "TIMESTAMP", form
    if finite and all(number == number.to_integral_value() and abs(number) < 2**63 for number in numbers):
        return "INT", None
    exact = finite and all(number.adjusted() <= 18 and number == round(number, 9) for number in numbers)
    return ("DECIMAL" if exact else "DOUBLE"), None


def _is_time(text: str, form: str) -> bool:
    try:
        if form == "iso":
            # 20021106 is read as a day: what has no separator is a number.
            return "-" in text[:8] and datetime.fromisoformat(text) is not None
        return datetime.strptime(text, form) is not None
    except ValueError:
        return False


def _rank(name: str) -> int:
    """How much a name is a time's: 0 most, as many as there are words where it is not."""
    words = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return min((place for place, word in enumerate(_TIMES) if word in words), default=len(_TIMES))
