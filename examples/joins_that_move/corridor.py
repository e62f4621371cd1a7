"""Twelve motes: a corridor from the root to two rooms, and what is asked of the rooms."""

from __future__ import annotations

from typing import Literal

from skerry_testbed.network import Environment, Field, Mote, Network, Query, Radio, check

#: By mote: where it stands, in m, and its room; 0: the corridor.
MOTES: dict[int, tuple[float, float, int]] = {
    0: (0, 0, 0), 1: (10, 0, 0), 2: (20, 0, 0), 3: (30, 0, 0), 4: (40, 0, 0), 5: (50, 0, 0),
    6: (60, 0, 7), 7: (58, 8, 7), 8: (66, 6, 7),
    9: (40, 10, 4), 10: (46, 16, 4), 11: (36, 18, 4),
}  # fmt: skip
#: Two rooms of three motes each, of which any two are a pair.
PAIRS = 6
PERIOD_S = 10
ASKED_S = 60.0


def join(cost: Literal["bytes", "energy"]) -> str:
    """Which two motes of a room differ by more than 7 °C, which they seldom do: nothing is said of how seldom, nor where to join."""
    return (
        "SELECT s.nodeid AS s, t.nodeid AS t, s.temp - t.temp AS difference FROM sensors AS s, sensors AS t WINDOW 3 ROWS "
        "WHERE s.room = t.room AND s.nodeid < t.nodeid AND s.temp - t.temp > 7 "
        f"SAMPLE PERIOD {PERIOD_S} s COST {cost.upper()}"
    )


def network(seed: int, cost: Literal["bytes", "energy"]) -> Network:
    """What each mote measures is drawn by the seed."""
    motes = [Mote(id=node, x=x, y=y, room=room, root=node == 0) for node, (x, y, room) in MOTES.items()]
    temp = Field(base=20.0, amplitude=3.0, period="10 min", noise=2.0)
    return check(
        Network(
            name="joins that move", seed=seed, mote=motes, radio=Radio(model="disc", range_m=12),
            environment=Environment(fields={"temp": temp}), query=[Query(sql=join(cost), at=ASKED_S, user="ada")],
        )
    )  # fmt: skip
