"""Windows as they are behind a row of the log, for a file, from which they go on as if there had been no restart.

What windows give is a function of the log's rows, so that whoever has them as they were behind row N needs only those that follow. Kept is
all that the next rows' answers rest on: panes with their groups, the windows that are under way with how often they were revised, what
landmarks hold, and whose windows are over because their groups became too many.

What users ask is not kept: they bring their plans. Whose plan is another one than that which the windows were made for does not find them
here, and has his made of rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple
from functools import lru_cache
from typing import TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from skerry.execution.filters import Filter
from skerry.execution.matching import View
from skerry.execution.partial_panes import groups_of_array, groups_to_array
from skerry.expressions.expression import Expr, from_list
from skerry.planner.model.frames import EPOCH, Frame, Window, is_windowed
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.model.waits import grace_ms
from skerry.windows.courses import Course
from skerry.windows.group_bounds import GroupNumbers, too_many_groups
from skerry.windows.panes import Panes
from skerry.windows.panes_state import PanesState
from skerry.windows.shared_windows import Selection, Shared, Windows

#: Changes with what :class:`Snapshot` has, and with what panes and courses mean by it.
VERSION = 1
_CODEC = pa.Codec("zstd", 1)
_Kind = TypeVar("_Kind")


class _Course(msgspec.Struct, array_like=True):
    """See :class:`skerry.windows.courses.Course`. ``before``: by expression, as in :class:`skerry.windows.panes.PanesState`."""

    windows: list[tuple[int, int]]
    whole: bool
    first_ms: int
    closed_ms: int | None
    before: list[tuple[str | None, list[bytes]]] | None
    motes_before: bytes
    revised: list[tuple[int, int]]


class _Panes(msgspec.Struct, array_like=True):
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


class _Shared(msgspec.Struct, array_like=True):
    """See :class:`skerry.windows.shared_windows.Shared`. ``choice``: what rows are selected and grouped by; ``feeds``, ``views``: by
    stream; ``groups``: so many, each of ``width`` values; ``users``: with the place of their course."""

    number: int
    choice: str
    after: int
    feeds: list[tuple[int, list[str | int | None]]]
    off: list[int]
    views: list[tuple[int, list[str | int | None]]]
    groups: tuple[int, int, bytes]
    due: int
    users: list[tuple[str, int]]
    courses: list[_Course]
    panes: _Panes


class _User(msgspec.Struct, array_like=True):
    """``text``: of his query; ``places``: by session, whose panes he has, by their place."""

    text: str
    places: list[tuple[int, int]]
    exceeded: bool


class Snapshot(msgspec.Struct, array_like=True):
    """``row``: of those before it all is in it; ``last``: the number given last to panes; ``shared``: :class:`_Shared`, each packed, with
    its bytes when it is unpacked."""

    row: int
    last: int
    users: dict[str, _User]
    shared: list[tuple[int, bytes]]

    def to_bytes(self) -> bytes:
        """For :meth:`from_bytes`."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Snapshot:
        """Raises ValueError."""
        return _decoded(data, cls)


class Capture:
    """Windows as they are, while none of their rows come: afterwards it is no longer theirs."""

    def __init__(self, row: int, windows: Windows, plans: Mapping[str, QueryPlan]) -> None:
        """``plans``: of all users with windows."""
        self.row, self._last = row, windows.last
        shared = windows.shared()
        places = {id(one): place for place, one in enumerate(shared)}
        self._shared = [_captured(one, plans) for one in shared]
        self._users = {
            user: _User(
                plan.text,
                [(session, places[id(one)]) for session, one in windows.of_user(user).items()],
                user in windows.exceeded,
            )
            for user, plan in plans.items()
        }

    def __len__(self) -> int:
        return len(self._shared)

    def snapshot(self) -> Snapshot:
        """Packed; in any thread."""
        packed = []
        for one in self._shared:
            data = msgspec.msgpack.encode(one)
            packed.append((len(data), _CODEC.compress(data, asbytes=True)))
        return Snapshot(self.row, self._last, self._users, packed)


def resume(windows: Windows, kept: Snapshot, plans: Mapping[str, QueryPlan]) -> set[str]:
    """Let new ``windows`` go on behind row ``kept.row``, for those of these users whom it knows: returns who they are. Their feeds follow
    (:meth:`Windows.set_feeds`). Raises ValueError."""
    known = {user for user in plans if user in kept.users and kept.users[user].text == plans[user].text}
    made: dict[int, Shared | None] = {}
    for user in kept.users:
        if user in known:
            for _, place in kept.users[user].places:
                if place not in made:
                    size, packed = kept.shared[place]
                    unpacked = _decoded(
                        _CODEC.decompress(packed, decompressed_size=size, asbytes=True), _Shared
                    )
                    made[place] = _made(
                        unpacked, kept.row, {name: plans[name] for name, _ in unpacked.users if name in known}
                    )
    # Of several sessions a user's windows go on in all, or in none.
    lacking = {
        user
        for user in known
        if any((one := made[place]) is None or user not in one.users for _, place in kept.users[user].places)
    }
    for user in known - lacking:
        of_sessions = {session: made[place] for session, place in kept.users[user].places}
        windows.go_on(
            user, {session: one for session, one in of_sessions.items() if one is not None}, kept.row
        )
        window = plans[user].window
        if kept.users[user].exceeded and window is not None:
            windows.exceeded[user] = too_many_groups(window)
    for one in made.values():
        if one is not None:
            for user in lacking & one.users.keys():
                del one.users[user]
            wanted = set(one.users.values())
            for key in [key for key in one.panes.courses if key not in wanted]:
                del one.panes.courses[key]
    windows.take_up([one for one in made.values() if one is not None and one.users], kept.last)
    return known - lacking


