"""Whether states by group take less of motes that answer than the tuples would, by estimate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from skerry.index.code import NULL
from skerry.index.questions import LAST_EPOCH, share
from skerry.planner.features.indexing import Index, IndexPart
from skerry.sensors.index_states import StateQuestion

#: Bytes in which a mote puts groups together (INDEX_GROUPS_BYTES, firmware/query/query_conf.h), and of a tuple before its values.
_TOGETHER, _HEAD = 768, 9


@dataclass(frozen=True, slots=True)
class Load:
    """What is known of an index: tuples by mote, as each told last, and how many motes insert."""

    held: Mapping[int, int]
    motes: int


@dataclass(frozen=True, slots=True)
class StatePrice:
    """Of a mote on average: how many ``tuples`` match, in how many ``groups``, and bytes of the ``states`` of these and of the tuples
    themselves (``rows``)."""

    tuples: float
    groups: float
    states: float
    rows: float

    @property
    def are_cheaper(self) -> bool:
        """Whether states travel. Where nothing is known they do, if there are not too many groups: who stores more and more tuples has no
        more groups."""
        return self.states < self.rows if self.tuples else self.groups * self.states <= _TOGETHER

    def line(self) -> str:
        """For people: why tuples travel."""
        return (
            f"tuples travel, not states: by estimate a mote has {self.tuples:.3g} of them in {self.groups:.3g} groups, whose states take"
            f" {self.states:.3g} bytes and they {self.rows:.3g}"
        )


def price_of(question: StateQuestion, index: Index, load: Load) -> StatePrice:
    """Of a question by group."""
    part = index.parts[question.part]
    size = question.group_size
    row = _HEAD + sum(index.axes[column].entry.format.size for column in part.columns)
    groups, matching = _groups(question, index, part, load)
    held = sum(load.held.get(node, 0) for node in part.holding) / len(part.holding)
    box = [question.limits.get(column, (0, NULL)) for column in part.columns]
    tuples = held * share(box) * matching
    if not tuples:
        return StatePrice(0.0, groups, size, row)
    distinct = groups * (1 - math.exp(-tuples / groups))
    together = _TOGETHER // size
    sent = distinct
    if distinct > together:
        # What has no room any more is sent as it is, and begins anew: half of the room is taken on average.
        sent = max(distinct, tuples * (1 - together / (2 * distinct)))
    return StatePrice(tuples, distinct, sent * size, tuples * row)


def _groups(question: StateQuestion, index: Index, part: IndexPart, load: Load) -> tuple[float, float]:
    """How many groups there may be, and the share of tuples that are in those that are asked for."""
    assert question.group is not None
    name = str(question.group.value)
    if name == "nodeid":
        return max(1, load.motes), 1.0
    if name == "epoch":
        each = 1 if index.event is not None else max(1, load.motes)
        kept = max(1.0, sum(load.held.get(node, 0) for node in part.holding) / each)
        asked = kept if question.last == LAST_EPOCH else question.last - question.first + 1
        return min(kept, asked), min(kept, asked) / kept
    [axis] = [axis for axis in index.axes if axis.entry.name == name]
    low, high = question.limits.get(index.axes.index(axis), (0, NULL))
    return max(1.0, (axis.high - axis.low + 1) * (high - low + 1) / (NULL + 1)), 1.0
