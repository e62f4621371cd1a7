"""What a description says becomes motes, links and faults."""

from pathlib import Path

import pytest

from skerry_testbed.network import NetworkError, check, load

NETWORKS = Path(__file__).resolve().parents[2] / "networks"


def described(folder: Path, text: str) -> Path:
    path = folder / "network.toml"
    path.write_text(text)
    return path


def test_positions_come_from_a_file_with_or_without_heading(tmp_path: Path) -> None:
    (tmp_path / "with.txt").write_text("moteid x_location y_location\n1 21.5 23\n2 24.5 20\n3 1 1\n")
    (tmp_path / "without.txt").write_text("1 21.5 23\n2 24.5 20\n3 1 1\n")
    for name in ("with.txt", "without.txt"):
        network = load(described(tmp_path, f"positions = '{name}'\nmotes = [1, 2]\nroot = 2"))
        assert [(mote.id, mote.x, mote.y, mote.root) for mote in network.mote] == [
            (1, 21.5, 23, False),
            (2, 24.5, 20, True),
        ]


def test_files_may_begin_and_end_their_lines_as_on_windows(tmp_path: Path) -> None:
    (tmp_path / "places.txt").write_bytes("\ufeffid x y\r\n1 21.5 23\r\n".encode())
    path = tmp_path / "network.toml"
    path.write_bytes("\ufeffpositions = 'places.txt'\r\nroot = 1\r\n".encode())
    assert [(mote.id, mote.x, mote.y) for mote in load(path).mote] == [(1, 21.5, 23)]


def test_a_bad_line_of_positions_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("1 2 3\n2 east 3\n")
    with pytest.raises(NetworkError, match=r"bad\.txt:2: '2 east 3': expected 'id x y'"):
        load(described(tmp_path, "positions = 'bad.txt'\nroot = 1"))


@pytest.mark.parametrize("first", ["-1 2 3", "1,2,3", "1.5 2 3", "1"])
def test_a_first_line_with_numbers_is_no_heading(tmp_path: Path, first: str) -> None:
    (tmp_path / "bad.txt").write_text(f"{first}\n2 4 3\n")
    with pytest.raises(NetworkError, match=rf"bad\.txt:1: '{first}': expected 'id x y'|mote\.id = -1"):
        load(described(tmp_path, "positions = 'bad.txt'\nroot = 2"))
    (tmp_path / "m.txt").write_text("1 0 O.9\n0 1 0.9\n")
    radio = "[radio]\nmodel = 'matrix'\nfile = 'm.txt'\n"
    text = radio + "[[mote]]\nid = 0\nx = 0\ny = 0\nroot = true\n[[mote]]\nid = 1\nx = 1\ny = 1"
    with pytest.raises(NetworkError, match=r"m\.txt:1: '1 0 O\.9': expected 'sender receiver probability'"):
        load(described(tmp_path, text))


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes("1 2 3 café\n".encode("latin-1"))
    with pytest.raises(NetworkError, match=r"positions = 'latin\.txt': no UTF-8 text: .* at byte 9"):
        load(described(tmp_path, "positions = 'latin.txt'\nroot = 1"))
    (tmp_path / "marked.txt").write_text("\ufeff1 2 3\n2 3 4\n", encoding="utf-8")
    assert len(load(described(tmp_path, "positions = 'marked.txt'\nroot = 1")).mote) == 2


def test_motes_that_the_positions_lack_are_named(tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text("1 2 3\n")
    with pytest.raises(NetworkError, match=r"motes = \[4\]"):
        load(described(tmp_path, "positions = 'some.txt'\nmotes = [1, 4]\nroot = 1"))


def test_a_matrix_is_read_between_the_motes_there_are(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("0 1 0.9\n1 0 0.8\n0 31\n5 1 0.7\n")
    text = "[radio]\nmodel = 'matrix'\nfile = 'p.txt'\n[[mote]]\nid=0\nx=0\ny=0\nroot=true\n[[mote]]\nid=1\nx=1\ny=0\n"
    assert load(described(tmp_path, text)).radio.links == [(0, 1, 0.9), (1, 0, 0.8)]


def test_checking_twice_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("0 1 0.9\n")
    text = "[radio]\nmodel = 'matrix'\nfile = 'p.txt'\n[[mote]]\nid=0\nx=0\ny=0\nroot=true\n[[mote]]\nid=1\nx=1\ny=0\n"
    network = load(described(tmp_path, text))
    again = check(network)
    assert len(again.radio.links) == 1
    assert len(again.mote) == 2


def test_the_demo_is_twenty_motes_on_a_floor_of_40_by_30_m() -> None:
    network = load(NETWORKS / "demo.toml")
    assert len(network.mote) == 20
    assert all(0 <= mote.x <= 40 and 0 <= mote.y <= 30 for mote in network.mote)


def test_the_redwood_is_a_network() -> None:
    trace = NETWORKS.parents[2] / "shared" / "data" / "redwood-log.parquet"
    if not trace.exists():
        pytest.skip(f"{trace} is not here")
    network = load(NETWORKS / "redwood.toml")
    assert network.environment.trace is not None
    assert Path(network.environment.trace).resolve() == trace.resolve()
