"""Rows that go into windows, of all streams that a window is over, as one in the order of the log, and the numbers of their groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skerry.execution.range_index import LEAST, Int64
from skerry.expressions.evaluate import Vector
from skerry.expressions.expression import Expr
from skerry.planner.model.frames import EPOCH

#: A group: the value of each expression that GROUP BY names; None: NULL.
Group = tuple[int | None, ...]
#: Stands for NULL among a group's values.
NULL = int(LEAST)


@dataclass(frozen=True, slots=True)
class Input:
    """Rows of a batch in the order of the log, ``chosen`` those that count, ascending places among them; of a join one may
    stand there several times.

    ``sample_ms`` is the time that the windows go by, ``utc_ms`` that time in UTC. ``groups``, ``arguments`` and ``motes``, whose rows
    they are, are of the chosen only.
    """

    numbers: Int64
    sample_ms: Int64
    utc_ms: Int64
    chosen: Int64
    groups: Int64
    arguments: Mapping[Expr, Vector]
    motes: Int64

    def part(self, begin: int, end: int) -> Input:
        """Rows ``begin`` .. ``end`` - 1."""
        at, until = np.searchsorted(self.chosen, (begin, end))
        arguments = {e: (values[at:until], known[at:until]) for e, (values, known) in self.arguments.items()}
        whole = (self.numbers[begin:end], self.sample_ms[begin:end], self.utc_ms[begin:end])
        chosen = self.chosen[at:until] - begin
        return Input(*whole, chosen, self.groups[at:until], arguments, self.motes[at:until])


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one stream: their numbers in the log, ascending, their sample times, those in UTC; places of those that count among them,
    ascending, what these are grouped by and what of them is aggregated, and whose rows they are."""

    numbers: Int64
    sample_ms: Int64
    utc_ms: Int64
    chosen: Int64
    vectors: Sequence[Vector]
    motes: Int64


def with_epochs(vectors: Sequence[Vector], groups: Sequence[Expr], left: Int64) -> list[Vector]:
    """What rows are grouped by and what of them is aggregated, with what their epochs leave where they are grouped by those."""
    epochs: Vector = left, np.ones(len(left), np.bool_)
    of_groups = [epochs if expr == EPOCH else vector for expr, vector in zip(groups, vectors, strict=False)]
    return [*of_groups, *vectors[len(groups) :]]


def as_input(
    pieces: Sequence[Piece], known: dict[Group, int], count: int, arguments: Sequence[Expr]
) -> Input:
    """Pieces of one session as one; the first ``count`` vectors are groups, of which new ones are added to ``known``."""
    if len(pieces) == 1:
        (only,) = pieces
        numbers, samples, utc = only.numbers, only.sample_ms, only.utc_ms
        places, merged, motes = only.chosen, list(only.vectors), only.motes
    else:
        numbers = np.concatenate([piece.numbers for piece in pieces])
        samples = np.concatenate([piece.sample_ms for piece in pieces])
        utc = np.concatenate([piece.utc_ms for piece in pieces])
        order = np.argsort(numbers, kind="stable")
        numbers, samples, utc = numbers[order], samples[order], utc[order]
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        offsets = np.cumsum([0, *(len(piece.numbers) for piece in pieces[:-1])])
        chosen = [piece.chosen + offset for piece, offset in zip(pieces, offsets, strict=True)]
        places = rank[np.concatenate(chosen)]
        by_place = np.argsort(places, kind="stable")
        places = places[by_place]
        motes = np.concatenate([piece.motes for piece in pieces])[by_place]
        merged = [
            (
                np.concatenate([v for v, _ in column])[by_place],
                np.concatenate([k for _, k in column])[by_place],
            )
            for column in zip(*(piece.vectors for piece in pieces), strict=True)
        ]
    groups = _numbered(known, merged[:count], len(places))
    arguments_of = dict(zip(arguments, merged[count:], strict=True))
    return Input(numbers, samples, utc, places, groups, arguments_of, motes)


def _numbered(known: dict[Group, int], columns: list[Vector], rows: int) -> Int64:
    """The number of each row's group; new ones are added to ``known``."""
    codes = np.zeros(rows, np.int64)
    if not columns:
        return codes
    values = [np.where(there, value, NULL) for value, there in columns]
    for value in values:
        distinct, code = np.unique(value, return_inverse=True)
        codes = codes * len(distinct) + code
    _, first, code = np.unique(codes, return_index=True, return_inverse=True)
    numbers = np.empty(len(first), np.int64)
    # In the order of the rows, so that it does not matter where batches end.
    for distinct in np.argsort(first).tolist():
        row = first[distinct]
        group = tuple(None if (v := int(value[row])) == NULL else v for value in values)
        numbers[distinct] = known.setdefault(group, len(known))
    return numbers[code]
