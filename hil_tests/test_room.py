"""Motes with as many queries as they hold, one of which makes room for another: the gateway's own side of a network, the real image."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil_tests.desk import Desk
from skerry_protocol.limits import QUERIES_MAXIMUM
from skerry_testbed.pytest import MakeNetwork, disc, line_of


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
def test_who_takes_the_place_of_another_is_answered_by_all_motes(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Eight queries, of which one is stopped and asked anew again and again, before the stop has come to motes behind others: all
    motes answer all of them in the end."""
    net = network(line_of(5, spacing=10), radio=disc(22), seed=seed)
    net.advance("60s")
    desk = Desk(net, tmp_path, monkeypatch)
    text = "SELECT COUNT(*), MAX(temp) FROM sensors SAMPLE PERIOD {} s"
    others = [desk.ask(text.format(seconds)) for seconds in range(3, QUERIES_MAXIMUM + 2)]
    mine = desk.ask(text.format(2))
    desk.advance(40)
    for threshold in range(6):
        desk.stop(mine)
        mine = desk.ask(
            f"SELECT AVG(light), COUNT(*) FROM sensors WHERE light > {threshold} SAMPLE PERIOD 2 s"
        )
    desk.advance(75)
    answered = {user: len(desk.rows[user]) for user in (mine, *others)}
    desk.advance(20)
    for user in (mine, *others):
        late = desk.rows[user][answered[user] :]
        assert late, f"{user} has nothing"
        assert {row["COUNT(*)"] for row in late} == {5}
        assert desk.networks.refused(user) == []
