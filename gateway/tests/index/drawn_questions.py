"""Drawn questions to an index of light, temperature and humidity, with what DuckDB is asked instead: of every kind that there is."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import duckdb

#: What motes are made to sample, in SI: light in lx, the others in steps of 0.01. Ranges of indexes are narrower.
LIGHT, TEMP, HUMIDITY = (0, 1600), (-5, 55), (0, 100)
_NUMBERS = {"light": LIGHT, "temp": TEMP, "humidity": HUMIDITY}
COLUMNS = "nodeid, epoch, light, temp, humidity"


@dataclass
class Question:
    """What is asked, of us and of DuckDB. ``sorted``: whether rows have an order. ``kinds``: what it is about."""

    ours: str
    theirs: str
    sorted: bool
    kinds: set[str] = field(default_factory=set)


class Questions:
    """Drawn over tuples of these ``epochs``, of ``motes``."""

    def __init__(self, rng: random.Random, epochs: range, motes: int) -> None:
        self._rng, self._epochs, self._motes = rng, epochs, motes

    def draw(self, index: str) -> Question:
        """One."""
        rng, kinds = self._rng, set[str]()
        where = self._where(kinds)
        if rng.random() < 0.4:
            select, behind = self._rows(kinds)
            theirs = select
        else:
            select, theirs, behind = self._aggregates(kinds)
        ours, asked = (f"SELECT {what} FROM {index} WHERE {where}" for what in (select, theirs))
        return Question(ours + behind, asked + behind, "ORDER BY" in behind, kinds)

    # ---- WHERE ----

    def _where(self, kinds: set[str]) -> str:
        rng = self._rng
        first, last = sorted(rng.choices(self._epochs, k=2))
        within = f"epoch BETWEEN {self._epochs[0]} AND {self._epochs[-1]}"
        if rng.random() < 0.3:
            within = rng.choice(
                (
                    f"epoch BETWEEN {first} AND {last}",
                    f"epoch = {first}",
                    f"epoch >= {first} AND epoch < {last + 1}",
                )
            )
            kinds.add("epoch")
        conditions = [within]
        conditions += [self._condition(name, kinds) for name in _NUMBERS if rng.random() < 0.4]
        if rng.random() < 0.25:
            nodes = rng.sample(range(self._motes), 2)
            conditions.append(
                rng.choice(("nodeid = {0}", "nodeid <> {0}", "nodeid IN ({0}, {1})", "nodeid < {0}")).format(
                    *nodes
                )
            )
            kinds.add("nodeid")
        if rng.random() < 0.15:
            one, other = (self._condition(name, kinds) for name in rng.sample(sorted(_NUMBERS), 2))
            conditions.append(rng.choice(("({} OR {})", "NOT ({} AND {})")).format(one, other))
            kinds.add("OR, NOT")
        return " AND ".join(conditions)

    def _condition(self, name: str, kinds: set[str]) -> str:
        rng, (least, most) = self._rng, _NUMBERS[name]
        drawn = rng.random()
        if drawn < 0.1:
            kinds.add("NULL")
            return f"{name} IS {rng.choice(('', 'NOT '))}NULL"
        if drawn < 0.2:
            # Nothing is there.
            kinds.add("beyond")
            return f"{name} {rng.choice((f'> {most + 10}', f'< {least - 10}', f'<= {most + 10}', f'>= {least - 10}'))}"
        low = rng.randrange(least, most)
        if drawn < 0.6:
            kinds.add("BETWEEN")
            return f"{name} BETWEEN {low} AND {low + rng.randrange(1 + (most - least) // 2)}"
        kinds.add("compared")
        return f"{name} {rng.choice(('<', '<=', '>', '>='))} {low if name == 'light' else low + rng.randrange(100) / 100}"

    # ---- what is selected ----

    def _rows(self, kinds: set[str]) -> tuple[str, str]:
        rng = self._rng
        names = [name for name in _NUMBERS if rng.random() < 0.6]
        kinds.add("rows")
        if rng.random() < 0.5:
            return ", ".join(["nodeid", "epoch", *names]), ""
        by = rng.choice(names or ["light"])
        way = rng.choice(("", " DESC"))
        kinds.update(("ORDER BY", "LIMIT"))
        return ", ".join(
            ["nodeid", "epoch", *names]
        ), f" ORDER BY {by}{way}, nodeid, epoch LIMIT {rng.randrange(1, 12)}"

    def _aggregates(self, kinds: set[str]) -> tuple[str, str, str]:
        rng = self._rng
        drawn = [self._aggregate(kinds) for _ in range(rng.randrange(1, 4))]
        found = dict(drawn)
        first, behind = "", ""
        if rng.random() < 0.5:
            by = rng.choice(("nodeid", "epoch"))
            first, behind = f"{by}, ", f" GROUP BY {by}"
            kinds.add("GROUP BY")
            if rng.random() < 0.5:
                behind += f" HAVING COUNT(*) {rng.choice(('>', '<='))} {rng.randrange(1, 5)}"
                kinds.add("HAVING")
            if rng.random() < 0.5:
                behind += f" ORDER BY COUNT(*){rng.choice(('', ' DESC'))}, {by} LIMIT {rng.randrange(1, 6)}"
                kinds.update(("ORDER BY", "LIMIT"))
        return first + ", ".join(found), first + ", ".join(found.values()), behind

    def _aggregate(self, kinds: set[str]) -> tuple[str, str]:
        """Ours, and DuckDB's."""
        rng, name = self._rng, self._rng.choice(sorted(_NUMBERS))
        if rng.random() < 0.5:
            kind = rng.choice(("COUNT", "SUM", "AVG", "MIN", "MAX"))
            kinds.add(kind)
            return (f"{kind}({name})",) * 2 if kind != "COUNT" or rng.random() < 0.5 else ("COUNT(*)",) * 2
        kind, share = (
            rng.choice(("MEDIAN", "QUANTILE", "VARIANCE", "STDDEV", "DISTINCT")),
            rng.randrange(101) / 100,
        )
        kinds.add(kind)
        return {
            "MEDIAN": (f"MEDIAN({name})", f"quantile_disc({name}, 0.5)"),
            "QUANTILE": (f"QUANTILE({name}, {share})", f"quantile_disc({name}, {share})"),
            "VARIANCE": (f"VARIANCE({name})", f"var_samp({name}::DOUBLE)"),
            "STDDEV": (f"STDDEV({name})", f"stddev_samp({name}::DOUBLE)"),
            "DISTINCT": (f"COUNT(DISTINCT {name})",) * 2,
        }[kind]


def database(names: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> duckdb.DuckDBPyConnection:
    """DuckDB with a table of each name, of the same rows: mote, epoch, and values in SI."""
    found = duckdb.connect()
    for name in names:
        found.execute(
            f"CREATE TABLE {name} (nodeid INTEGER, epoch INTEGER, light INTEGER, temp DECIMAL(8, 2), humidity DECIMAL(8, 2))"
        )
        found.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", list(rows))
    return found


def told(question: Question, rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows of an answer as they are compared: in their order, or in any."""
    plain = [tuple(None if value is None else round(float(value), 6) for value in row) for row in rows]
    return plain if question.sorted else sorted(plain, key=lambda row: [(v is None, v or 0.0) for v in row])
