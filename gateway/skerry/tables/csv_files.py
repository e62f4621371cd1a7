"""CSV files. A column is of numbers or times where all its texts are, as people write them; else of texts, as they stand in the file.
Nothing is guessed away: ``007``, ``NA`` and ``null`` are texts, as a database's table of the same texts would have them.

A file ``places.csv.toml`` beside ``places.csv`` says otherwise where that is not what is meant:

    missing = ["NA", "null"]        # texts that stand for nothing, besides an empty field

    [types]
    plot = "text"                   # text, number or time
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from skerry.tables.columns import NOT_UTF8, Reading, TableError
from skerry.tables.times import PATTERN, times_of

#: Bytes that a row has at most, line breaks in quoted fields included.
ROW_BYTES_MAXIMUM = 1 << 26
#: Characters of a text that are shown.
_SHOWN = 40
_KEYS = ("missing", "types")

#: Numbers as people write them: a 0 in front tells that a text is a name, such as of a plot or a postal code.
_WHOLE = r"^\s*[+-]?(0|[1-9][0-9]{0,17})\s*$"
_NUMBER = r"^\s*[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\s*$"
_TRUTH = r"^(?i:true|false)$"


@dataclass(frozen=True)
class _Said:
    """What the file beside it says. ``types`` by a column's name in lower case."""

    missing: tuple[str, ...] = ()
    types: dict[str, str] = field(default_factory=dict)


def type_file(path: Path) -> Path:
    """The file that says what the columns of a CSV file are, where somebody wrote one."""
    return path.with_name(f"{path.name}.toml")


def read(path: Path) -> Reading:
    """A file's columns. Raises TableError, OSError, pa.ArrowException."""
    said = _said(type_file(path))
    # Line breaks may stand in quoted fields, so that rows cannot be told before the file is read.
    options = pa_csv.ReadOptions(block_size=min(ROW_BYTES_MAXIMUM, max(1 << 20, path.stat().st_size)))
    parsing = pa_csv.ParseOptions(newlines_in_values=True)
    with pa_csv.open_csv(path, read_options=options, parse_options=parsing) as opened:
        try:
            names = opened.schema.names
        except UnicodeDecodeError:
            raise TableError(NOT_UTF8) from None
    # An empty field is NULL, "" a text.
    converting = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=["", *said.missing],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    table = pa_csv.read_csv(path, read_options=options, parse_options=parsing, convert_options=converting)
    unknown = [name for name in said.types if name not in [name.lower() for name in names]]
    if unknown:
        raise TableError(f"{type_file(path).name} names a column {unknown[0]}: there are {', '.join(names)}")
    troubles: dict[str, str] = {}
    notes: dict[str, str] = {}
    arrays: list[pa.ChunkedArray] = []
    for name, texts in zip(names, table.columns, strict=True):
        arrays.append(_column(name.lower(), texts, said, troubles, notes))
    return Reading(pa.table(arrays, names=names), troubles, notes)


def _column(
    name: str, texts: pa.ChunkedArray, said: _Said, troubles: dict[str, str], notes: dict[str, str]
) -> pa.ChunkedArray:
    wanted = said.types.get(name)
    if wanted == "text":
        return texts
    if texts.null_count == len(texts):
        return pa.chunked_array([pa.nulls(len(texts), pa.timestamp("ms") if wanted == "time" else pa.null())])
    tried = {"number": (_numbers,), "time": (times_of,)}.get(wanted or "", (_numbers, times_of))
    for convert in tried:
        found = convert(texts)
        if found is not None:
            return found
    if wanted is not None:
        pattern = _NUMBER if wanted == "number" else PATTERN
        troubles[name] = f"{_first_other(texts, pattern)} is no {wanted}"
        return texts
    numbers = pc.sum(pc.match_substring_regex(texts, _NUMBER)).as_py() or 0
    if numbers > (len(texts) - texts.null_count) // 2:
        # Most likely somebody meant it to be of numbers.
        notes[name] = f"a text, as {_first_other(texts, _NUMBER)} is no number"
    return texts


def _numbers(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """As whole numbers where all are, else as floating-point ones, truth as 1 and 0; None: they are none."""
    if pc.all(pc.match_substring_regex(texts, _TRUTH)).as_py():
        return pc.utf8_lower(texts).cast(pa.bool_())
    trimmed = pc.utf8_trim_whitespace(texts)
    for pattern, kind in ((_WHOLE, pa.int64()), (_NUMBER, pa.float64())):
        if pc.all(pc.match_substring_regex(texts, pattern)).as_py():
            # Arrow knows no plus sign.
            return pc.replace_substring_regex(trimmed, r"^\+", "").cast(kind)
    return None


def _first_other(texts: pa.ChunkedArray, pattern: str) -> str:
    """The first text that is not like that, for people; of such that are all alike, one that cannot be."""
    others = pc.fill_null(pc.invert(pc.match_substring_regex(texts, pattern)), False)
    place = pc.index(others, True).as_py()
    place = place if place >= 0 else pc.index(pc.is_valid(texts), True).as_py()
    return f"{texts[place].as_py()[:_SHOWN]!r} in row {place + 1}"


def _said(path: Path) -> _Said:
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        return _Said()
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{path.name} is no TOML: {error}") from None
    unknown = [key for key in raw if key not in _KEYS]
    if unknown:
        raise TableError(f"{path.name} has an unknown entry {unknown[0]}: there are {' and '.join(_KEYS)}")
    missing, types = raw.get("missing", []), raw.get("types", {})
    if not isinstance(missing, list) or not all(isinstance(text, str) for text in missing):
        raise TableError(f'{path.name}: missing is {missing!r}: write a list of texts, as in ["NA"]')
    if not isinstance(types, dict):
        raise TableError(f'{path.name}: types is {types!r}: write [types], and below it plot = "text"')
    for name, kind in types.items():
        if kind not in ("text", "number", "time"):
            raise TableError(f"{path.name}: {name} is {kind!r}: a column is text, number or time")
    return _Said(tuple(missing), {name.lower(): kind for name, kind in types.items()})
