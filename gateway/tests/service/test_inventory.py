"""The catalog as tables, tags, motes by place, substitutes."""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.tests.catalog.test_motes import status
from skerry.catalog import actions
from skerry.catalog.catalog import Catalog
from skerry.catalog.substitutes import SILENT_S, PlaceError, Wanted, substitutes
from skerry.catalog.table_select import ROWS_MAXIMUM, Table, select
from skerry.catalog.tags import TAGS_MAXIMUM, VALUE_MAXIMUM, TagError, Tags
from skerry.network.network import Common, Network
from skerry.network.networks import Networks
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry.service.inventory import Inventory
from skerry.service.queries import Queries, UserQuery
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import BY_NAME, STATICS_MAXIMUM
from skerry_protocol.codec import decode, encode
from skerry_protocol.codes import PacketType
from skerry_protocol.commands import event_number
from skerry_protocol.extensions import Declared

NOW = 1e9
SMALL = {"motes": Table(("nodeid", "voltage"), [(1, 2.9), (2, None)]), "tags": Table(("nodeid", "key"), [])}


def inventory(queries: Queries | None = None) -> tuple[Inventory, Networks]:
    common = Common()
    network = Networks([Network(lambda _: None, common)], common)
    return Inventory(threading.RLock(), network, queries or Queries(), lambda: None), network


def test_all_tables_are_there_before_anything_is_known() -> None:
    made, _ = inventory()
    for table in (
        "motes",
        "mote_attributes",
        "tags",
        "substitutes",
        "streams",
        "queries",
        "query_streams",
        "points",
    ):
        columns, rows = made.select(f"SELECT * FROM {table}")
        assert (len(columns) > 1, rows) == (True, [])
    [[attributes]] = made.select("SELECT COUNT(*) FROM attributes")[1]
    assert attributes == len(BY_NAME) - STATICS_MAXIMUM
    assert made.select("SELECT low, high FROM commands WHERE command = 'leds'")[1] == [[0, 7]]
    assert ["boot"] in made.select("SELECT event FROM events WHERE query IS NULL")[1]


def test_commands_of_extensions_are_among_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "_KNOWN", dict(actions._KNOWN))
    actions.extend([Declared("COMMAND", "Blink", 130, 0, 3, "so many LEDs", Path("blink.c"))])
    made, _ = inventory()
    assert made.select("SELECT * FROM commands WHERE number > 100")[1] == [
        ["Blink", 130, 0, 3, "so many LEDs"]
    ]


def test_events_with_how_often_they_come() -> None:
    made, network = inventory()
    before = time.time() - 100
    for second in (0, 20, 40, 60):
        event = encode(PacketType.EVENT, event=event_number("boot"), node=3, x=0, y=0, seconds=9, value=0)
        network.all[0].hear([decode(event)])
        network.catalog.events.hear(4711, before + second)
    found = made.select(
        "SELECT event, number, raised, per_hour FROM events WHERE raised > 0 ORDER BY raised, event"
    )[1]
    assert [row[:3] for row in found] == [[None, 4711, 4], ["boot", event_number("boot"), 4]]
    assert found[0][3] == pytest.approx(3 * 36, rel=0.05)
    assert made.select("SELECT DISTINCT raised, last, per_hour FROM events WHERE event = 'button'")[1] == [
        [0, None, None]
    ]
    assert made.select("SELECT MIN(energy) > 0 FROM events")[1] == [[1]]


def test_tables_are_joined_as_anywhere() -> None:
    queries = Queries()
    for number, user in enumerate(("ada", "grace"), start=1):
        plan = plan_query("SELECT temp FROM sensors WHERE temp > 20 SIGNAL hot SAMPLE PERIOD 2 s")
        assert isinstance(plan, QueryPlan)
        queries.add(UserQuery(str(number), user, plan.text, plan, NOW, 0))
    made, network = inventory(queries)
    for node in (1, 2, 3):
        network.catalog.update(status(node=node, x=node * 300, y=node * 400), NOW)
    made.tag(2, {"room": "12"}, "ada")
    sql = "SELECT m.nodeid, t.value FROM motes m JOIN tags t USING (nodeid) WHERE t.key = 'room'"
    assert made.select(sql) == (["nodeid", "value"], [[2, "12"]])
    assert made.select("SELECT nodeid FROM motes WHERE distance(xpos, ypos, 3, 4) <= 5 ORDER BY nodeid")[
        1
    ] == [[1], [2]]
    found = made.select("SELECT user, event, role FROM events JOIN queries USING (query) ORDER BY user")[1]
    assert found == [["ada", "hot", "is raised by it"], ["grace", "hot", "is raised by it"]]
    assert made.select("SELECT user FROM queries", "ada")[1] == [["ada"]], "a user sees his own"
    assert made.select("SELECT query FROM events WHERE query IS NOT NULL", "ada")[1] == [["1"]]


