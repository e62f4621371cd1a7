"""Static attributes: statements, names in queries, tags that are values, what is refused; motes are told in hil_tests/test_statics.py."""

from __future__ import annotations

import threading

import pytest

from gateway.tests.catalog.test_motes import status
from skerry.catalog.static_attributes import StaticAttributes, statics_of
from skerry.catalog.static_values import StaticValues
from skerry.catalog.tags import TagError
from skerry.expressions.expression import from_list, render
from skerry.network.commands import arguments, check, placed
from skerry.network.network import Common, Network
from skerry.network.networks import Networks
from skerry.planner.features.srt import Srt
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry.service.inventory import Inventory
from skerry.service.queries import Queries, UserQuery
from skerry.sql.ast import CreateSrt
from skerry.sql.errors import QueryError
from skerry.storage.state import StorageError
from skerry_protocol.attributes import STATIC_FIRST, STATICS_MAXIMUM

NOW = 1e9


class Place:
    """An inventory whose motes 2 and 3 have reported: mote 2's room is 5, mote 3 stands on floor -1."""

    def __init__(self) -> None:
        common = Common()
        self.network = Networks([Network(lambda _: None, common)], common)
        self.queries, self.full = Queries(), False
        self.inventory = Inventory(threading.RLock(), self.network, self.queries, self._save)
        self.attributes = self.inventory.attributes
        self.report(2, (32, 5))
        self.report(3, (33, 65535))

    def _save(self) -> None:
        if self.full:
            raise StorageError("the disk is full")

    def report(self, node: int, *told: tuple[int, int]) -> None:
        statics = [{"attribute": number, "value": value} for number, value in told]
        self.network.catalog.update(status(node=node, statics=statics), NOW)

    def run(self, sql: str, user: str = "ada") -> str:
        done = self.attributes.run(sql, user)
        assert done is not None
        return done.text

    def plan(self, sql: str) -> QueryPlan:
        plan = plan_query(sql, statics=self.queries.statics.all())
        assert isinstance(plan, QueryPlan)
        return plan


@pytest.fixture
def place() -> Place:
    return Place()


