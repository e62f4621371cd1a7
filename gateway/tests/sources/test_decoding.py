"""What sources send → declared fields: every type, paths, formats of times, and what does not fit."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from skerry.sensors.definitions import Field
from skerry.sources.addresses import check, refusal
from skerry.sources.decoding import Decoder, MisfitError, microseconds, moment
from skerry.sources.stream_type import AddressError

NOON = 1_036_584_000_000_000  # 2002-11-06 12:00 UTC


@pytest.mark.parametrize(
    ("field", "line", "value"),
    [
        (Field("a", "int"), b'{"a": 3.0}', 3),
        (Field("a", "int"), b'{"A": "12"}', 12),
        (Field("a", "int"), b"{}", None),
        (Field("a", "decimal"), b'{"a": 0.1}', Decimal("0.1")),
        (Field("a", "decimal"), b'{"a": 0.6000000000000001}', Decimal("0.6")),
        (
            Field("a", "decimal"),
            b'{"a": 9999999999999999999999999999}',
            Decimal("9999999999999999999999999999"),
        ),
        (Field("a", "double"), b'{"a": 1e300}', 1e300),
        (Field("a", "boolean"), b'{"a": "yes"}', True),
        (Field("a", "text"), '{"a": "naïve"}'.encode(), "naïve"),
        (Field("a", "int", array=True), b'{"a": [1, null, 3]}', [1, None, 3]),
        (Field("a", "text", path="$.b[1].c"), b'{"b": [0, {"c": "x"}]}', "x"),
        (Field("a", "text", path="$['b c']"), b'{"b c": "x"}', "x"),
        (Field("a", "text", path="$.b[7].c"), b'{"b": [0]}', None),
        (Field("a", "timestamp", format="iso"), b'{"a": "2002-11-06T13:00:00+01:00"}', NOON),
        (Field("a", "timestamp", format="unix ms"), b'{"a": 1036584000000}', NOON),
        (Field("a", "timestamp", format="unix s"), b'{"a": "1036584000.25"}', NOON + 250_000),
        (Field("a", "timestamp", format="%d.%m.%Y %H:%M"), b'{"a": "06.11.2002 12:00"}', NOON),
    ],
)
def test_fields(field: Field, line: bytes, value: object) -> None:
    [found] = Decoder([field]).line(line)
    assert found == value
    assert type(found) is type(value) or isinstance(value, int)


@pytest.mark.parametrize(
    ("field", "line", "why"),
    [
        (Field("a", "int"), b'{"a": 3.5}', "field a is INT, which 3.5 is not"),
        (Field("a", "int"), b'{"a": true}', "which True is not"),
        (Field("a", "int"), b'{"a": 9223372036854775808}', "is INT"),
        (Field("a", "decimal"), b'{"a": "NaN"}', "is DECIMAL"),
        (Field("a", "decimal"), b'{"a": 1e40}', "is DECIMAL"),
        (Field("a", "text"), b'{"a": 3}', "field a is TEXT, which 3 is not"),
        (Field("a", "timestamp", format="iso"), b'{"a": "noon"}', "which 'noon' is not"),
        (Field("a", "timestamp", format="unix s"), b'{"a": 1e30}', "is TIMESTAMP"),
        (Field("a", "double", array=True), b'{"a": 3}', "is DOUBLE"),
        (Field("a", "int"), b"[1]", "it is a list, and no object"),
        (Field("a", "int"), b"{", "it is no JSON"),
        (Field("a", "text"), b'{"a": "\xff"}', "it is no JSON"),
        (Field("a", "text"), b'{"a": "\\ud800"}', "it is no JSON"),
        (Field("a", "int"), b'{"a": ' + b"[" * 100_000 + b"}", "it is no JSON"),
        (Field("a", "decimal"), b'{"a": 1e99999999999999999999}', "it is no JSON, a number is out of range"),
        (Field("a", "int", array=True), b'{"a": "' + b"[" * 100_000 + b'"}', "field a is INT[], which '[[["),
        # Of a table that was made before patterns were read as they are written.
        (
            Field("a", "timestamp", format="%d %d"),
            b'{"a": "1 2"}',
            "field a is TIMESTAMP, which '1 2' is not",
        ),
    ],
)
def test_what_does_not_fit_says_why(field: Field, line: bytes, why: str) -> None:
    with pytest.raises(MisfitError) as refused:
        Decoder([field]).line(line)
    assert why in str(refused.value)


def test_csv_has_fields_in_their_order() -> None:
    decoder = Decoder([Field("a", "int"), Field("b", "text"), Field("c", "double", array=True)], "csv")
    assert decoder.line(b'1,"x, ""y""","[1, 2.5]"\r\n') == [1, 'x, "y"', [1.0, 2.5]]
    assert decoder.line(b",,") == [None, None, None]
    with pytest.raises(MisfitError, match="it has 2 values for 3 fields"):
        decoder.line(b"1,2")
    with pytest.raises(AddressError, match="format=xml: a format is json or csv"):
        Decoder([], "xml")


def test_what_the_operator_allows(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("streams")
    for address, allowed, may in (
        ("tcp://127.0.0.1:1", ("loopback",), True),
        ("tcp://[::1]:1", ("loopback",), True),
        ("http://localhost/now", ("loopback",), True),
        ("http://127.0.0.1.evil.org/", ("loopback",), False),
        ("http://example.org/", ("loopback",), False),
        ("http://example.org/", ("example.org",), True),
        ("http://example.org:81/", ("http://example.org:80",), False),
        ("https://example.org/", ("http://example.org",), False),
        ("file:a.csv", (), True),
        ("file:../a.csv", (), False),
        ("replay:///etc/passwd", ("loopback",), False),
        ("replay:///etc/passwd", ("/etc",), True),
        ("", ("loopback",), False),
        ("gate A", ("loopback",), False),
    ):
        assert (refusal(address, allowed, folder) is None) == may, address


def test_what_an_operator_may_allow() -> None:
    check(["loopback", "example.org", "::1", "http://[::1]:80", "dice://", "/dev/ttyUSB0"])
    for one in ("192.0.2.1:80", "data/streams", "http://example.org:port", "://x", "[::1]", ""):
        with pytest.raises(
            ValueError, match=re.escape(f"--sources '{one}' is none of loopback, a host, scheme://")
        ):
            check([one])
    said = refusal("http://u@Example.org:81/", ("http://example.org:80",), Path())
    assert (
        said
        == "the operator allows no http://example.org:81: 'skerry gateway --sources http://example.org:81' does"
    )
    said = refusal("tcp:127.0.0.1:5001", ("loopback",), Path())
    assert (
        said == "'tcp:127.0.0.1:5001' names no host, and without one it is not allowed: write tcp://host:port"
    )


def test_what_names_no_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "round.csv").symlink_to("round.csv")
    for name, why in (("a\0b", "embedded null byte"), ("round.csv", "its links lead in a circle")):
        assert refusal(f"file:{name}", (), tmp_path) == f"'{name}' names no file: {why}"


def test_times_of_any_kind_are_microseconds() -> None:
    at = datetime(2002, 11, 6, 12, 0, 0, 1, UTC)
    assert moment(at, "iso") == microseconds(at) == NOON + 1
    assert moment(date(2002, 11, 6), "unix s") == NOON - 12 * 3_600_000_000
