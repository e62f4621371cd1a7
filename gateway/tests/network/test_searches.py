"""What becomes of searches of motes for motes, as their FOUND records say, and where the trees for them begin."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from skerry.catalog.static_attributes import StaticAttributes
from skerry.cli.find import lines, understood
from skerry.network.searches import Searched, Searches, check, roots_of
from skerry.sql.errors import QueryError
from skerry_protocol import codec
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codes import PacketType
from skerry_protocol.limits import NO_NODE

ROOM = BY_NAME["room"].number


def found(node: int, mote: int = NO_NODE, tree: int = 0, hops: int = 1, frames: int = 0) -> Any:
    fields = {"node": node, "token": 7, "mote": mote, "tree": tree, "hops": hops, "frames": frames}
    return codec.decode(codec.encode(PacketType.FOUND, **fields)).body


def test_a_search_is_over_when_all_have_told_and_who_has_it_has_answered() -> None:
    searches, searched = Searches(), Searched(7, 5, ROOM, 4, 4, (0, 3, 9))
    searches.add(searched)
    for tree in range(3):
        searches.hear(found(5, tree=tree, hops=0, frames=tree == 1))
    assert not searched.complete, "one that it was passed on to has not told"
    searches.hear(found(2, tree=1 | 0x80))
    assert not searched.complete, "it has the value, and has not answered"
    searches.hear(found(5, mote=2, hops=3))
    assert (searched.complete, searched.found, searched.frames) == (True, {2: 3}, 1)
    searches.hear(found(5, mote=2, hops=9))
    assert searched.found == {2: 3}, "an answer that comes twice"
    assert lines(searched.to_dict())[0] == "mote 2: 3 hops to mote 5"


def test_the_next_search_by_the_same_trees_need_not_wait() -> None:
    searches, first = Searches(), Searched(7, 5, ROOM, 4, 4, (0, 3, 9))
    assert searches.wait(first, 4) > 4
    searches.add(first)
    searches.hear(found(5))
    assert searches.wait(Searched(8, 2, ROOM, 6, 6, (0, 3, 9)), 4) == 1
    assert searches.wait(Searched(8, 2, ROOM, 6, 7, (0, 3, 9)), 4) > 4, "of another kind of summary"


@pytest.mark.parametrize(
    ("name", "low", "high", "said"),
    [
        ("temp", 1, 1, "'temp'"),
        ("room", 5, 4, "never 5 to 4"),
        ("room", -1, 4, "0 to 65535"),
        ("floor", -40000, 0, "-32767 to 32767"),
    ],
)
def test_what_cannot_be_searched_for(name: str, low: int, high: int, said: str) -> None:
    with pytest.raises(QueryError) as refused:
        check(name, low, high, 3, StaticAttributes())
    assert said in f"{refused.value} {refused.value.hint}"


def test_conditions() -> None:
    assert understood("room = 4") == ("room", 4, 4)
    assert understood("floor between -1 and 2") == ("floor", -1, 2)
    with pytest.raises(typer.BadParameter):
        understood("room > 4")


def test_roots_when_there_are_fewer_motes_than_trees() -> None:
    assert roots_of(0, []) == [0, 0, 0]
