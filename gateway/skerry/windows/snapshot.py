"""Windows as they are behind a row of the log, for a file, from which they go on as if there had been no restart.

What windows give is a function of the log's rows, so that whoever has them as they were behind row N needs only those that follow. Kept is
all that the next rows' answers rest on: panes with their groups, the windows that are under way with how often they were revised, what
landmarks hold, and whose windows are over because their groups became too many.

What users ask is not kept: they bring their plans. Whose plan is another one than that which the windows were made for does not find them
here, and has his made of rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import TypeVar

import msgspec
import pyarrow as pa

from skerry.execution.filters import Filter
from skerry.execution.matching import View
from skerry.planner.model.frames import EPOCH, is_windowed
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.model.waits import grace_ms
from skerry.windows.courses import Course
from skerry.windows.group_bounds import too_many_groups
from skerry.windows.kept_panes import (
    KeptCourse,
    KeptGroups,
    KeptPanes,
    course_again,
    groups_again,
    kept_course,
    kept_groups,
    kept_panes,
    panes_state,
)
from skerry.windows.kept_runs import KeptRun, run_again
from skerry.windows.kept_sources import KeptShared, SharedCapture
from skerry.windows.own_windows import OwnWindows, Run
from skerry.windows.panes import Panes
from skerry.windows.shared_windows import Selection, Shared, Windows

#: Changes with what :class:`Snapshot` has, and with what panes and courses mean by it.
VERSION = 3
_CODEC = pa.Codec("zstd", 1)
_Kind = TypeVar("_Kind")


class _Shared(msgspec.Struct, array_like=True):
    """See :class:`skerry.windows.shared_windows.Shared`. ``choice``: what rows are selected and grouped by; ``feeds``, ``views``: by
    stream; ``users``: with the place of their course."""

    number: int
    choice: str
    after: int
    feeds: list[tuple[int, list[str | int | None]]]
    off: list[int]
    views: list[tuple[int, list[str | int | None]]]
    groups: KeptGroups
    users: list[tuple[str, int]]
    courses: list[KeptCourse]
    panes: KeptPanes


class _User(msgspec.Struct, array_like=True):
    """``text``: of his query; ``places``: by session, whose panes he has, by their place."""

    text: str
    places: list[tuple[int, int]]
    exceeded: bool


class KeptOwn(msgspec.Struct, array_like=True):
    """Windows that a query has for itself. ``text``: of the query; ``at``: the row that comes next; then
    :class:`skerry.windows.kept_runs.KeptRun`, packed, with its bytes when it is unpacked."""

    text: str
    at: int
    size: int
    packed: bytes


class Snapshot(msgspec.Struct, array_like=True):
    """``row``: of those before it all is in it; ``last``: the number given last to panes; ``shared``: :class:`_Shared`, each packed, with
    its bytes when it is unpacked; ``own``: of windows that queries have for themselves, each as far as its reader had come;
    ``sources``: what users of sources that are no motes share."""

    row: int
    last: int
    users: dict[str, _User]
    shared: list[tuple[int, bytes]]
    own: dict[str, KeptOwn]
    sources: list[KeptShared]

    def to_bytes(self) -> bytes:
        """For :meth:`from_bytes`."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Snapshot:
        """Raises ValueError."""
        return _decoded(data, cls)


class Capture:
    """Windows as they are, while none of their rows come: afterwards it is no longer theirs."""

    def __init__(
        self,
        row: int,
        windows: Windows,
        plans: Mapping[str, QueryPlan],
        own: Mapping[str, KeptOwn | tuple[str, KeptRun]],
        sources: Sequence[SharedCapture] = (),
    ) -> None:
        """``plans``: of all users who share windows; ``own``: of those who have some for themselves, the text of the query with these, or
        what is packed of them already; ``sources``: what users of sources that are no motes share."""
        self._sources = sources
        self.row, self._last, self._own = row, windows.last, own
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
        shared = [_packed(one) for one in self._shared]
        own = {
            user: one if isinstance(one, KeptOwn) else KeptOwn(one[0], one[1].at, *_packed(one[1]))
            for user, one in self._own.items()
        }
        sources = [one.kept() for one in self._sources]
        return Snapshot(self.row, self._last, self._users, shared, own, sources)


def resume(windows: Windows, kept: Snapshot, plans: Mapping[str, QueryPlan]) -> set[str]:
    """Let new ``windows`` go on behind row ``kept.row``, for those of these users whom it knows: returns who they are. Their feeds follow
    (:meth:`Windows.set_feeds`). Raises ValueError."""
    known = {user for user in plans if user in kept.users and kept.users[user].text == plans[user].text}
    made: dict[int, Shared | None] = {}
    for user in kept.users:
        if user in known:
            for _, place in kept.users[user].places:
                if place not in made:
                    unpacked = _unpacked(*kept.shared[place], _Shared)
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


def run_of(kept: KeptOwn, own: OwnWindows) -> Run | None:
    """The windows that a query has for itself, on their way; None: it asks otherwise. Raises ValueError."""
    return run_again(_unpacked(kept.size, kept.packed, KeptRun), own) if kept.text == own.plan.text else None


def _packed(one: msgspec.Struct) -> tuple[int, bytes]:
    data = msgspec.msgpack.encode(one)
    return len(data), _CODEC.compress(data, asbytes=True)


def _unpacked(size: int, packed: bytes, kind: type[_Kind]) -> _Kind:
    return _decoded(_CODEC.decompress(packed, decompressed_size=size, asbytes=True), kind)


def _decoded(data: bytes, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None


def _captured(shared: Shared, plans: Mapping[str, QueryPlan]) -> _Shared:
    selection, panes = shared.selection, shared.panes
    courses = list(panes.courses)
    return _Shared(
        shared.number,
        _choice(plans[next(iter(shared.users))]),
        selection.after,
        [(number, list(astuple(feed))) for number, feed in selection.feeds],
        list(selection.off),
        [(number, list(astuple(view.feed))) for number, view in shared.views.items()],
        kept_groups(shared.groups, len(selection.groups)),
        [(user, courses.index(key)) for user, key in shared.users.items()],
        [kept_course(panes.courses[key]) for key in courses],
        kept_panes(panes.state()),
    )


def _choice(plan: QueryPlan) -> str:
    where = plan.where.to_list() if plan.where is not None else None
    return json.dumps([where, [expr.to_list() for expr in plan.groups], plan.period_ms, plan.wait_ms])


def _made(kept: _Shared, row: int, plans: Mapping[str, QueryPlan]) -> Shared | None:
    """Again, with those of its users whose plans are still what it was made for; None: there are none."""
    courses = [course_again(one) for one in kept.courses]
    panes = Panes.of_state(panes_state(kept.panes), *_widths(kept, plans))
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
    views = {number: View.of(base, _feed(feed)) for number, feed in kept.views}
    return Shared(kept.number, selection, panes, views, groups_again(kept.groups), users, begin=row)


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


def _feed(values: list[str | int | None]) -> Feed:
    return Feed(*values)  # type: ignore[arg-type]
