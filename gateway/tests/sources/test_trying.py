"""What an address brings and the table that is proposed for it: it is made as it is written, and the rows fit it."""

from __future__ import annotations

import json
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

from gateway.tests.ports import free_port
from gateway.tests.process import COMMAND
from gateway.tests.sources.line_server import LineServer
from skerry.sensors.definitions import define
from skerry.sources.decoding import Decoder
from skerry.sources.proposing import for_shell, proposed, shown, statements
from skerry.sources.stream_type import AddressError, Value
from skerry.sources.trying import look
from skerry.sql import sensor_statements

READING = {
    "gas": "CO", "level": 0.7, "n": 12, "ok": True, "counts": [1, 2], "mean": [0.5, None], "at": "2002-11-06T12:00:00Z",
    "sent": 1036584000000,
    "far": 1.5e300, "from": "x", "where": {"place": "gate 'A'", "level": 3, "on map": [{"x": 1}]}, "none": None, "code": "007",
    "lastSeen": 1036584000,
}  # fmt: skip


def decoded(values: list[Value], form: str = "json") -> tuple[str, list[list[object]]]:
    """The statement that makes the table, and the rows as it has them."""
    create, insert = statements("tcp://a:1?x='", proposed(values, form), "gates")
    table = define(sensor_statements.parse(create), "ada", 1)  # type: ignore[arg-type]
    assert isinstance(sensor_statements.parse(insert), sensor_statements.Insert)
    assert table.stream is not None
    decoder = Decoder(table.stream.fields, form)
    return create, [
        decoder.line(value) if isinstance(value, bytes) else decoder.mapping(value) for value in values
    ]  # type: ignore[arg-type]


def test_every_type_of_field() -> None:
    create, [row] = decoded([json.dumps(READING).encode()])
    assert create == (
        "CREATE SENSORS gates (id INT, feed STREAM (gas TEXT, level DECIMAL, n INT, ok BOOLEAN, counts INT[], mean DOUBLE[], "
        "at TIMESTAMP TIME, sent INT, far DOUBLE, from_ TEXT FROM '$.from', place TEXT FROM '$.where.place', where_level INT "
        "FROM '$.where.level', x INT FROM '$.where[''on map''][0].x', none TEXT, code TEXT, lastSeen INT))"
    )
    assert row[9:13] == ["x", "gate 'A'", 3, 1]


@pytest.mark.parametrize(
    ("field", "values", "kind"),
    [
        ("ts", [1036584000, 1036584001.5], "TIMESTAMP FORMAT 'unix s' TIME"),
        ("time", ["1036584000123"], "TIMESTAMP FORMAT 'unix ms' TIME"),
        ("when", ["06.11.2002 12:00:00"], "TIMESTAMP FORMAT '%d.%m.%Y %H:%M:%S' TIME"),
        ("a", ["2002-11-06 12:00", "x"], "TEXT"),
        ("a", [1, None, 2.5], "DECIMAL"),
        ("a", [1, "2"], "INT"),
        ("a", [1, "x"], "TEXT"),
        ("a", [True, 1], "TEXT"),
    ],
)
def test_fields_are_what_all_rows_fit(field: str, values: list[object], kind: str) -> None:
    rows: list[Value] = [{field: value} for value in values]
    [found] = proposed(rows)
    assert found.to_sql() == f"{field} {kind}"


def test_cells_have_numbers_for_names_and_what_is_no_row_is_left_out() -> None:
    create, rows = decoded([b'1,"a, b",2002-11-06T12:00:00Z', b",,"], "csv")
    assert create.endswith("feed STREAM (c1 INT, c2 TEXT, c3 TIMESTAMP TIME))")
    assert rows[1] == [None, None, None]
    assert proposed([b"no json", b"[1]"]) == ()


def test_what_a_source_sends_does_nothing_in_a_terminal_or_a_shell(tmp_path: Path) -> None:
    value = json.dumps({"$(touch gone)": 1, "b`id`\\": 2, "it's": 3, "a b!": 4, "time": "\033[2J"}).encode()
    assert shown(b"\033]0;x\007 " + value[:8]) == '\\x1b]0;x\\x07 {"$(touc'
    fields = proposed([value])
    assert [field.path for field in fields] == ["$['$(touch gone)']", "$['b`id`\\']", "$['a b!']", None]
    for made in statements("tcp://$HOME:1?x=`id`!", fields):
        said = subprocess.run(
            ["bash", "-c", f"printf %s {for_shell(made)}"],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        assert said == made
    assert [*tmp_path.iterdir()] == []
    assert for_shell("a b") == '"a b"'


def test_numbers_of_pages_are_shown_as_numbers() -> None:
    level = json.loads('{"level": 1.983, "far": 1e999}', parse_float=Decimal)
    assert shown(level) == '{"level": 1.983, "far": "1E+999"}'


def test_numbers_that_are_none_are_no_times() -> None:
    [field] = proposed([{"time": float("nan")}, {"time": float("inf")}])
    assert field.to_sql() == "time DOUBLE"


def test_an_address_that_cannot_be_right_is_told_by_who_tries_it(tmp_path: Path) -> None:
    for address, why in (
        ("mqtt://127.0.0.1/a?format=xml", "format=xml: a format is json, csv or text"),
        ("http://127.0.0.1/a?format=xml", "format=xml: a format is json or csv"),
        ("http://127.0.0.1/a?every=-2s", "every=-2s: write a time from 10 ms to 366 days, as in every=2s"),
        ("http://127.0.0.1/a?header.Two Words=x", "header.Two Words: a header's name has letters"),
        ("http://127.0.0.1/a?header.X= x", "header.X: a header is of printable ASCII, with no space before"),
        ("skerry+http://127.0.0.1?sql=DROP ALL", "sql=DROP ALL: 'DROP ALL' stops queries"),
    ):
        with pytest.raises(AddressError) as refused:
            look(address, tmp_path, tmp_path, 20, 1, lambda _: None)
        assert why in str(refused.value)


def test_the_command_shows_rows_and_proposes_a_table(tmp_path: Path) -> None:
    server = LineServer()
    running = subprocess.Popen(
        [COMMAND, "stream", "try", server.address, "--rows", "2", "--for", "60s", "--name", "gates"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    server.send({"gas": "CO", "level": 0.5}, {"gas": "CH4", "level": 2})
    out, _ = running.communicate(timeout=600)
    assert out.splitlines()[:5] == [
        '{"gas": "CO", "level": 0.5}',
        '{"gas": "CH4", "level": 2}',
        "",
        'skerry query "CREATE SENSORS gates (id INT, feed STREAM (gas TEXT, level DECIMAL))"',
        f"skerry query \"INSERT INTO gates VALUES (1, '{server.address}')\"",
    ]
    server.close()
    misnamed = subprocess.run(
        [COMMAND, "stream", "try", server.address, "--name", "my table"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "--name 'my table': a table's name has letters, digits and _" in misnamed.stderr
    failed = subprocess.run(
        [COMMAND, "stream", "try", server.address.replace("tcp", "file"), "--data", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert failed.returncode == 1
    assert "No such file or directory" in failed.stderr


@pytest.mark.parametrize("scheme", ["tcp", "http", "sse+http", "skerry+http"])
def test_where_nobody_listens_that_is_said(tmp_path: Path, scheme: str) -> None:
    address = f"{scheme}://127.0.0.1:{free_port()}/1"
    with pytest.raises(ConnectionError, match="nobody listens there"):
        look(address, tmp_path, tmp_path, 20, 1, lambda _: None)
