"""Tuples of an index follow their zones: what a mote stores of a zone that another one owns now is there in the end, and nowhere else. So
whoever has lost a zone may die, and what was in it is found all the same."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from hil_tests.index_story import BOARDS, FIELDS, LATE, Row, Story
from hil_tests.office import Office
from skerry_testbed.pytest import MakeNetwork, disc, grid

#: Virtual s in which tuples have followed at last, and between two questions meanwhile.
FOLLOWED_S, ASKED_S = 2400, 150
#: Virtual s in which the gateway hears that, and motes of it.
SETTLED_S = 900
#: Virtual s in which ways to the mote that gathers have been opened.
OPENED_S = 400


def follow(story: Story, rows: list[Row], lacking: set[int] = frozenset()) -> None:  # type: ignore[assignment]
    """Until each mote tells of what it owns, and no mote of more; where frames are lost, of what has been stored. Whatever is asked
    meanwhile has each tuple once. ``lacking``: motes that are gone."""
    owned = Counter(row[-1] for row in rows if row[-1] not in lacking)
    begun, told, done = story.net.now, dict[int, int](), False
    while not done and story.net.now < begun + FOLLOWED_S:
        told = story.ask(rows, lacking=lacking)["told"]
        print(f"{story.net.now - begun:.0f} s: {told}")
        done = told == owned
        if story.loses:
            done = sum(told.values()) == story.came and all(told[node] <= owned[node] for node in told)
        story.office.advance(ASKED_S)
    assert done, (told, owned)


@pytest.mark.parametrize("reception", [1.0, 0.9])
def test_tuples_follow_their_zones(
    network: MakeNetwork,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    drawn_seed: int,
    reception: float,
) -> None:
    motes = grid(4, 2, spacing=5, boards=BOARDS)
    net = network(motes, radio=disc(20, reception=reception), environment=FIELDS, seed=drawn_seed)
    story = Story(net, Office(net, tmp_path, monkeypatch), loses=reception < 1)
    places = dict(story.index.storing)
    first = story.insert()
    print("one joins")
    net.motes[LATE].reboot()
    story.wait_for({LATE: (150, 50)})
    first = story.owned(first)
    follow(story, first)
    # Nobody has anything but its own: all is as if it had been so from the beginning.
    story.office.advance(SETTLED_S, lambda: not story.index.parts[0].since)
    assert sorted(story.index.parts[0].owners) == sorted([*places, LATE])
    assert story.ask(first)["complete"]

    # Who had most of what is that one's now dies: nothing of it dies with him.
    dead = 3
    net.motes[dead].kill()
    there = [row for row in first if row[-1] != dead]
    assert {row[-1] for row in there} >= {LATE}
    assert story.ask(first, lacking={dead})["missing"] == [dead]
    story.wait_for({dead: None})
    lent, tries = list[Row](), 0
    while dead not in {row[-1] for row in story.owned(lent, {dead: places[dead]})} and tries < 8:
        lent, tries = story.insert(), tries + 1
    assert dead not in {row[-1] for row in lent}

    print("one comes back")
    net.motes[dead].reboot()
    story.wait_for({dead: places[dead]})
    lent = story.owned(lent)
    assert dead in {row[-1] for row in lent}
    follow(story, lent)
    assert story.ask(first)["complete"]

    print("one moves")
    story.office.gateway.queries.run("set_position", None, LATE, (2.0, 2.0))
    story.wait_for({LATE: (20, 20)})
    lent, first = story.owned(lent), story.owned(first)
    follow(story, first)
    follow(story, lent)
    story.office.gateway.close()


@pytest.mark.parametrize("reboots", ["giver", "taker"])
def test_it_goes_on_where_a_mote_starts_again(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_seed: int, reboots: str
) -> None:
    rng = random.Random(f"{drawn_seed} {reboots}")
    net = network(
        grid(4, 2, spacing=5, boards=BOARDS), radio=disc(20), environment=FIELDS, seed=rng.randrange(2**31)
    )
    story = Story(net, Office(net, tmp_path, monkeypatch), loses=False)
    rows = story.insert()
    net.motes[LATE].reboot()
    story.wait_for({LATE: (150, 50)})
    rows = story.owned(rows)
    assert LATE in {row[-1] for row in rows}
    for _ in range(2):
        story.office.advance(rng.randrange(20, 180))
        net.motes[3 if reboots == "giver" else LATE].reboot()
    story.office.advance(120)
    follow(story, rows)
    story.office.gateway.close()


def test_what_is_gathered_counts_each_tuple_once(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_seed: int
) -> None:
    """Mote 1 asks each period, others answer with partial states, and one that joins takes over half of what they count."""
    net = network(grid(4, 2, spacing=5, boards=BOARDS), radio=disc(20), environment=FIELDS, seed=drawn_seed)
    story = Story(net, Office(net, tmp_path, monkeypatch), loses=False)
    rows = story.insert()
    first, last = (bound(row[1] for row in rows) for bound in (min, max))
    gathered = story.office.ask(
        f"SELECT COUNT(*), SUM(light) FROM climate WHERE epoch BETWEEN {first} AND {last} AT MOTE 1 SAMPLE PERIOD 60 s"
    )
    story.office.advance(OPENED_S)
    whole = len(rows), sum(row[2] for row in rows)

    def told() -> list[tuple[int, int]]:
        return [tuple(row.values())[-2:] for row in story.office.told(gathered)]  # type: ignore[misc]

    assert told()[-1] == whole
    before = len(told())
    net.motes[LATE].reboot()
    story.wait_for({LATE: (150, 50)})
    rows = story.owned(rows)
    follow(story, rows)
    story.office.advance(OPENED_S)
    since = told()[before:]
    print(f"{whole} of all, and since it joined: {since}")
    # Whoever has not answered in time is left out, and nobody counts twice.
    assert all(count <= whole[0] for count, _ in since)
    assert since[-1] == whole
    assert len([one for one in since if one == whole]) >= len(since) / 2
    story.office.gateway.close()