def test_an_attribute_is_read_like_any_other_and_keeps_its_name_and_unit(place: Place) -> None:
    assert (
        place.run("CREATE ATTRIBUTE rack; -- of the shelves") == "attribute rack is there: set_rack sets it"
    )
    place.run('create attribute "Height" m')
    plan = place.plan(
        "SELECT rack, height * 2 AS twice FROM sensors WHERE Height > 120 cm AND rack IN (1, 4) SAMPLE PERIOD 5 s"
    )
    assert [(output.name, output.unit) for output in plan.outputs] == [("rack", ""), ("twice", "m")]
    assert plan.attributes == {STATIC_FIRST, STATIC_FIRST + 1}
    assert plan.mote_where is not None
    assert render(plan.mote_where) == "(Height > 1) AND ((rack = 1) OR (rack = 4))"
    assert render(from_list(plan.mote_where.to_list())) == render(plan.mote_where)
    assert plan.statics == statics_of([(48, "rack", "", "ada", c, False) for c in (plan.statics["rack"].created,)]) | {
        "height": plan.statics["height"]
    }  # fmt: skip
    groups = place.plan("SELECT rack, AVG(temp) FROM sensors GROUP BY rack SAMPLE PERIOD 5 s").groups
    assert [render(group) for group in groups] == ["rack"]
    assert "rack" not in [output.name for output in place.plan("SELECT * FROM sensors").outputs]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("CREATE ATTRIBUTE", "the statement ends too early at column 17: write for example CREATE ATTRIBUTE rack"),
        ("CREATE ATTRIBUTE rack m 4", "unexpected '4' at column 25"),
        ("CREATE ATTRIBUTE 4rack", "'4rack' is no name of an attribute at column 18: it is a word of at most 32"),
        ("CREATE ATTRIBUTE temp", "'temp' is the language's already at column 18: take another name"),
        ("CREATE ATTRIBUTE Temperature", "'Temperature' is the language's already"),
        ("CREATE ATTRIBUTE static_3", "'static_3' is the language's already"),
        ('CREATE ATTRIBUTE "select"', "'select' is the language's already"),
        ("CREATE ATTRIBUTE position", "'position' is the language's already"),
        ("CREATE ATTRIBUTE taken", "attribute 'taken' is there already at column 18: drop it first, with DROP ATTRIBUTE taken"),
        ("CREATE ATTRIBUTE rack km", "'km' is no unit of an attribute at column 23: values are whole numbers of degC"),
        ("DROP ATTRIBUTE takn", "there is no attribute 'takn' to drop at column 16: did you mean 'taken'? taken are there"),
        ("DROP ATTRIBUTE room", "there is no attribute 'room' to drop at column 16: every mote has it"),
        ("DROP ATTRIBUTE hers", "attribute 'hers' is another user's at column 16: who made it drops it"),
        ("SHOW ATTRIBUTES taken", "unexpected 'taken' at column 17: write for example SHOW ATTRIBUTES"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_named(place: Place, sql: str, message: str) -> None:
    place.run("CREATE ATTRIBUTE taken")
    if "hers" in sql:
        place.run("CREATE ATTRIBUTE hers", "grace")
    with pytest.raises(QueryError) as error:
        place.run(sql)
    assert error.value.summary.startswith(message)


def test_no_more_than_motes_have_places_for(place: Place) -> None:
    for number in range(STATICS_MAXIMUM):
        place.run(f"CREATE ATTRIBUTE a{number}")
    with pytest.raises(QueryError, match=r"there is no place for 'one_more': motes have 10"):
        place.run("CREATE ATTRIBUTE one_more")
    place.run("DROP ATTRIBUTE a3")
    place.run("CREATE ATTRIBUTE one_more")
    assert place.queries.statics.all()["one_more"].number == STATIC_FIRST + 3


def test_what_a_query_reads_is_not_dropped(place: Place) -> None:
    place.run("CREATE ATTRIBUTE rack")
    plan = place.plan("SELECT nodeid FROM sensors WHERE rack = 4")
    place.queries.add(UserQuery("7", "grace", plan.text, plan, NOW, 0))
    with pytest.raises(QueryError, match="queries 7 read 'rack'"):
        place.run("DROP ATTRIBUTE rack")
    place.queries.remove("7")
    assert place.run("DROP ATTRIBUTE rack") == "attribute rack is dropped"
    with pytest.raises(QueryError, match="unknown attribute 'rack'"):
        place.plan("SELECT rack FROM sensors")


def test_a_semantic_routing_tree_may_be_over_it(place: Place) -> None:
    place.run("CREATE ATTRIBUTE rack")
    place.report(2, (48, 4))
    place.report(3, (48, 65533))
    statement = plan_query("CREATE SRT by_rack ON sensors (rack)")
    assert isinstance(statement, CreateSrt)
    srt, plan = place.queries.plan_srt(statement, [], place.network.catalog.values)
    assert Srt.from_list(srt.to_list()) == srt
    assert srt.to_dict()["attributes"] == [{"name": "rack", "low": -3, "step": 1}]
    assert plan.attributes == {STATIC_FIRST}
    place.queries.add(UserQuery("8", "ada", plan.text, plan, NOW, 0, srt=srt))
    with pytest.raises(QueryError, match="queries 8 read 'rack'"):
        place.run("DROP ATTRIBUTE rack")


def test_there_is_one_room_not_two(place: Place) -> None:
    """A tag that is called like an attribute is its value: on the mote, in the catalog and among the tags."""
    inventory = place.inventory
    assert inventory.tag(2, {}, "ada") == {"room": "5"}
    assert inventory.tag(2, {"room": "12", "owner": "ops"}, "ada") == {"owner": "ops", "room": "12"}
    assert inventory.tag(3, {"rack": "4"}, "ada") == {"floor": "-1", "rack": "4"}, (
        "a note: there is no attribute"
    )
    text = place.run("CREATE ATTRIBUTE rack")
    assert text == "attribute rack is there: set_rack sets it; 1 tags of that name are its values now"
    assert place.attributes.value_rows() == [
        {"attribute": 32, "mote": 2, "value": 12}, {"attribute": 48, "mote": 3, "value": 4},
    ]  # fmt: skip
    found = inventory.select("SELECT nodeid, key, value FROM tags ORDER BY nodeid, key")[1]
    assert found == [[2, "owner", "ops"], [2, "room", "12"], [3, "floor", "-1"], [3, "rack", "4"]]
    assert inventory.tag(3, {"rack": None}, "ada") == {"floor": "-1"}
    for value, message in (("x", "rack=x: rack is an attribute"), ("32768", "rack = 32768 is out of range")):
        with pytest.raises(TagError, match=message):
            inventory.tag(3, {"rack": value}, "ada")
    inventory.tag(2, {"shelf": "top"}, "ada")
    with pytest.raises(QueryError, match="mote 2 has the tag shelf=top: an attribute is a whole number"):
        place.run("CREATE ATTRIBUTE shelf")
    place.full = True
    for sql in ("CREATE ATTRIBUTE slot", "DROP ATTRIBUTE rack"):
        with pytest.raises(StorageError):
            place.run(sql)
    assert [*place.queries.statics.all()] == ["rack"]
    with pytest.raises(StorageError):
        inventory.tag(2, {"room": "13", "owner": "me"}, "ada")
    assert inventory.tag(2, {}, "ada") == {"owner": "ops", "room": "12", "shelf": "top"}


def test_the_catalog_says_what_is_constant_and_who_has_it(place: Place) -> None:
    place.run("CREATE ATTRIBUTE height m")
    place.report(3, (48, 65533))
    sql = "SELECT name, unit, minimum, motes FROM attributes WHERE constant AND name NOT LIKE '_pos' ORDER BY name"
    assert place.inventory.select(sql)[1] == [
        ["board", "", 0, 2], ["floor", "", -100, 2], ["group", "", 0, 2], ["height", "m", -32767, 1], ["nodeid", "", 0, 2],
        ["room", "", 0, 2],
    ]  # fmt: skip
    done = place.attributes.run("SHOW ATTRIBUTES", "ada")
    assert done is not None
    assert done.rows[-1] == ("height", "m", "set_height", 1, 48, "ada")
    assert place.inventory.tag(3, {}, "ada") == {"height": "-3"}
    assert place.network.catalog.values("floor") == []
    assert place.network.catalog.values("static_0") == [-3]


def test_a_command_sets_it(place: Place) -> None:
    place.run("CREATE ATTRIBUTE rack")
    place.run("CREATE ATTRIBUTE height")
    own = place.queries.statics.all()
    assert arguments(check("set_height", -3, 7, own), -3) == bytes([8]) + (65536 + 32765).to_bytes(
        4, "little"
    )
    assert check("SET-RACK", 4, None, own).name == "set_rack"
    with pytest.raises(QueryError, match=r"set_rack\(32768\) is out of range"):
        check("set_rack", 32768, 7, own)
    with pytest.raises(QueryError, match="unknown command 'set_rak'"):
        check("set_rak", 4, 7, own)
    with pytest.raises(QueryError, match="unknown command 'set_static'"):
        check("set_static", 4, 7, own)


def test_who_joins_late_is_told_and_who_has_it_is_not() -> None:
    values, place = StaticValues(), Place()
    values.set(48, None, 4)
    values.set(48, 3, None)
    values.set(32, 3, 7)
    values.set(34, 2, None)
    absent = {32: 0, 34: 0}

    def lacking(now: float) -> list[tuple[int, int, int | None]]:
        return values.lacking(place.network.catalog.all(), now, 1.0, absent)

    assert lacking(NOW + 100) == [(48, 2, 4), (32, 3, 7)]
    values.sent(48, 2, NOW + 100)
    values.sent(32, 3, NOW + 100)
    assert lacking(NOW + 200) == [], "they have reported nothing since"
    place.network.catalog.update(
        status(node=2, uptime=900, statics=[{"attribute": 48, "value": 4}]), NOW + 150
    )
    place.network.catalog.update(
        status(node=3, uptime=900, statics=[{"attribute": 48, "value": 9}]), NOW + 150
    )
    assert lacking(NOW + 155) == [(48, 3, None)], "its room may be under way"
    assert lacking(NOW + 200) == [(48, 3, None), (32, 3, 7)]
    again = StaticValues()
    again.restore(values.rows())
    assert again.rows() == values.rows()


def test_a_place_that_another_attribute_had_begins_empty() -> None:
    made = StaticAttributes()
    for number in range(STATICS_MAXIMUM):
        made.make(f"a{number}", "", "ada", float(number))
    made.drop("A3")
    again = StaticAttributes()
    again.restore(made.rows())
    assert [*again.all()] == [*made.all()]
    assert again.make("b", "m", "ada", 20.0).again
    assert not made.all()["a0"].again


@pytest.mark.parametrize(
    ("argument", "mote", "position", "message"),
    [
        (
            None,
            7,
            None,
            "set_position needs a place, two numbers of m: write skerry run set_position 3.5,4 --mote 7",
        ),
        (4, 7, None, "set_position needs a place"),
        (None, None, (1.0, 2.0), "set_position needs a mote: all of them are not at one place"),
        (None, 65535, (1.0, 2.0), "65535 is no mote"),
        (None, 7, (1.0, 7.6e6), "y = 7.6e+06 is out of range: it is m within 7,500,000"),
        (None, 7, (float("nan"), 0.0), "x = nan is out of range"),
    ],
)
def test_a_place_that_cannot_be_is_refused(
    argument: int | None, mote: int | None, position: tuple[float, float] | None, message: str
) -> None:
    with pytest.raises(QueryError) as error:
        placed(argument, mote, position)
    assert error.value.summary.startswith(message)
    assert placed(None, 7, (-3.505, 4.0)) == (7, -350, 400)
