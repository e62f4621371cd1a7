"""An index among motes that die, come back, join late and move; whose it is what they sampled."""

from __future__ import annotations

from typing import Any

import duckdb

from hil_tests.drawn_boxes import plain
from hil_tests.office import Office
from skerry.index.code import motes_code
from skerry.index.placement import Position, field_of
from skerry.index.questions import point
from skerry.planner.features.indexing import Index
from skerry.service.queries import UserQuery
from skerry_testbed.network import Environment, Field
from skerry_testbed.pytest import NetworkHandle

#: All hear each other; who stores is on nobody else's way. The last one joins late.
BOARDS = ("iris", "cc2538", "iris", "cc2538", "cc2538", "iris", "iris", "cc2538")
LATE = 7
PERIOD_S, EPOCHS = 40, 4
#: Virtual s in which what was sampled has come to who stores it, and in which motes have gone over to other owners.
SETTLED_S, CHANGED_S = 260, 120
FIELDS = Environment(
    fields={
        "light": Field(base=500.0, gradient=(40.0, 30.0), amplitude=300.0, period="230 s"),
        "temp": Field(base=20.0, gradient=(0.3, 0.5), amplitude=5.0, period="310 s"),
    }
)
Row = tuple[Any, ...]


class Story:
    """An index among motes of which one joins late; ``loses``: whether links do."""

    def __init__(self, net: NetworkHandle, office: Office, *, loses: bool) -> None:
        self.net, self.office, self.loses = net, office, loses
        #: Where links lose: tuples in the last answer.
        self.came = 0
        net.motes[LATE].kill()
        office.advance(120, lambda: office.gateway.site.status()["motes"] == len(BOARDS) - 1)
        self._sampled = office.ask(
            f"SELECT nodeid, epoch, light, temp FROM sensors SAMPLE PERIOD {PERIOD_S} s"
        )
        self._kept = office.ask(
            f"CREATE INDEX climate ON sensors (JOINT (light FROM 200 TO 1000, temp FROM 10 TO 30)) SAMPLE PERIOD {PERIOD_S} s"
        )
        office.advance(2 * PERIOD_S)

    @property
    def index(self) -> Index:
        """As its owners are now."""
        assert self._kept.index is not None
        return self._kept.index

    def wait_for(self, owners: dict[int, Position | None]) -> None:
        """Until these store where they stand now, or do not where that is None; and until all motes know."""

        def is_so() -> bool:
            return all(self.index.storing.get(node) == place for node, place in owners.items())

        self.office.advance(1500, is_so)
        assert is_so(), self.index
        self.office.advance(CHANGED_S)

    def insert(self) -> list[Row]:
        """What motes sample in some epochs, until it is stored; with its owner."""
        first = max(row["epoch"] for row in self.office.told(self._sampled)) + 1
        self.office.advance((EPOCHS + 1) * PERIOD_S)
        told = [row for row in self.office.told(self._sampled) if row["epoch"] >= first]
        last = max(row["epoch"] for row in told)
        self.office.advance(SETTLED_S)
        told = [row for row in self.office.told(self._sampled) if first <= row["epoch"] <= last]
        return self.owned([tuple(row.values()) for row in told])

    def owned(self, rows: list[Row], also: dict[int, Position] | None = None) -> list[Row]:
        """The same with who owns them now, or would if some more motes stored."""
        return [(*row[:4], self._owner(*row[2:4], also or {})) for row in rows]

    def _owner(self, light: int, temp: float, also: dict[int, Position]) -> int:
        [part] = self.index.parts
        field = field_of([*part.owners.values(), *part.away.values()])
        known = {
            node: motes_code().zone_code(field, *place) for node, place in {**part.storing, **also}.items()
        }
        integers = light, round(temp * 100)
        axes = zip(self.index.axes, integers, strict=True)
        code = motes_code().code([point(axis.low, axis.high, value) for axis, value in axes])
        return min(known, key=lambda node: known[node] ^ code)

    def ask(self, rows: list[Row], *, lacking: set[int] = frozenset()) -> dict[str, Any]:  # type: ignore[assignment]
        """What is said of the answer to questions about all these, of which those that ``lacking`` motes own are not there."""
        epochs = sorted({row[1] for row in rows})
        # Spells lie apart, as others go on between them: motes are told the range of one alone.
        within = f"epoch IN ({', '.join(map(str, epochs))})"
        if epochs == list(range(epochs[0], epochs[-1] + 1)):
            within = f"epoch BETWEEN {epochs[0]} AND {epochs[-1]}"
        texts = [
            f"SELECT nodeid, epoch, light, temp FROM climate WHERE {within}",
            f"SELECT COUNT(*), MIN(temp), MAX(light), SUM(light) FROM climate WHERE {within} AND temp > 12",
        ]
        queries = [self.office.ask(text) for text in texts[: 1 if self.loses else 2]]
        self.office.answers(queries)
        there = [row for row in rows if row[-1] not in lacking]
        if self.loses:
            self._nearly(queries[0], there)
        else:
            database = duckdb.connect()
            database.execute(
                "CREATE TABLE climate (nodeid INTEGER, epoch INTEGER, light INTEGER, temp DOUBLE, owner INTEGER)"
            )
            database.executemany("INSERT INTO climate VALUES (?, ?, ?, ?, ?)", there)
            for text, query in zip(texts, queries, strict=True):
                ours = [tuple(row.values()) for row in self.office.told(query)]
                assert plain(ours) == plain(database.execute(text).fetchall()), text
        return self.office.gateway.queries.indexed(queries[0]) or {}

    def _nearly(self, query: UserQuery, there: list[Row]) -> None:
        """What comes is right, once, and next to all of it."""
        ours = [tuple(row.values()) for row in self.office.told(query)]
        self.came = len(ours)
        asked = [row[:-1] for row in there]
        assert len(set(ours)) == len(ours)
        assert set(ours) <= set(asked)
        print(f"{len(ours)} of {len(asked)} tuples, lacking {sorted(set(asked) - set(ours))}")
        assert len(ours) >= 0.95 * len(asked)
