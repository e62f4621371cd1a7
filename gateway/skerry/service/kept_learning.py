"""What is learnt of joins, as it is kept over restarts: a row of the state by a query's text. Counting begins anew."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from skerry.joins.placement.estimates import Estimates, Rates
from skerry.service.pair_learning import Change, Learning
from skerry.storage.state.database import Row


def row_of(text: str, learning: Learning) -> Row:
    """Of a query with this text."""
    kept = {
        "strategy": learning.strategy,
        "rates": _kept(learning.rates),
        "since": learning.since,
        "assumed": _kept(learning.assumed),
        "needed": learning.needed,
        "changes": [asdict(change) for change in learning.changes],
    }
    return {"query_text": text, "learnt": json.dumps(kept)}


def learning_of(row: Row) -> Learning:
    """Of a row. Raises LookupError, TypeError, ValueError: it is none."""
    kept = json.loads(row["learnt"])
    return Learning(
        kept["strategy"], _rates(kept["rates"]), kept["since"], _rates(kept["assumed"]), kept["needed"],
        changes=[Change(**change) for change in kept["changes"]],
    )  # fmt: skip


def _kept(rates: Rates) -> dict[str, Any]:
    # JSON has texts alone as keys.
    pairs = [[*pair, share] for pair, share in rates.pairs.items()]
    return {"usual": asdict(rates.usual), "s": [*rates.s.items()], "t": [*rates.t.items()], "pairs": pairs}


def _rates(kept: Mapping[str, Any]) -> Rates:
    pairs = {(s, t): share for s, t, share in kept["pairs"]}
    return Rates(Estimates(**kept["usual"]), dict(kept["s"]), dict(kept["t"]), pairs)