def _decoded(data: bytes, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None


def _captured(shared: Shared, plans: Mapping[str, QueryPlan]) -> _Shared:
    selection, panes = shared.selection, shared.panes
    courses = list(panes.courses)
    groups = list(shared.groups.known)
    width = len(groups[0]) if groups else len(selection.groups)
    return _Shared(
        shared.number,
        _choice(plans[next(iter(shared.users))]),
        selection.after,
        [(number, list(astuple(feed))) for number, feed in selection.feeds],
        list(selection.off),
        [(number, list(astuple(view.feed))) for number, view in shared.views.items()],
        (len(groups), width, groups_to_array(groups).tobytes()),
        shared.groups.due,
        [(user, courses.index(key)) for user, key in shared.users.items()],
        [_course(panes.courses[key]) for key in courses],
        _panes(panes.state()),
    )


def _choice(plan: QueryPlan) -> str:
    where = plan.where.to_list() if plan.where is not None else None
    return json.dumps([where, [expr.to_list() for expr in plan.groups], plan.period_ms, plan.wait_ms])


def _course(course: Course) -> _Course:
    frame = course.frame
    before = course.before
    return _Course(
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


def _panes(state: PanesState) -> _Panes:
    room = state.motes.shape
    return _Panes(
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


@lru_cache(maxsize=4096)
def _text(expr: Expr | None) -> str | None:
    return None if expr is None else json.dumps(expr.to_list())


@lru_cache(maxsize=4096)
def _expr(text: str | None) -> Expr | None:
    return None if text is None else from_list(json.loads(text))


def _made(kept: _Shared, row: int, plans: Mapping[str, QueryPlan]) -> Shared | None:
    """Again, with those of its users whose plans are still what it was made for; None: there are none."""
    courses = [_course_of(one) for one in kept.courses]
    panes = Panes.of_state(_state(kept.panes), *_widths(kept, plans))
    users = {}
    for user, place in kept.users:
        plan = plans.get(user)
        if plan is not None and _fits(plan, kept, courses[place], panes):
            users[user] = courses[place].frame, courses[place].first_ms
    if not users:
        return None
    plan = plans[next(iter(users))]
    assert plan.window is not None
    base = Filter.of(plan.without_windows())
    feeds = tuple((number, _feed(feed)) for number, feed in kept.feeds)
    selection = Selection(
        plan.where,
        plan.groups,
        plan.period_ms,
        panes.width_ms,
        kept.after,
        feeds,
        tuple(kept.off),
        plan.window.epochs(plan.period_ms) if EPOCH in plan.groups else 0,
        panes.grace_ms,
    )
    panes.courses = {(course.frame, course.first_ms): course for course in courses}
    count, width, values = kept.groups
    groups = groups_of_array(np.frombuffer(values, np.int64).reshape(count, width), count)
    numbers = GroupNumbers({group: number for number, group in enumerate(groups)}, kept.due)
    views = {number: View.of(base, _feed(feed)) for number, feed in kept.views}
    return Shared(kept.number, selection, panes, views, numbers, users, begin=row)


def _widths(kept: _Shared, plans: Mapping[str, QueryPlan]) -> tuple[int, int]:
    """Of panes, and their grace, as these plans have them."""
    plan = next((plans[user] for user, _ in kept.users if user in plans), None)
    if plan is None or plan.window is None:
        return 1, 0
    return plan.window.width_ms, grace_ms(plan.period_ms, plan.wait_ms)


def _fits(plan: QueryPlan, kept: _Shared, course: Course, panes: Panes) -> bool:
    arguments = {node.args[0] for node in plan.aggregates() if is_windowed(node) and node.args}
    return (
        plan.window == course.frame
        and course.frame.width_ms == panes.width_ms
        and _choice(plan) == kept.choice
        and arguments <= set(panes.arguments())
    )


def _course_of(kept: _Course) -> Course:
    frame = Frame(tuple(Window(*window) for window in kept.windows), kept.whole)
    before = (
        None
        if kept.before is None
        else {_expr(text): [_integers(part) for part in parts] for text, parts in kept.before}
    )
    motes = np.frombuffer(kept.motes_before, np.bool_).copy()
    return Course(frame, kept.first_ms, kept.closed_ms, before, motes, dict(kept.revised))


def _state(kept: _Panes) -> PanesState:
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


def _feed(values: list[str | int | None]) -> Feed:
    return Feed(*values)  # type: ignore[arg-type]