@pytest.mark.parametrize(
    "comment", ["-- one\n", "/* one */", "  /* a ** / b\n*/ -- two\r\n\t", "/**/" * 2000]
)
def test_comments_before_a_question_are_none_of_it(comment: str) -> None:
    made, _ = inventory()
    assert made.select(f"{comment}SELECT 1 AS one") == (["one"], [[1]])
    with pytest.raises(QueryError, match="the catalog is read by SELECT"):
        made.select(f"{comment}DROP TABLE motes")
    with pytest.raises(QueryError, match="the catalog is read by SELECT"):
        made.select(f"{comment}/* SELECT 1")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DROP TABLE motes", "the catalog is read by SELECT: its tables are motes, tags"),
        ("", "the catalog is read by SELECT"),
        ("SELECT 1; DELETE FROM motes", "catalog: You can only execute one statement"),
        ("WITH a AS (SELECT 1) DELETE FROM motes", "the catalog is only read"),
        ("SELECT * FROM mote", "unknown table 'mote': did you mean 'motes'? tables are motes, tags"),
        (
            "SELECT voltge FROM motes",
            "unknown column 'voltge': did you mean 'voltage'? columns are nodeid, voltage",
        ),
        ("SELECT m.zzz FROM motes m", "unknown column 'm.zzz': columns are nodeid, voltage"),
        ("SELECT FROM motes", 'catalog: near "FROM": syntax error'),
        ("SELECT load_extension('x')", "the catalog is only read"),
        ("SELECT * FROM pragma_database_list", "the catalog is only read"),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT SUM(i) FROM n",
            "takes longer than",
        ),
        (
            f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {ROWS_MAXIMUM + 1}) SELECT i FROM n",
            f"more than {ROWS_MAXIMUM} rows: add a condition or LIMIT",
        ),
        ("SELECT zeroblob(100000000)", "catalog: "),
        ("SELECT printf('%.*c', 900000000, 'x')", "widths and precisions below 10000 and no '*'"),
        ("SELECT format('%-900000000d', 1)", "a function cannot take its arguments"),
        ("SELECT printf('%5.10000f', 1)", "a function cannot take its arguments"),
        ("SELECT distance('a', 'b', 1, 2)", "distance takes four numbers"),
    ],
)
def test_what_is_no_question_is_refused_with_a_reason(sql: str, message: str) -> None:
    with pytest.raises(QueryError) as refused:
        select(sql, SMALL)
    assert message in refused.value.summary


def test_numbers_are_formatted_as_sqlite_does() -> None:
    sql = "SELECT printf('%05.1f%%|%-6s|%,d|%9999.3f', 2.25, 'ab', 1234567, 1), format(NULL), printf()"
    with sqlite3.connect(":memory:") as plain:
        assert select(sql, SMALL)[1] == [list(row) for row in plain.execute(sql)]


def test_tags_are_set_as_a_whole_or_not_at_all() -> None:
    tags = Tags()
    assert tags.set(7, {"room": "12", "floor": "2"}, "ada", NOW) == {"floor": "2", "room": "12"}
    for changes, message in (
        ({"room": "13", "1st": "x"}, "tag '1st': a key is a word"),
        ({"room": "13", "other": None}, "mote 7 has no tag 'other': its tags are floor, room"),
        ({"new": "1", "other": None}, "its tags are floor, room$"),
        ({"room": ""}, "a value is 1 to 256 printable characters"),
        ({"room": "x" * (VALUE_MAXIMUM + 1)}, "a value is 1 to 256 printable characters"),
        ({"room": "a\nb"}, "on one line"),
        ({f"k{i}": "v" for i in range(TAGS_MAXIMUM)}, "mote 7 would have 66 tags, and 64 is the most"),
    ):
        with pytest.raises(TagError, match=message):
            tags.set(7, changes, "grace", NOW)
        assert tags.of(7) == {"floor": "2", "room": "12"}
    assert tags.set(7, {"room": "13", "floor": None}, "grace", NOW + 1) == {"room": "13"}
    assert tags.all() == [(7, "room", "13", "grace", NOW + 1)]
    again = Tags()
    again.restore(tags.rows())
    assert again.all() == tags.all()


