"""What a test may ask of the fixture ``network``."""

from pathlib import Path

import pytest

from skerry_testbed.network import load
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc
from testbed.tests.descriptions import ROOT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "pair.toml"
    path.write_text(f"seed = 5\n{ROOT}[[mote]]\nid = 1\nx = 10\ny = 0\n")
    return path


def test_a_description_is_run_with_its_own_seed_or_another(network: MakeNetwork, path: Path) -> None:
    def sent(net: NetworkHandle) -> list[int]:
        net.advance("10 s")
        return [frame.start_ns for frame in net.frames]

    own = network(path)
    assert own.report()["seed"] == 5
    frames = sent(own)
    assert frames == sent(network(str(path))) == sent(network(load(path), seed=5))
    other = network(path, seed=6)
    assert other.report()["seed"] == 6
    assert sent(other) != frames


def test_what_a_description_says_itself_is_not_passed_over(network: MakeNetwork, path: Path) -> None:
    with pytest.raises(
        TypeError, match=r"network\(…, radio=…\): a description says that; beside it goes seed="
    ):
        network(path, radio=disc(5))
