"""Tuples in flash: how many, how evenly it wears, and which are in a box, against DuckDB."""

from __future__ import annotations

import dataclasses
import random

import duckdb
import pytest

from firmware.tests.storage.cut import Flash, Limits, Put, Stored

#: The CC2538's.
PAGES = 144


def test_rows_of_256_kb_and_even_wear() -> None:
    flash = Flash(PAGES, 1)
    assert flash.open()
    stored, least = 11_000, 2**32
    flash.fill(1, stored)
    # No multiple of the tuples of a page: pages are begun at each of its turns.
    for until in range(11_531, 90_000, 531):
        flash.fill(1, until, stored)
        stored, least = until, min(least, flash.record_bytes)
    assert least >= 256 * 1024
    erasures, statistics = flash.erasures, flash.statistics()
    assert flash.faults == 0
    assert max(erasures) <= 1.2 * sum(erasures) / PAGES
    assert (statistics.erased_most, statistics.erased_sum) == (max(erasures), sum(erasures))
    assert statistics.tuples + statistics.evicted == stored
    assert statistics.used <= statistics.capacity


def test_a_box_is_what_duckdb_finds() -> None:
    random_, flash = random.Random(5), Flash(PAGES, 2)
    assert flash.open()
    stored = [
        Stored(random_.randrange(50), 7, n, n % 1024, (
            random_.randrange(-100, 1100), random_.choice((None, *range(-5, 6))), random_.randrange(-(2**31), 2**31),
            int(random_.gauss(0, 3000)),
        ))
        for n in range(1500)
    ]  # fmt: skip
    for n, each in enumerate(stored):
        while flash.untidy:
            flash.tidy()
        assert flash.append(1 + n % 3, each) == Put.STORED
        assert flash.append(1 + n % 3, each) == Put.KNOWN
    database = duckdb.connect()
    database.execute("CREATE TABLE t (i INT, n INT, a INT, b INT, c INT, d INT)")
    database.executemany(
        "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)",
        [(1 + n % 3, n, *each.values) for n, each in enumerate(stored)],
    )
    for index in (1, 2, 3, 4) * 10:
        limits: list[Limits] = []
        condition, parameters = "i = ?", [index]
        for name, spread in zip("abcd", (1200, 11, 2**32, 9000), strict=True):
            low, null = random_.randrange(-spread // 2, spread // 2), random_.random() < 0.5
            low, high = (max(low, -(2**31)), min(low + random_.randrange(spread), 2**31 - 1))
            limits.append((low, high, null))
            condition += f" AND ({name} BETWEEN ? AND ?{f' OR {name} IS NULL' if null else ''})"
            parameters += [low, high]
        expected = database.execute(f"SELECT n FROM t WHERE {condition} ORDER BY n", parameters).fetchall()
        assert [each.sequence for each in flash.scan(index, limits)] == [n for (n,) in expected]
    for each in random_.sample(stored, 100):
        assert flash.find(1 + each.sequence % 3, each.mote, 7, each.sequence) == each
        assert flash.find(2 + each.sequence % 3, each.mote, 7, each.sequence) is None


@pytest.mark.parametrize("attributes", range(1, 7))
def test_a_tuple_comes_back_as_it_was(attributes: int) -> None:
    random_, flash = random.Random(attributes), Flash(PAGES, attributes)
    assert flash.open()
    edges = (None, 0, -1, 32767, 32768, -32768, -32769, 2**31 - 1, -(2**31))
    stored = [
        Stored(n % 3, 65535 - n, 2**32 - 1 - n, 1023, tuple(random_.choice(edges) for _ in range(attributes)))
        for n in range(60)
    ]  # fmt: skip
    for each in stored:
        assert flash.append(65535, each) == Put.STORED
    assert list(flash.scan(65535, attributes=attributes)) == stored
    assert flash.open()
    assert list(flash.scan(65535, attributes=attributes)) == stored


def test_those_that_came_first_are_forgotten_one_after_the_other() -> None:
    """Each that comes has two of its index forgotten that are old: none of another one's, however many lie between."""
    random_, flash = random.Random(9), Flash(PAGES, 9)
    assert flash.open()
    left: dict[int, list[Stored]] = {1: [], 2: [], 3: []}
    forgotten = 0
    for n in range(6000):
        index = random_.choices((1, 2, 3), (10, 10, 1))[0]
        # Of index 2 nothing is forgotten.
        for _ in range(2 if index != 2 else 0):
            first = flash.first(index)
            assert first in (None, left[index][0] if left[index] else None)
            if first is not None and n - first.sequence > 500:
                flash.forget_first(index)
                del left[index][0]
                forgotten += 1
        while flash.untidy:
            flash.tidy()
        stored = Stored(n % 50, 7, n, 0, (n % 30000, None))
        assert flash.append(index, stored) == Put.STORED
        left[index].append(stored)
    assert forgotten > 2000
    for index, expected in left.items():
        assert list(flash.scan(index)) == expected
        assert flash.count(index) == len(expected)
    while flash.first(3) is not None:
        flash.forget_first(3)
    assert flash.count(3) == 0
    assert flash.append(3, dataclasses.replace(left[3][-1], sequence=9999)) == Put.STORED
    assert [each.sequence for each in flash.scan(3)] == [9999]
    assert list(flash.scan(1)) == left[1]


def test_what_is_dropped_is_gone_and_its_number_free() -> None:
    flash = Flash(PAGES, 1)
    assert flash.open()
    flash.fill(4, 300)
    flash.fill(5, 20)
    assert flash.drop(4) == 1
    assert (flash.count(4), flash.count(5)) == (0, 20)
    flash.fill(4, 7)
    for _ in range(2):
        assert (flash.count(4), flash.count(5)) == (7, 20)
        assert [each.sequence for each in flash.scan(4, attributes=4)] == list(range(7))
        assert flash.find(4, 1, 0, 200) is None
        assert flash.open()


def test_what_is_given_is_gone_and_may_come_back() -> None:
    random_, flash = random.Random(4), Flash(PAGES, 4)
    assert flash.open()
    stored = [Stored(n % 9, 7, n, n % 4, (n % 500, None)) for n in range(700)]
    for each in stored:
        while flash.untidy:
            flash.tidy()
        assert flash.append(1, each) == Put.STORED
    given = random_.sample(stored, 300) + stored[:3]
    left = [each for each in stored if each not in given]
    for each in given:
        flash.give(1, each)
        flash.give(2, each)
    for _ in range(2):
        assert list(flash.scan(1)) == left
        assert flash.count(1) == len(left)
        assert flash.find(1, given[0].mote, 7, given[0].sequence) is None
        assert flash.open()
    assert flash.first(1) == left[0]
    assert flash.append(1, given[0]) == Put.STORED
    assert list(flash.scan(1)) == [*left, given[0]]
    assert flash.open()
    assert list(flash.scan(1)) == [*left, given[0]]
    for each in [*left, given[0]]:
        flash.give(1, each)
    assert flash.count(1) == flash.statistics().tuples == 0
    assert flash.append(1, given[1]) == Put.STORED
    assert list(flash.scan(1)) == [given[1]]
    assert flash.faults == 0


def test_what_is_no_tuple_and_one_index_too_many_are_refused() -> None:
    flash = Flash(PAGES, 1)
    assert flash.open()
    for index in range(8):
        assert flash.append(index, Stored(1, 1, 1, 1, (1,))) == Put.STORED
    assert flash.append(8, Stored(1, 1, 1, 1, (1,))) == Put.NEVER
    assert flash.append(1, Stored(1, 1, 2, 1, ())) == Put.NEVER
    assert flash.drop(3) == 1
    assert flash.append(8, Stored(1, 1, 1, 1, (1,))) == Put.STORED


def test_without_an_erased_page_a_tuple_waits() -> None:
    flash = Flash(12, 1)
    assert flash.open()
    n = 0
    while (put := flash.append(1, Stored(1, 1, n, 0, (1, 2)))) == Put.STORED:
        n += 1
    assert put == Put.LATER
    assert n > 2 * 492 // 7
    assert flash.tidy()
    assert flash.append(1, Stored(1, 1, n, 0, (1, 2))) == Put.STORED
