"""Windows as a graph: what holds aliases together, how far they are apart, and what is refused."""

from __future__ import annotations

import pytest

from skerry.joins.windows import UNBOUNDED, Window, WindowError, WindowGraph, uniform


def test_missing_windows_are_bounded_by_the_shortest_way() -> None:
    windows = {
        frozenset("ab"): Window(10),
        frozenset("bc"): Window(20),
        frozenset("cd"): Window(5),
        frozenset("ad"): Window(100),
    }
    graph = WindowGraph("abcd", windows)
    assert graph.distance[0] == [0, 10, 30, 35]
    assert [graph.retention(place) for place in range(4)] == [35, 25, 30, 35]


def test_rows_hold_aliases_together_and_bound_no_time() -> None:
    graph = WindowGraph("abc", {frozenset("ab"): Window(10), frozenset("bc"): Window(rows=3)})
    assert graph.distance[0] == [0, 10, UNBOUNDED]
    assert graph.has_rows


def test_a_join_that_falls_apart_is_refused_with_its_parts_named() -> None:
    with pytest.raises(WindowError) as error:
        WindowGraph("abcde", {frozenset("ac"): Window(1), frozenset("bd"): Window(1)})
    assert str(error.value) == (
        "no window bounds how far apart rows of a and c, of b and d and of e may be: add one between them, such as WINDOW(c, b) = 10 min"
    )


@pytest.mark.parametrize(
    ("aliases", "windows", "said"),
    [
        ("a", {}, "a join of 1 streams: it takes two aliases or more"),
        ("aa", {}, "alias 'a' stands for two streams: give each its own name"),
        ("ab", {frozenset("ax"): Window(1)}, "'x' in WINDOW(a, x) is no alias of this join: they are a, b"),
        ("ab", {frozenset("a"): Window(1)}, "WINDOW(a, a): a window is between two aliases"),
    ],
)
def test_what_is_no_window_is_named(aliases: str, windows: dict[frozenset[str], Window], said: str) -> None:
    with pytest.raises(WindowError) as error:
        WindowGraph(aliases, windows)
    assert str(error.value) == said


def test_windows_have_bounds() -> None:
    for us, rows, said in ((None, None, "neither"), (-1, None, "-1 µs"), (None, 0, "0 ROWS")):
        with pytest.raises(WindowError, match=said):
            Window(us, rows)
    assert len(uniform("abc", Window(1))) == 3
