"""Users who ask different things at once on emulated motes of both boards: each has what DuckDB says of the same readings, from his first
epoch on, whoever comes and goes beside him, and nobody is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.tests.generated import Row
from hil_tests.desk import Desk
from hil_tests.drawn_queries import DISTINCT_WITHIN, NAMES, Asked
from hil_tests.test_against_duckdb import compare
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry_protocol.attributes import BY_NAME
from skerry_testbed.pytest import MakeNetwork, disc, grid

#: Readings of all motes change each 5 s, and come again after so many.
EACH_S, SETS = 5, 6
#: What an epoch needs to come from the farthest mote, in s.
ARRIVES_S = 20


class Lab:
    """Motes with readings that are known, and the users who ask for them."""

    def __init__(self, desk: Desk, seed: int) -> None:
        draw = random.Random(seed)
        self.desk, self.net = desk, desk.net
        self._sensed = [
            {
                mote: {
                    "temp": draw.uniform(-20, 50),
                    "humidity": draw.uniform(5, 95),
                    "light": draw.uniform(0, 900),
                }
                for mote in self.net.motes
            }
            for _ in range(SETS)
        ]
        self._set = -1
        self._users: dict[str, str] = {}
        self._until_ms: dict[str, int] = {}
        self.advance(60)
        self.table = self._read()

    @property
    def now_ms(self) -> int:
        """Network time."""
        return self.desk.networks.now_ms()

    def advance(self, seconds: int) -> None:
        """Time goes on; a second and a half before its epochs begin readings are the next ones."""
        for _ in range(seconds):
            number = (self.now_ms + 1500) // (EACH_S * 1000)
            if number != self._set:
                self._set = number
                for mote, values in self._sensed[number % SETS].items():
                    self.net.motes[mote].sense(**values)
            self.desk.advance(1)

    def add(self, user: str, sql: str) -> None:
        """A user asks, and is told the epochs, too."""
        self._users[user] = self.desk.ask(sql.replace("SELECT ", "SELECT epoch, ", 1))

    def remove(self, user: str) -> None:
        """He goes."""
        self._until_ms[user] = self.now_ms
        self.desk.stop(self._users[user])

    def since_ms(self, user: str) -> int | None:
        """When his first epoch was to begin; None: he went before it was known."""
        return min((feed.since_ms for feed in self.desk.feeds[self._users[user]].values()), default=None)

    def rows(self, user: str) -> list[tuple[int, dict[str, Any]]]:
        """All that he was told, with its epoch."""
        told = [dict(row) for row in self.desk.rows[self._users[user]]]
        return [(row.pop("epoch"), row) for row in told]

    def _read(self) -> list[list[Row]]:
        """What motes read of each of the sets, as scaled integers."""
        self.add("reads", f"SELECT {', '.join(NAMES)} FROM sensors SAMPLE PERIOD {EACH_S} s")
        self.advance(90)
        self.remove("reads")
        found: list[dict[int, Row]] = [{} for _ in range(SETS)]
        for epoch, row in self.rows("reads"):
            scaled = {n: None if row[n] is None else round(row[n] * 10 ** BY_NAME[n].digits) for n in NAMES}
            known = found[epoch % SETS].setdefault(row["nodeid"], scaled)
            assert known == scaled, "readings come again"
        assert all(rows.keys() == self.net.motes.keys() for rows in found)
        return [[{**row, "epoch": 0} for row in rows.values()] for rows in found]

    def check(self, user: str, asked: Asked, period_s: int = EACH_S) -> int:
        """Fails unless each of the user's epochs, from his first on, says once what DuckDB says, one after the other; how many there
        were."""
        plan, rows = plan_query(f"{asked.sql} SAMPLE PERIOD {period_s} s"), self.rows(user)
        assert isinstance(plan, QueryPlan)
        if plan.aggregate:
            assert [epoch for epoch, _ in rows] == sorted(epoch for epoch, _ in rows), asked.sql
        since_ms = self.since_ms(user)
        if since_ms is None:
            return 0
        first = since_ms // plan.period_ms
        end = (self._until_ms.get(user, self.now_ms) - ARRIVES_S * 1000) // plan.period_ms
        for epoch in range(first, end):
            readings = self.table[epoch * period_s // EACH_S % SETS]
            got = [row for of, row in rows if of == epoch]
            if asked.oracle:
                compare(asked, plan, got, readings)
            else:
                # Of what motes say of themselves DuckDB knows nothing.
                assert sorted(row["nodeid"] for row in got) == sorted(self.net.motes)
        return max(0, end - first)


MakeLab = Callable[..., Lab]


@pytest.fixture
def lab(network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeLab:
    """Links that lose nothing, two IRIS to a CC2538."""

    def make(seed: int, columns: int, rows: int) -> Lab:
        motes = grid(columns, rows, spacing=10, boards=("iris", "iris", "cc2538"))
        net = network(motes, radio=disc(15), seed=seed)
        return Lab(Desk(net, tmp_path, monkeypatch), seed)

    return make


def asked(what: str, rest: str = "", oracle: str | None = None) -> Asked:
    return Asked(f"SELECT {what} FROM sensors {rest}", f"SELECT {oracle or what} FROM sensors {rest}")


def estimated(what: str, exact: str, within: tuple[float, float]) -> Asked:
    ours = f"SELECT {what} AS estimate, ERROR({what}) AS error FROM sensors"
    return Asked(ours, f"SELECT {exact} FROM sensors", within=within)


def best(name: str, count: int, term: str) -> str:
    """How DuckDB says TOP and BOTTOM."""
    order = "DESC" if name == "TOP" else "ASC"
    entries = f"list({{'nodeid': nodeid, 'value': {term}}} ORDER BY {term} {order}, nodeid)"
    return f"coalesce({entries} FILTER ({term} IS NOT NULL), [])[:{count}]"


TOGETHER: dict[str, list[Asked]] = {
    "more columns than a row has": [
        asked("nodeid, light, temp, humidity, voltage, accel_x, xpos, ypos"),
        Asked("SELECT nodeid, parent, level, free_ram, queue_length, room, floor, group FROM sensors", ""),
    ],
    "more cells than a state has": [
        estimated("MEDIAN(temp)", "QUANTILE_DISC(temp, 0.5)", (1, 0)),
        estimated("COUNT(DISTINCT light)", "COUNT(DISTINCT light)", DISTINCT_WITHIN),
    ],
    "lists of eight": [
        asked("TOP(8, light) AS best", oracle=best("TOP", 8, "light")),
        asked("BOTTOM(8, light) AS worst", oracle=best("BOTTOM", 8, "light")),
    ],
    "seven aggregates and six others": [
        asked("AVG(temp), MIN(temp), MAX(temp), SUM(light), MIN(light), MAX(light), COUNT(*)"),
        asked("AVG(humidity), MIN(humidity), MAX(humidity), AVG(voltage), MIN(voltage), SUM(nodeid)"),
    ],
}  # fmt: skip

#: Periods of which each is a multiple of the readings'.
PERIODS = (5, 10, 20)


@pytest.mark.slow
def test_what_one_program_cannot_hold_is_divided(lab: MakeLab) -> None:
    here = lab(seed=1, columns=4, rows=3)
    # Motes listen for queries often while it runs.
    here.add("awake", "SELECT nodeid FROM sensors SAMPLE PERIOD 5 s")
    here.advance(40)
    for name, pair in TOGETHER.items():
        for number, one in enumerate(pair):
            here.add(f"{name} {number}", f"{one.sql} SAMPLE PERIOD 5 s")
            here.advance(20)
        here.advance(70)
        for number in range(len(pair)):
            here.remove(f"{name} {number}")
        here.advance(15)
        for number, one in enumerate(pair):
            assert here.check(f"{name} {number}", one) >= 6


def drawn(draw: random.Random) -> Asked:
    """An aggregate."""
    number = draw.choice(["temp", "humidity", "light"])
    kinds = ["AVG", "SUM", "MIN", "MAX", "COUNT"]
    what = [f"{kind}({number})" for kind in draw.sample(kinds, draw.randint(1, 2))]
    if draw.random() < 0.3:
        what.append("COUNT(*)")
    where = draw.choice(
        ["", f"WHERE light > {draw.randrange(900)}", f"WHERE temp < {draw.randrange(-10, 50)}",
         f"WHERE humidity > {draw.randrange(90)} AND nodeid > {draw.randrange(9)}"]
    )  # fmt: skip
    if draw.random() < 0.3:
        key = draw.choice(["nodeid % 3", "light > 400"])
        what, where = [f"{key} AS g", *what], f"{where} GROUP BY {key}"
    columns = ", ".join(f"{one} AS c{i}" if " AS " not in one else one for i, one in enumerate(what))
    return asked(columns, where)


def ask_and_stop(here: Lab, draw: random.Random, count: int) -> dict[str, tuple[Asked, int]]:
    """So many users come, one or two each few seconds, and a third of them goes and comes again; returns what each has asked, and his
    period in s."""
    running: dict[str, tuple[Asked, int]] = {}

    def come(user: str, what: Asked) -> None:
        running[user] = what, draw.choice(PERIODS)
        here.add(user, f"{what.sql} SAMPLE PERIOD {running[user][1]} s")

    left: list[str] = []
    for number in range(count):
        user = f"user {number}"
        come(user, drawn(draw))
        left.append(user)
        here.advance(draw.choice([0, 0, 1, 2]))
        if draw.random() < 0.3:
            gone = left.pop(draw.randrange(len(left)))
            here.remove(gone)
            here.advance(draw.choice([0, 1, 3]))
            come(f"{gone} again", running[gone][0])
    return running


@pytest.mark.slow
@pytest.mark.parametrize(("count", "columns", "rows"), [(24, 3, 3), (100, 5, 4)])
def test_nobody_is_refused_for_what_others_ask(lab: MakeLab, count: int, columns: int, rows: int) -> None:
    here, draw = lab(count, columns, rows), random.Random(count)
    running = ask_and_stop(here, draw, count)
    here.advance(120)
    answered = sum(here.check(user, *what) for user, what in running.items())
    assert answered > 6 * count


@pytest.mark.slow
def test_first_answers_are_of_all_motes(lab: MakeLab) -> None:
    # Where a flood's frames collide a mote may hear of a query a window late: in one of a hundred such networks, by their seeds.
    here = lab(seed=4, columns=4, rows=3)
    everybody = len(here.net.motes)
    whole = {
        "count": asked("AVG(temp), COUNT(*)"),
        "top": asked("TOP(8, light) AS best", oracle=best("TOP", 8, "light")),
        "rows": asked("nodeid, light, temp"),
    }
    for user, one in whole.items():
        here.advance(60)
        here.add(user, f"{one.sql} SAMPLE PERIOD 5 s")
        here.advance(90)
        here.remove(user)
        assert here.check(user, one) >= 4
    # Another one whose query runs already has rows at once.
    here.add("first", "SELECT COUNT(*) FROM sensors SAMPLE PERIOD 5 s")
    here.advance(40)
    asked_ms = here.now_ms
    here.add("second", "SELECT COUNT(*) FROM sensors SAMPLE PERIOD 5 s")
    assert (here.since_ms("second") or 0) - asked_ms <= 5000
    here.advance(30)
    here.remove("first")
    here.remove("second")
    here.advance(60)
    asked_ms = here.now_ms
    here.add("impatient", "SELECT COUNT(*) FROM sensors SAMPLE PERIOD 5 s START NOW")
    assert (here.since_ms("impatient") or 0) - asked_ms <= 7000
    here.advance(60)
    counts = {epoch: row["COUNT(*)"] for epoch, row in here.rows("impatient")}
    # As many as have heard by then are in them.
    first = (here.since_ms("impatient") or 0) // 5000
    assert list(counts) == list(range(first, first + len(counts)))
    assert [*counts.values()][-5:] == [everybody] * 5
