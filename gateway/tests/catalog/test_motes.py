"""The catalog says what motes say of themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skerry.catalog.catalog import Catalog
from skerry.catalog.invariants import invariant_text
from skerry.network.network import Common, Network
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry.service.alarms import Alarms
from skerry.service.explain import explain, explain_text
from skerry.service.watch import Watch
from skerry.sharing.demand import Demand
from skerry_protocol.codec import decode, encode
from skerry_protocol.codes import Invariant, PacketType


def status(**fields: Any) -> Any:
    """A STATUS body as it comes off the line."""
    everything = {
        "node": 7, "boots": 2, "reset_cause": 1, "invariant": 0, "board": 1, "attributes": 0b11_1111_1111_1111, "parent": 3,
        "level": 2, "link": 255, "neighbours": 5, "query_version": 4, "x": 150, "y": -25, "voltage": 2950,
        "free_ram": 900, "queue_length": 1, "seconds": 500, "radio_on": 4000, "uptime": 400, "rows": 10,
        "dropped": 0, "sent": 12, "repeated": 2, "malformed": 0, "loops": 0, "factory": 9,
    }  # fmt: skip
    return decode(encode(PacketType.STATUS, **(everything | fields))).body


def test_a_mote_is_told_in_si() -> None:
    catalog = Catalog()
    catalog.update(status(), received=1e9)
    (mote,) = catalog.motes()
    assert (mote["nodeid"], mote["board"], mote["parent"], mote["level"]) == (7, "iris", 3, 2)
    assert (mote["xpos"], mote["ypos"], mote["voltage"], mote["link"]) == (1.5, -0.25, 2.95, 1.0)
    assert mote["radio_duty_cycle"] == pytest.approx(0.01)
    assert mote["received"] == 1e9


def test_a_mote_that_has_reset_itself_is_told_for_a_day_or_until_its_next_start() -> None:
    catalog, alarms = Catalog(), Alarms()
    watch = Watch(alarms)

    def told() -> list[str]:
        watch.motes(catalog, roots=[0])
        return [alarm["text"] for alarm in alarms.active() if alarm["name"] == "invariants"]

    catalog.update(status(), 0)
    assert (catalog.motes()[0]["invariant"], told()) == (None, [])
    catalog.update(status(boots=3, uptime=5, invariant=Invariant.TIMERS), 1)
    catalog.update(status(node=8, uptime=5, invariant=77), 1)
    assert [mote["invariant"] for mote in catalog.motes()] == ["TIMERS", "invariant 77"]
    assert told() == [
        "mote 7: its list of timers was broken (TIMERS); mote 8: invariant 77, which this gateway does not know: "
        "a fault of the firmware, which started anew and lost the rows that waited; please report it"
    ]
    catalog.update(status(node=8, boots=3, uptime=5), 2)
    assert len(told()) == 1
    assert "mote 8" not in told()[0]
    catalog.update(status(boots=3, uptime=86_400, invariant=Invariant.TIMERS), 3)
    assert told() == []


@pytest.mark.parametrize("invariant", Invariant)
def test_each_invariant_has_words(invariant: Invariant) -> None:
    assert invariant_text(invariant.name).endswith(f"({invariant.name})")


def test_no_parent_no_level_no_voltage() -> None:
    catalog = Catalog()
    mote = catalog.update(status(parent=0xFFFF, level=0xFF, voltage=0, uptime=0), 0)
    assert (mote.parent, mote.level, mote.voltage, mote.radio_duty_cycle) == (None, None, None, None)


def test_a_root_may_stand_where_motes_say_that_have_not_been_told() -> None:
    catalog = Catalog()
    catalog.update(status(node=0, level=0, x=0, y=0), 1.0)
    assert catalog.places() == {}
    catalog.update(status(node=7), 1.0)
    assert catalog.places() == {0: (0, 0), 7: (15, -2)}
    # One of the two has not been told: nobody knows which.
    catalog.update(status(node=8, x=0, y=0), 1.0)
    assert catalog.places() == {7: (15, -2)}
    catalog.update(status(node=8, x=100, y=0), 2.0)
    catalog.update(status(node=0, level=0, x=50, y=0), 2.0)
    assert catalog.places() == {0: (5, 0), 7: (15, -2), 8: (10, 0)}


def test_reports_that_overtake_each_other() -> None:
    catalog = Catalog()
    catalog.update(status(uptime=400, rows=10), 1)
    catalog.update(status(uptime=390, rows=9), 2)
    assert catalog.motes()[0]["rows"] == 10
    catalog.update(status(boots=3, uptime=5, rows=0), 3)
    assert catalog.motes()[0]["rows"] == 0


def test_attributes_name_the_motes_that_have_them() -> None:
    catalog = Catalog()
    catalog.update(status(node=1), 0)
    catalog.update(status(node=2, attributes=0b1111), 0)
    light = next(entry for entry in catalog.attributes() if entry["name"] == "light")
    assert (light["motes"], light["unit"], light["energy"]) == ([1], "lx", 290e-6)
    assert catalog.lacking("light") == [2]
    assert catalog.lacking("level") == []


def test_catalog_survives_json() -> None:
    catalog = Catalog()
    catalog.update(status(), 5)
    copy = Catalog.from_rows(catalog.mote_rows(), catalog.events.rows())
    assert copy.motes() == catalog.motes()
    assert copy.mote(7) == catalog.mote(7)
    assert copy.mote(8) is None


def test_explain_says_what_runs_where_and_what_it_costs() -> None:
    catalog, demand = Catalog(), Demand()
    catalog.update(status(node=2, attributes=0b1111), 0)
    text = (
        "SELECT nodeid, temp * 2 + humidity / 3 AS x FROM sensors "
        "WHERE temp > 25.5 AND xpos * 30 > 5 SAMPLE PERIOD 10 s"
    )
    plan = plan_query(text)
    assert isinstance(plan, QueryPlan)
    explained = explain(plan, catalog, demand)
    json.dumps(explained)
    assert explained["motes"]["where"] == "temp > 25.5"
    assert [a["name"] for a in explained["motes"]["attributes"]] == ["temp", "humidity", "xpos"]
    # Readings of -40..125 degrees are above 25.5 in 99.5 of 165 cases: humidity is read in those only.
    assert explained["motes"]["energy_per_epoch"] == pytest.approx(76.5e-6 + 26.1e-6 * 99.5 / 165)
    staged = [plan["energy_per_epoch"] for plan in explained["motes"]["sampling"] if plan["staged"]]
    at_once = [plan["energy_per_epoch"] for plan in explained["motes"]["sampling"] if not plan["staged"]]
    assert at_once == [pytest.approx(102.6e-6)]
    assert min(staged) < at_once[0]
    assert explained["gateway"]["columns"] == ["x = (temp * 2) + (humidity / 3)"]
    assert (explained["stream"]["shares"], explained["stream"]["unchanged"]) == (None, False)
    assert explained["lacking"]["temp"] == [2]
    demand.add_user("a", plan, 0)
    stream = explain(plan, catalog, demand)["stream"]
    assert (stream["shares"], stream["unchanged"]) == (1, True)
    lines = explain_text(explained)
    assert "every 10 s acquire temp (76.5 µJ), humidity (26.1 µJ), xpos (0 µJ): 92.2 µJ per epoch" in lines
    assert "102.6 µJ  all at once" in lines
    assert "program 36 of 192 bytes, 3 of 12 columns" in lines
    assert "keeps rows where (xpos * 30) > 5 (xpos * 30 may need more than a mote's 32 bits)" in lines


def test_flash_is_told_by_mote_as_it_was_last_heard() -> None:
    common = Common()
    network = Network([].append, common)
    last = {
        "pages": 144,
        "capacity": 280_000,
        "used": 70_000,
        "evicted": 9,
        "erased_most": 3,
        "erased_sum": 360,
        "indexes": [
            {"index": 300, "tuples": 50, "own": 1, "revision": 9},
            {"index": 5, "tuples": 1, "own": 0, "revision": 2},
        ],
    }
    for node, changed in ((9, {}), (7, {"used": 10}), (7, {})):
        network.hear([decode(encode(PacketType.FLASH, node=node, **(last | changed)))])
    told = common.catalog.flash.described()
    assert [row["nodeid"] for row in told] == [7, 9]
    for row in told:
        assert (row["used"], row["fill"], row["evicted"]) == (70_000, 0.25, 9)
        assert (row["erased_most"], row["erased_mean"], row["tuples"]) == (3, 2.5, 51)
    assert common.catalog.flash.tuples(300) == {7: 50, 9: 50}
