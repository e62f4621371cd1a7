"""Files whose rows are not all rows: cut off, of too few cells, no UTF-8, no times, links that lead out of their directory."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from skerry.sources.decoding import Decoder, MisfitError
from skerry.sources.folder import Folder
from skerry.sources.replay import Replay
from skerry.sources.stream_type import AddressError, Sensor, Signal, Timed, Unfit, Value
from skerry.sources.table_files import rows_of


def told(values: list[Value]) -> list[object]:
    """Rows, and of what is none the reason."""
    return [value.why if isinstance(value, Unfit) else value for value in values]


def test_rows_of_csv_that_are_none_take_no_others_with_them(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [
        b"\xef\xbb\xbfa,b\r\n",
        b"1,x\r\n",
        b"2\r\n",
        b"\r\n",
        b"3,\xff\r\n",
        b'4,"two\r\nlines"\r\n',
        b"5,\xc3\xa4,6\r\n",
        b"7,\r\n",
    ]
    path.write_bytes(b"".join(rows) + b"8," + b"y" * (2 << 20) + b"\n9,z")
    expected = [
        {"a": "1", "b": "x"}, "it has 1 values for 2 columns", "it is no UTF-8, from character 2 on", {"a": "4", "b": "two\r\nlines"},
        "it has 3 values for 2 columns", {"a": "7", "b": None}, "it is no line of CSV, field larger than field limit (1048576)",
        {"a": "9", "b": "z"},
    ]  # fmt: skip
    assert told([*rows_of(path)]) == expected
    # Where it goes on is a number of them all.
    for begin in range(len(expected) + 1):
        assert told([*rows_of(path, begin)]) == expected[begin:]
    for text, found in (("", []), ("a,b\n", []), ("a,b", [])):
        path.write_text(text)
        assert [*rows_of(path)] == found


def test_lines_of_json_end_with_their_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n\n' + b"x" * (3 << 20) + b'\n{"a": 2}')
    assert told([*rows_of(path)]) == [b'{"a": 1}', "it is a line of more than 1 MB", b'{"a": 2}']


def test_times_that_are_none_and_damage_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    at = datetime(2002, 11, 6, 12, 0, 0, 1, UTC)
    times = pa.array([0, 10**18 * 9], pa.timestamp("us", "UTC"))
    fine = pa.array([1_036_584_000_000_001_999] * 2, pa.timestamp("ns", "UTC"))
    pa.parquet.write_table(pa.table({"a": [1, 2], "at": times, "fine": fine}), path)
    first, second = rows_of(path)
    assert first == {"a": 1, "at": datetime(1970, 1, 1, tzinfo=UTC), "fine": at}
    assert isinstance(second, Unfit)
    assert second.why.startswith("it has a value that is none, ")
    with pytest.raises(MisfitError, match="it has a value that is none"):
        Decoder([]).line(second)
    # The second group of rows is damaged.
    pa.parquet.write_table(pa.table({"a": range(5000)}), path, row_group_size=4096, compression="gzip")
    group = pa.parquet.read_metadata(path).row_group(1).column(0)
    with path.open("r+b") as file:
        file.seek(group.data_page_offset)
        file.write(b"damaged " * 8)
    values = rows_of(path)
    assert [next(values) for _ in range(4096)] == [{"a": i} for i in range(4096)]
    with pytest.raises(AddressError, match=r"a\.parquet: "):
        next(values)

    played = Replay()
    played.init(Sensor("replay:a.parquet?speed=max", {}, (), folder=tmp_path))
    for _ in range(2):
        rows = played.read()
        assert isinstance(rows, list)
        assert len(rows) == 2048
    with pytest.raises(AddressError, match=r"a\.parquet: "):
        played.read()
    played.close()


def test_a_directory_goes_on_behind_a_damaged_file_and_follows_no_link_out_of_it(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "in", tmp_path / "secret.csv"
    folder.mkdir()
    elsewhere.write_text("a\npassword\n")
    (folder / "1.jsonl").write_text('{"a": 1}\n')
    (folder / "2.parquet").write_bytes(b"PAR1 or not")
    (folder / "3.csv").symlink_to(elsewhere)
    (folder / "4.csv").symlink_to("1.csv.txt")
    (folder / "1.csv.txt").write_text("a\n4\n")
    (folder / "5.csv").write_text("a\n5\n")
    for path in folder.iterdir():
        if not path.is_symlink():
            os.utime(path, (1e9, 1e9))
    stream = Folder()
    stream.init(Sensor("folder:in", {}, (), folder=tmp_path))
    found, notes = list[Value](), set[str]()
    for _ in range(20):
        values = stream.read()
        found += values if isinstance(values, list) else []
        notes.add(stream.note)
    stream.close()
    assert found == [b'{"a": 1}', {"a": "4"}, {"a": "5"}]
    assert f"passed over 3.csv: it is a link out of {folder}" in notes
    assert any(note.startswith("2.parquet: Parquet") for note in notes)
    assert json.loads(str(stream.position))[0] == "5.csv"


def test_a_replay_by_a_column_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("rain,When\n1,2002-11-06\n")
    told_of = "a.csv has no column '{}', by which it would be played: write time=column, of rain, When"
    for options, field, column in (("?time=wen&speed=max", None, "wen"), ("", "moment", "moment")):
        stream = Replay()
        with pytest.raises(AddressError) as refused:
            stream.init(Sensor(f"replay:a.csv{options}", {}, ("moment",), field, folder=tmp_path))
        stream.close()
        assert str(refused.value) == told_of.format(column)
    for options in ("?time=when", "?speed=max"):
        stream = Replay()
        stream.init(Sensor(f"replay:a.csv{options}", {}, ("moment",), "moment", folder=tmp_path))
        assert isinstance(stream.read(), list)
        stream.close()


def test_a_replay_that_begins_in_the_future_tells_its_rows_as_ahead(tmp_path: Path) -> None:
    ahead = datetime.now(UTC) + timedelta(days=1)
    (tmp_path / "a.csv").write_text(f"at\n{ahead.isoformat()}\n9999-12-31\nnoon\n")
    stream = Replay()
    stream.init(Sensor("replay:a.csv?shift=now&time=at", {}, ("at",), folder=tmp_path))
    first, last, text = stream.read()  # type: ignore[misc]
    assert isinstance(first, Timed)
    assert isinstance(last, Timed)
    assert first.time == ahead
    assert last.time.year == 9999
    assert text == {"at": "noon"}
    assert stream.read() is Signal.END
    stream.close()
