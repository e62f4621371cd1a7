"""Motes that nobody can hear are told of when a run begins."""

from pathlib import Path

import pytest

from skerry_testbed.hearing import unheard
from skerry_testbed.network import load
from skerry_testbed.runner import Testbed

pytestmark = pytest.mark.usefixtures("skerry_built")


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ("[[1, 0, 0.9], [0, 1, 0.9], [0, 2, 1.0]]", ["mote 2: nobody can hear it: radio.links has none from it"]),
        ("[[1, 0, 0.9], [2, 1, 0.02]]", []),
        ("[[1, 0, 0.9], [2, 1, 0.001]]", ["mote 2: nobody can hear it: radio.links has none from it"]),
        ("[[0, 1, 0.9], [1, 2, 0.9], [2, 1, 1.0]]", ["motes 1, 2: no way leads from there to the root, whoever passes it on"]),
    ],
)  # fmt: skip
def test_whom_nobody_hears_is_told_of_a_matrix(tmp_path: Path, links: str, expected: list[str]) -> None:
    text = f"[radio]\nmodel = 'matrix'\nlinks = {links}\n"
    for node in range(3):
        text += f"[[mote]]\nid = {node}\nx = {node}\ny = 0\nroot = {str(node == 0).lower()}\n"
    (tmp_path / "network.toml").write_text(text)
    bed = Testbed(load(tmp_path / "network.toml"))
    assert unheard(bed.network, bed.links) == expected


def test_who_moves_may_come_near(tmp_path: Path) -> None:
    text = "[radio]\nmodel = 'disc'\nrange_m = 12\n[[mote]]\nid = 0\nx = 0\ny = 0\nroot = true\n[[mote]]\nid = 1\nx = 900\ny = 0\n"
    for more, count in (
        ("", 1),
        ("path = [['10 s', 5, 5]]", 0),
        ("[[fault]]\nat = '3 s'\nkind = 'move'\nmote = 1\nx = 5\ny = 5", 0),
    ):
        (tmp_path / "network.toml").write_text(text + more)
        bed = Testbed(load(tmp_path / "network.toml"))
        assert len(unheard(bed.network, bed.links)) == count
