"""Motes that store tuples of an index die, come back, join late and move: others store for them, or they get zones of their own. What is
asked is DuckDB's over what was sampled, but for what is named missing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hil_tests.index_story import BOARDS, FIELDS, LATE, Story
from hil_tests.office import Office
from skerry_testbed.pytest import MakeNetwork, disc, grid


@pytest.mark.parametrize("reception", [1.0, 0.9])
def test_owners_die_come_back_join_and_move(
    network: MakeNetwork,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    drawn_seed: int,
    reception: float,
) -> None:
    rng = random.Random(drawn_seed)
    motes = grid(4, 2, spacing=5, boards=BOARDS)
    net = network(motes, radio=disc(20, reception=reception), environment=FIELDS, seed=drawn_seed)
    story = Story(net, Office(net, tmp_path, monkeypatch), loses=reception < 1)
    places = dict(story.index.storing)
    assert sorted(places) == [1, 3, 4]
    before = story.insert()
    dead, moves = rng.sample(sorted(places), 2)
    assert story.ask(before)["complete"]

    net.motes[dead].kill()
    told = story.ask(before, lacking={dead})
    assert told["missing"] == [dead]
    story.wait_for({dead: None})
    without = story.insert()
    assert dead not in {row[-1] for row in without}
    # What it held is named all the same, and nothing else is lacking.
    told = story.ask(before + without, lacking={dead})
    assert told["missing"] == [dead]

    net.motes[dead].reboot()
    story.wait_for({dead: places[dead]})
    assert story.ask(before + without)["complete"]

    net.motes[LATE].reboot()
    story.wait_for({LATE: (150, 50)})
    place = rng.randrange(10, 140), rng.randrange(10, 40)
    story.office.gateway.queries.run("set_position", None, moves, (place[0] / 10, place[1] / 10))
    story.wait_for({moves: place})
    after = story.insert()
    told = story.ask(before + without + after)
    assert told["complete"]
    assert {dead, moves, LATE} <= set(told["asked"])
    print(f"mote {dead} died, mote {moves} moved to {place}; {len(after)} tuples since, by owner:")
    print({node: sum(row[-1] == node for row in after) for node in story.index.storing})
    story.office.gateway.close()
