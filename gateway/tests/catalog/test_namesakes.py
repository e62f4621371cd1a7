"""Two motes of one number in a network are named, and one that took another's place is not."""

from __future__ import annotations

import pytest

from skerry.catalog.namesakes import OVER_S, Namesakes


def test_what_motes_say_holds_for_a_while() -> None:
    found = Namesakes()
    found.tell(7, (0xB, 0xA), 1000.0)
    found.tell(0, (0xC, 0), 1100.0)
    assert found.known(1000 + OVER_S - 1, 1.0) == {7: (0xA, 0xB), 0: (0, 0xC)}
    assert found.known(1000 + OVER_S, 1.0) == {0: (0, 0xC)}
    assert found.known(1000 + OVER_S / 10, 10.0) == {0: (0, 0xC)}, "of emulated motes by network time"
    assert found.known(1100 + OVER_S, 1.0) == {}


@pytest.mark.parametrize(
    ("reports", "two"),
    [
        ("AAAA", False),
        ("AAABBB", False),  # another in its place
        ("AAABAB", True),
        ("AABBAABB", True),
        ("ABABBBBB", True),
        ("ABAAAA", False),  # a report of the one before has come late
        ("ABCABC", False),
    ],
)
def test_reports_in_turn_are_two_motes(reports: str, two: bool) -> None:
    found = Namesakes()
    for at, factory in enumerate(reports):
        found.report(7, ord(factory), at)
    assert found.known(len(reports), 1.0) == ({7: (ord("A"), ord("B"))} if two else {})
