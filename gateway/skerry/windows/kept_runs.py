"""The windows that one query has for itself, on their way through the log, in a form for files, and again from it."""

from __future__ import annotations

import msgspec
import numpy as np

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
from skerry.windows.own_windows import OwnSession, OwnWindows, Run
from skerry.windows.panes import Panes
from skerry.windows.window_parts import WindowView


class KeptSession(msgspec.Struct, array_like=True):
    """See :class:`skerry.windows.own_windows.OwnSession`."""

    number: int
    since_ms: int
    utc_ms: int
    course: KeptCourse
    groups: KeptGroups
    panes: KeptPanes


class KeptRun(msgspec.Struct, array_like=True):
    """See :class:`skerry.windows.own_windows.Run`. ``texts``: in the order of their numbers."""

    at: int
    texts: list[str]
    sessions: list[KeptSession]


def kept_run(run: Run) -> KeptRun | None:
    """What it holds, while it does not go on; None: its windows are over."""
    sessions = []
    for number, session in run.sessions.items():
        course = session.panes.courses.get(session.key)
        if course is None:
            return None
        groups = kept_groups(session.groups, len(run.own.plan.groups))
        panes = kept_panes(session.panes.state())
        sessions.append(
            KeptSession(number, session.view.since_ms, session.utc_ms, kept_course(course), groups, panes)
        )
    return KeptRun(run.at, list(run.texts), sessions)


def run_again(kept: KeptRun, own: OwnWindows) -> Run | None:
    """Goes on from there, for a query with the same text; None: it is planned otherwise than it was."""
    frame, run = own.plan.window, Run(own)
    assert frame is not None
    run.go_on(kept.at)
    run.texts.update({text: number for number, text in enumerate(kept.texts)})
    for one in kept.sessions:
        course = course_again(one.course)
        panes = Panes.of_state(panes_state(one.panes), frame.width_ms, own.grace_ms(kept.at))
        if course.frame != frame or set(panes.arguments()) != set(own.arguments):
            return None
        key = frame, course.first_ms
        panes.courses[key] = course
        view = WindowView(own.residual, one.since_ms, -1, int(np.iinfo(np.int64).max))
        run.sessions[one.number] = OwnSession(panes, key, view, groups_again(one.groups), one.utc_ms)
    return run
