"""Panes and the courses of windows as they are, in a form for files, and again from it."""

from __future__ import annotations

import json
from functools import lru_cache

import msgspec
import numpy as np

from skerry.execution.partial_panes import groups_of_array, groups_to_array
from skerry.expressions.expression import Expr, from_list
from skerry.planner.model.frames import Frame, Window
from skerry.windows.courses import Course
from skerry.windows.group_bounds import GroupNumbers
from skerry.windows.panes_state import PanesState


class KeptCourse(msgspec.Struct, array_like=True):
    """See :class:`skerry.windows.courses.Course`. ``before``: by expression, as in :class:`skerry.windows.panes.PanesState`."""

    windows: list[tuple[int, int]]
    whole: bool
    first_ms: int
    closed_ms: int | None
    before: list[tuple[str | None, list[bytes]]] | None
    motes_before: bytes
    revised: list[tuple[int, int]]


class KeptPanes(msgspec.Struct, array_like=True):
    """See :class:`skerry.windows.panes.PanesState`."""

    now_ms: int | None
    first: int
    room: tuple[int, int]
    groups: int
    cells: bytes
    states: list[tuple[str | None, list[bytes]]]
    motes: bytes
    motes_room: tuple[int, int]
    columns: list[int]


#: So many groups, each of so many values, and :attr:`skerry.windows.group_bounds.GroupNumbers.due`.
KeptGroups = tuple[int, int, bytes, int]


def kept_course(course: Course) -> KeptCourse:
    """Of a course."""
    frame = course.frame
    before = course.before
    return KeptCourse(
        [(window.length_ms, window.slide_ms) for window in frame.windows],
        frame.whole,
        course.first_ms,
        course.closed_ms,
        None
        if before is None
        else [(_text(a), [part.tobytes() for part in parts]) for a, parts in before.items()],
        course.motes_before.tobytes(),
        list(course.revised.items()),
    )


def kept_panes(state: PanesState) -> KeptPanes:
    """Of panes."""
    room = state.motes.shape
    return KeptPanes(
        state.now_ms,
        state.first,
        state.room,
        state.groups,
        state.cells.tobytes(),
        [(_text(argument), [part.tobytes() for part in parts]) for argument, parts in state.states.items()],
        np.packbits(state.motes).tobytes(),
        (room[0], room[1]),
        list(state.columns),
    )


def kept_groups(numbers: GroupNumbers, width: int) -> KeptGroups:
    """Of groups' numbers; ``width``: so many values a group would have, if there were any."""
    groups = list(numbers.known)
    width = len(groups[0]) if groups else width
    return len(groups), width, groups_to_array(groups).tobytes(), numbers.due


def groups_again(kept: KeptGroups) -> GroupNumbers:
    """What :func:`kept_groups` was made of."""
    count, width, values, due = kept
    groups = groups_of_array(np.frombuffer(values, np.int64).reshape(count, width), count)
    return GroupNumbers({group: number for number, group in enumerate(groups)}, due)


@lru_cache(maxsize=4096)
def _text(expr: Expr | None) -> str | None:
    return None if expr is None else json.dumps(expr.to_list())


@lru_cache(maxsize=4096)
def _expr(text: str | None) -> Expr | None:
    return None if text is None else from_list(json.loads(text))


def course_again(kept: KeptCourse) -> Course:
    """What :func:`kept_course` was made of."""
    frame = Frame(tuple(Window(*window) for window in kept.windows), kept.whole)
    before = (
        None
        if kept.before is None
        else {_expr(text): [_integers(part) for part in parts] for text, parts in kept.before}
    )
    motes = np.frombuffer(kept.motes_before, np.bool_).copy()
    return Course(frame, kept.first_ms, kept.closed_ms, before, motes, dict(kept.revised))


def panes_state(kept: KeptPanes) -> PanesState:
    """What :func:`kept_panes` was made of."""
    rows, columns = kept.motes_room
    bits = np.unpackbits(np.frombuffer(kept.motes, np.uint8), count=rows * columns)
    return PanesState(
        kept.now_ms,
        kept.first,
        kept.room,
        kept.groups,
        _integers(kept.cells),
        {_expr(text): [_integers(part) for part in parts] for text, parts in kept.states},
        bits.astype(np.bool_).reshape(rows, columns),
        kept.columns,
    )


def _integers(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.int64).copy()
