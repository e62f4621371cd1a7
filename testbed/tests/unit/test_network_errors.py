"""Descriptions that cannot be: the error names the file, the key, the value and what is right."""

from pathlib import Path

import pytest

from skerry_testbed.network import NetworkError, load

TWO = """
[[mote]]
id = 0
x = 0
y = 0
root = true
[[mote]]
id = 1
x = 5
y = 0
"""

CASES = [
    ("sed = 1", ["sed: no such key", "did you mean 'seed'"]),
    ("seed = 'x'", ["seed = 'x'", "a whole number"]),
    ("seed = -1", ["seed = -1", "0..2^64-1"]),
    ("clock_ppm = 1000", ["clock_ppm = 1000", "0..500"]),
    ("boot_spread = 'soon'", ["boot_spread", "'soon'", "10 min"]),
    ("motes = [1]", ["motes = [1]", "positions"]),
    ("positions = 'none.txt'", ["positions = 'none.txt'", "No such file"]),
    ("root = 7", ["root = 7", "the id of a mote"]),
    ("board = 'cc2538'", ["board = 'cc2538'", "positions = a file beside it"]),
    ("firmware = 'none.elf'", ["firmware = 'none.elf'", "an ELF file"]),
    (TWO + "boot = 'x y'", ["mote 1: boot", "'x y'"]),
    (TWO + "rooot = true", ["mote[1].rooot: no such key", "did you mean 'root'"]),
    (TWO + "board = 'mica2'", ["mote 1: board = 'mica2'", "a known board: cc2538, iris"]),
    (TWO + "battery_mv = 300", ["mote 1: battery_mv = 300", "1800..5500"]),
    (TWO + "clock_ppm = -900", ["mote 1: clock_ppm = -900", "-500..500"]),
    (TWO + "root = true", ["root = [0, 1]", "exactly one mote"]),
    (TWO + "[[mote]]\nid = 1\nx = 1\ny = 1", ["mote.id = 1", "each id once"]),
    (TWO + "[[mote]]\nid = 70000\nx = 1\ny = 1", ["mote.id = 70000", "0..65533"]),
    (TWO + "[[mote]]\nid = 2\nx = nan\ny = 1", ["mote 2: x = nan"]),
    (TWO + "[[mote]]\nid = 2\ny = 1", ["mote[2].x is missing"]),
    (TWO + "[radio]\nmodel = 'disk'", ["radio.model = 'disk'", "disc or log-distance or matrix"]),
    (TWO + "[radio]\nrange = 15", ["radio.range: no such key", "range_m"]),
    (
        TWO + "[radio]\nmodel = 'disc'\nexponent = 3",
        ["radio.exponent", "log-distance", "'disc' takes range_m"],
    ),
    (TWO + "[radio]\nmodel = 'disc'\nrange_m = 0", ["radio.range_m = 0", "more than 0"]),
    (TWO + "[radio]\nmodel = 'disc'\nreception = 1.5", ["radio.reception = 1.5", "0..1"]),
    (TWO + "[radio]\nexponent = 0.1", ["radio.exponent = 0.1", "1..10"]),
    (TWO + "[radio]\nchannel = 5", ["radio.channel = 5", "11..26"]),
    (TWO + "[radio]\nnoise_dbm = 3", ["radio.noise_dbm = 3", "-120..-20"]),
    (TWO + "[radio]\nmodel = 'matrix'", ["radio.links = []", "links, or a file"]),
    (TWO + "[radio]\nmodel = 'matrix'\nlinks = [[0, 9, 0.5]]", ["radio.links = (0, 9)", "ids of motes"]),
    (TWO + "[radio]\nmodel = 'matrix'\nlinks = [[0, 0, 0.9]]", ["radio.links = (0, 0)", "two motes"]),
    (TWO + "[radio]\nmodel = 'matrix'\nlinks = [[0, 1, 5.0]]", ["radio.links = 5.0", "a probability 0..1"]),
    (
        TWO + "[radio]\nmodel = 'matrix'\nfile = 'm.txt'\nlinks = [[0, 1, 0.9]]",
        ["radio.links = [(0, 1, 0.9)]", "either it or radio.file"],
    ),
    (
        TWO + "[radio]\nmodel = 'matrix'\nlinks = [[0, 1, 0.9], [1, 0, 0.9], [0, 1, 0.1]]",
        ["radio.links = [(0, 1)]", "each link and direction once"],
    ),
    (TWO + "[environment]\nspeedup = 2", ["environment.speedup = 2", "environment.trace beside it"]),
    (
        TWO + "[environment]\nstep = '1 s'\nupdate = '2 s'",
        ["environment.update = '2 s'", "either it or environment.step"],
    ),
    (TWO + "[environment.fields.pressure]\nbase = 1", ["environment.fields.pressure", "temp, humidity"]),
    (
        TWO + "[environment.fields.light]\nbase = 1\n[environment.fields.temp]\nbse = 1",
        ["environment.fields.temp.bse: no such key", "did you mean 'base'"],
    ),
    (TWO + "[environment.fields.temp]\nbase = 'warm'", ["environment.fields.temp.base = 'warm'", "a number"]),
    (
        TWO + "[environment.fields.temp]\nbase = 1\nperiod = 1e-320",
        ["environment.fields.temp.period = 1e-320: expected at least 1 ms"],
    ),
    (TWO + "boot = 1e300", ["mote 1: boot", "1e+300", "0 to 10000000000 s"]),
    (TWO + f"[[fault]]\nat = {10**400}\nkind = 'kill'\nmote = 1", ["fault kill: at", "000", "300 years"]),
    (TWO + "[environment.fields]\ntemp = 21.5", ["environment.fields.temp = 21.5: expected a table"]),
    (
        TWO + "[environment.fields.temp]\ngradient = [1]",
        ["environment.fields.temp.gradient = [1]: expected a list of 2"],
    ),
    (TWO + "path = [['1 s', 1]]", ["mote[1].path[0] = ['1 s', 1]: expected a list of 3"]),
    (TWO + "[environment]\ntrace = 'none.parquet'", ["environment.trace = 'none.parquet'", "a Parquet file"]),
    (TWO + "[environment]\nstep = '1 s'", ["environment.step = '1 s'", "environment.trace"]),
    (TWO + "[[fault]]\nat = 3\nkind = 'explode'", ["fault[0].kind = 'explode'", "kill or reboot"]),
    (TWO + "[[fault]]\nat = 3\nkind = 'kill'", ["fault kill: mote is missing"]),
    (TWO + "[[fault]]\nat = 3\nkind = 'kill'\nmote = 5", ["fault kill: mote = 5", "the id of a mote"]),
    (TWO + "[[fault]]\nat = 'x'\nkind = 'kill'\nmote = 1", ["fault kill: at", "'x'"]),
    (TWO + "[[fault]]\nat = 3\nkind = 'kill'\nmote = 1\nppm = 3", ["fault[0].ppm", "takes mote"]),
    (TWO + "[[fault]]\nat = 3\nkind = 'link_down'\nmote = 1", ["fault link_down: to is missing"]),
    (
        TWO + "[[fault]]\nat = 3\nkind = 'partition'\nmotes = [0, 1]",
        ["fault partition: motes = [0, 1]", "some of the motes: who is outside hears none of them"],
    ),
    (
        TWO + "[[fault]]\nat = 3\nkind = 'link_down'\nmote = 1\nto = 1",
        ["fault link_down: to = 1", "another mote"],
    ),
    (TWO + "path = [['1 s', 1, 1], ['1 s', 2, 2]]", ["mote 1: path", "later than the one before"]),
    (TWO + "path = [[0, 20, 0], ['1 s', 2, 2]]", ["mote 1: path = [0, 20.0, 0.0]", "x = 5, y = 0 at 0 s"]),
    (TWO + "path = [['1 s', inf, 1]]", ["mote 1: path = inf", "metres within 1e7"]),
    (
        TWO + "path = [[1, 2, 3]]\n[radio]\nmodel = 'matrix'\nlinks = [[0, 1, 1.0]]",
        ["mote 1: path", "a radio model with distances"],
    ),
    (TWO + "temperature = [['0 s', 20.0]]", ["mote 1: temperature", "a table [crystal]"]),
    (TWO + "temperature = [['0 s', 300.0]]\n[crystal]", ["mote 1: temperature = 300.0", "-55..125"]),
    (TWO + "[crystal]\ntemperature = 'outside'", ["crystal.temperature = 'outside'", "environment"]),
    (TWO + "[crystal]\nturnovr = 25", ["crystal.turnovr: no such key", "did you mean 'turnover'"]),
    (TWO + "[crystal]\ntemperature = [[1, 'cold']]", ["crystal.temperature", "'cold'", "a number"]),
    (TWO + "[crystal]\ntemperature = 25", ["crystal.temperature = 25: expected environment or a list"]),
    (
        TWO + "[fault]\nat = 1\nkind = 'kill'\nmote = 1",
        ["[fault]: expected [[fault]], as there may be several"],
    ),
    (TWO + "[[radio.link_bursts.x]]\nmote = 1", ["[radio.link_bursts]: expected [[radio.link_bursts]]"]),
    (TWO.replace("[[mote", "[[motes"), ["motes[0] = {", "a whole number; a table for each is [[mote]]"]),
    (
        TWO + "[environment]\ntemp = 21",
        ["environment.temp: no such key; what temp is stands in [environment.fields]"],
    ),
    (TWO + "[crystal]\ntemperature = []", ["crystal.temperature = []", "[time, °C] pairs"]),
    (TWO + "[crystal]\nparabola = 0.034", ["crystal.parabola = 0.034", "ppm/°C², -1..0"]),
    (TWO + "[crystal]\nturnover = 500", ["crystal.turnover = 500", "-55..125"]),
    (TWO + "[radio]\nasymmetry_db = -1", ["radio.asymmetry_db = -1", "0..30"]),
    (TWO + "[radio]\nmodel = 'disc'\nasymmetry_db = 1", ["radio.asymmetry_db", "log-distance"]),
    (TWO + "[radio.bursts]\ngood = '1 s'", ["radio.bursts.bad is missing"]),
    (TWO + "[radio.bursts]\ngood = 1\nbad = 0", ["radio.bursts.bad = 0", "1 ms to a week"]),
    (TWO + "[radio.bursts]\ngood = 1\nbad = 1\nreception = 2", ["radio.bursts.reception = 2", "0..1"]),
    (
        TWO + "[[radio.link_bursts]]\nmote = 0\nto = 8\ngood = 1\nbad = 1",
        ["radio.link_bursts = 8", "ids of motes"],
    ),
    (
        TWO + 2 * "[[radio.link_bursts]]\nmote = 1\nto = 0\ngood = 1\nbad = 1\n",
        ["radio.link_bursts = [(1, 0)]", "each link and direction once"],
    ),
    (
        TWO + "[[radio.link_bursts]]\nmote = 1\nto = 1\ngood = 1\nbad = 1",
        ["radio.link_bursts: to = 1", "another mote"],
    ),
    (TWO + "[[interference]]\nx = 1\ny = 2", ["interference", "missing: power_dbm"]),
    (
        TWO + "[[interference]]\nlevel_dbm = -60\nx = 1",
        ["interference.level_dbm = -60", "either it or x"],
    ),
    (TWO + "[[interference]]\nlevel_dbm = -60\nchannel = 3", ["interference.channel = 3", "11..26"]),
    (TWO + "[[interference]]\nlevel_dbm = -60\nchannel = 0", ["interference.channel = 0", "11..26"]),
    (TWO + "[[interference]]\nlevel_dbm = 90", ["interference.level_dbm = 90", "-150..60"]),
    (TWO + "[[interference]]\nlevel_dbm = -60\nduty = 0", ["interference.duty = 0", "more than 0"]),
    (TWO + "[[interference]]\nlevel_dbm = -60\nburst = '1 us'", ["interference.burst", "'1 us'"]),
    (
        TWO + "[[interference]]\nlevel_dbm = -60\nbegin = '2 s'\nend = '1 s'",
        ["interference.end = '1 s'", "after begin = '2 s'"],
    ),
    (TWO + "[[fault]]\nat = 1\nkind = 'mass_reboot'\nshare = 2", ["fault mass_reboot: share = 2", "up to 1"]),
    (
        TWO + "[[fault]]\nat = 1\nkind = 'mass_reboot'\nwithin = 'x'",
        ["fault mass_reboot: within", "'x'"],
    ),
    (
        TWO + "path = [[9, 1, 1]]\n[[fault]]\nat = 1\nkind = 'move'\nmote = 1\nx = 1\ny = 1",
        ["fault move: mote = 1", "a mote that has no path"],
    ),
    ("[[mote", ["no TOML"]),
    ("", ["mote = []", "at least one"]),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[" ".join(expected) for _, expected in CASES])
def test_an_impossible_description_is_refused(tmp_path: Path, text: str, expected: list[str]) -> None:
    path = tmp_path / "network.toml"
    # Top-level keys come before the tables.
    path.write_text(
        text if text.startswith("\n") or "mote" in expected[0] or not text or text == "[[mote" else text + TWO
    )
    with pytest.raises(NetworkError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    for part in expected:
        assert part in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("start = nan", "start = nan: expected a finite number"),
        ("nodes = { 01 = 5 }", "nodes = '01': expected ids"),
    ],
)
def test_a_key_that_no_recording_has_use_for_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "t.parquet").touch()
    path = tmp_path / "network.toml"
    path.write_text(f"{TWO}[environment]\ntrace = 't.parquet'\n{text}")
    with pytest.raises(NetworkError, match=rf"network\.toml: environment\.{expected}"):
        load(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=r"none\.toml: No such file"):
        load(tmp_path / "none.toml")