def test_only_known_motes_are_tagged() -> None:
    made, network = inventory()
    network.catalog.update(status(node=3), NOW)
    with pytest.raises(PlaceError, match="mote 7 has never reported: known are 3"):
        made.tag(7, {"room": "12"}, "ada")


def test_motes_by_place_attributes_and_tags() -> None:
    made, network = inventory()
    for node in range(1, 6):
        without = 1 << BY_NAME["light"].number if node == 2 else 0
        network.catalog.update(status(node=node, x=node * 1000, y=0, attributes=0x3FFF & ~without), NOW)
    for node in (1, 2, 3):
        made.tag(node, {"room": "12" if node < 3 else "13"}, "ada")

    def found(*wanted: Any, **more: Any) -> list[int]:
        return [mote["nodeid"] for mote in made.motes(Wanted(*wanted, **more))]

    assert found() == [1, 2, 3, 4, 5]
    assert found((35, 0)) == [3, 4, 2, 5, 1]
    assert found((35, 0), 10) == [3, 4]
    assert found(has=["light"], tags={"room": "12"}) == [1]
    assert made.motes(Wanted((13.0, 4.0), 5.0))[0]["distance"] == 5.0
    with pytest.raises(PlaceError, match="'within' needs 'near'"):
        Wanted(within=5)
    for place in ((nan, 1.0), (0.0, inf), (-inf, 0.0)):
        with pytest.raises(
            PlaceError,
            match=rf"^near {place[0]:g},{place[1]:g} is no place: write two numbers of m, as in 10,20\.5$",
        ):
            Wanted(place, 3)
    for within in (nan, inf, -inf, -3):
        with pytest.raises(
            PlaceError, match=rf"^within {within:g} m is no distance: write a number of m, as in 5$"
        ):
            Wanted((0.0, 0.0), within)
    with pytest.raises(PlaceError, match="unknown attribute 'tmep'"):
        Wanted(has=["tmep"])


@given(
    st.lists(
        st.tuples(st.integers(-500, 500), st.integers(-500, 500), st.booleans(), st.booleans()), min_size=1
    )
)
def test_substitutes_are_the_nearest_that_lack_nothing_and_are_not_silent(
    motes: list[tuple[int, int, bool, bool]],
) -> None:
    catalog = Catalog()
    light = 1 << BY_NAME["light"].number
    catalog.update(status(node=1, level=3, x=0, y=0), NOW)
    for node, (x, y, lacks, gone) in enumerate(motes, start=2):
        attributes = 0x3FFF & ~(light if lacks else 0)
        catalog.update(
            status(node=node, level=2, x=x, y=y, attributes=attributes), NOW - (SILENT_S + 1 if gone else 0)
        )
    found = substitutes(catalog, 1, NOW)
    assert [one.nodeid for one in found] == sorted(
        (node for node, mote in enumerate(motes, start=2) if not mote[3]),
        key=lambda node: (motes[node - 2][2], math.hypot(*(v / 100 for v in motes[node - 2][:2])), node),
    )
    assert all(one.lacks == (("light",) if motes[one.nodeid - 2][2] else ()) for one in found)
    assert not any(one.lacks for one in substitutes(catalog, 1, NOW, ["temp"]))
    assert substitutes(catalog, 1, NOW, count=1) == found[:1]


@pytest.mark.parametrize("count", [0, -1])
def test_substitutes_are_one_or_more(count: int) -> None:
    catalog = Catalog()
    catalog.update(status(node=1), NOW)
    with pytest.raises(PlaceError, match=f"^count {count} is no number of motes: write 1 or more"):
        substitutes(catalog, 1, NOW, count=count)


def test_a_mote_that_sends_rows_is_not_silent() -> None:
    catalog = Catalog()
    catalog.update(status(node=1, level=1), NOW)
    catalog.update(status(node=2, level=1), NOW)
    catalog.hear([2], NOW + SILENT_S)
    assert [one.nodeid for one in substitutes(catalog, 1, NOW + SILENT_S + 1)] == [2]
    assert substitutes(catalog, 2, NOW + SILENT_S + 1) == []
