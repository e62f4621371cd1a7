"""A shop's sales dealt to stores, the join that is asked over them, and what DuckDB answers to the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import duckdb

CREATE = (
    "CREATE SENSORS stores (store INT, sale STREAM "
    "(at TIMESTAMP TIME, invoice TEXT, item TEXT, quantity INT, unit_price DOUBLE, customer INT))"
)
ALIASES = "abcd"
#: Returns have quantities below 0.
_SOLD = "quantity > 0"


def deal(path: Path, folder: Path, stores: int, days: int) -> int:
    """A Parquet file for each store, with the rows of some days of the United Kingdom's whose invoices the store has, in the order of their
    times; how many there are. Raises duckdb.Error."""
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as database:
        database.execute(
            "CREATE TABLE sales AS SELECT time AS at, invoice, item, quantity, unit_price, customer, hash(invoice) % ? AS store "
            "FROM read_parquet(?) WHERE country = 'United Kingdom' "
            "AND time < (SELECT min(time) FROM read_parquet(?)) + to_days(?)",
            [stores, str(path), str(path), days],
        )
        for store in range(stores):
            chosen = f"SELECT * EXCLUDE (store) FROM sales WHERE store = {store} ORDER BY sales.at, invoice, item, quantity"
            database.execute(f"COPY ({chosen}) TO '{folder / f'{store + 1}.parquet'}' (FORMAT parquet)")
        [[count]] = database.execute("SELECT count(*) FROM sales").fetchall()
    return int(count)


def join(stores: int, minutes: int) -> str:
    """Items that all stores sell within some minutes."""
    aliases = ALIASES[:stores]
    columns = ", ".join(
        f"{one}.at AS {one}_at, {one}.invoice AS {one}_invoice, {one}.quantity AS {one}_sold"
        for one in aliases
    )
    conditions = [f"{one}.store = {number}" for number, one in enumerate(aliases, 1)]
    conditions += [f"{one}.item = {other}.item" for one, other in pairwise(aliases)]
    conditions += [f"{one}.{_SOLD}" for one in aliases]
    return (
        f"SELECT a.item AS item, {columns} FROM {', '.join(f'stores AS {one}' for one in aliases)} "
        f"WINDOW = {minutes} min WHERE {' AND '.join(conditions)} LATENESS 1 week"
    )


def answers(folder: Path, stores: int, minutes: int) -> Counter[tuple[Any, ...]]:
    """What DuckDB answers over the stores' files."""
    aliases = ALIASES[:stores]
    columns = ", ".join(f"{one}.at, {one}.invoice, {one}.quantity" for one in aliases)
    tables = ", ".join(f"'{folder / f'{number}.parquet'}' AS {one}" for number, one in enumerate(aliases, 1))
    conditions = [f"{one}.item = {other}.item" for one, other in pairwise(aliases)]
    conditions += [f"{one}.{_SOLD}" for one in aliases]
    conditions += [
        f"abs(epoch_us({one}.at) - epoch_us({other}.at)) <= {minutes * 60_000_000}"
        for one, other in combinations(aliases, 2)
    ]
    with duckdb.connect() as database:
        found = database.execute(f"SELECT a.item, {columns} FROM {tables} WHERE {' AND '.join(conditions)}")
        return Counter(found.fetchall())


def as_answer(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """A row of the join as DuckDB has it: its times have no zone."""
    return tuple(value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value for value in row.values())
