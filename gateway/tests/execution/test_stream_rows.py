"""What many take of a stream's rows: each gets what it asks for, and what is asked alike is made once."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa

from skerry.execution.stream_rows import StreamRows
from skerry.planner.model.source_plans import BOOLEAN, INT, TEXT, Term
from skerry.sensors.join_conditions import column_of, type_of


def id_is(value: int) -> Term:
    return Term("=", BOOLEAN, (Term("column", INT, value="id"), Term("literal", INT, value=value)))


def test_each_gets_its_rows_whatever_others_have_asked_before(drawn_seed: int) -> None:
    chance, count = random.Random(drawn_seed), 300
    ids = [chance.choice([0, 1, 2, 3, None]) for _ in range(count)]
    items = [chance.choice([None, -1, 0, 7]) for _ in range(count)]
    numbers = np.sort(np.array(chance.sample(range(10_000), count), np.int64))
    rows = StreamRows(numbers, {"id": pa.array(ids, pa.int64()), "item": pa.array(items, pa.int64())})
    one = Term("+", INT, (Term("column", INT, value="a.item"), Term("literal", INT, value=1)))
    made = column_of(one, INT, "a").name
    for _ in range(100):
        wanted, first = chance.choice([0, 1, 2, 3, 9, None]), chance.choice([0, 0, 5000, 20_000])
        found = rows.chosen(None if wanted is None else id_is(wanted), first)
        places = [
            place
            for place in range(count)
            if numbers[place] >= first and (wanted is None or ids[place] == wanted)
        ]
        assert found.numbers.tolist() == numbers[places].tolist()
        own = [items[place] for place in places]
        assert found.column("item", pa.int64()).to_pylist() == own
        assert found.column("item", type_of(TEXT)).to_pylist() == [None] * len(own), "it has another type"
        more = [None if item is None else item + 1 for item in own]
        assert found.column(made, pa.int64()).to_pylist() == more


def test_what_is_asked_alike_is_made_once_and_what_is_kept_is_bounded() -> None:
    count = 100
    rows = StreamRows(np.arange(count, dtype=np.int64), {"id": pa.array(np.arange(count) % 2)})
    assert rows.chosen(id_is(0), 0) is rows.chosen(id_is(0), 0)
    first = rows.chosen(id_is(0), 0)
    assert first.column("id", pa.int64()) is first.column("id", pa.int64())
    # Of others that have as many rows each.
    for value in range(2, 12):
        less = Term("<", BOOLEAN, (Term("column", INT, value="id"), Term("literal", INT, value=value)))
        either = Term("OR", BOOLEAN, (id_is(0), Term("NOT", BOOLEAN, (less,))))
        assert len(rows.chosen(either, 0)) == count // 2
    assert rows.chosen(id_is(0), 0) is not first
