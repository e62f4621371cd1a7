"""Windows over a past that ends, of panes that the engine has folded.

All of the past is there, so that none of its windows is revised: each comes with the first row that is sampled so far behind its end that
nothing that counts can still come (:mod:`skerry.windows.panes`), the last ones with the last row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from skerry.execution.partial_panes import cells_of
from skerry.execution.residual import Residual, type_of
from skerry.expressions.evaluate import Vector
from skerry.expressions.expression import Expr, Kind
from skerry.planner.model.frames import Frame, Window
from skerry.planner.model.plans import QueryPlan
from skerry.storage.history.engine.finishing import Numbered
from skerry.storage.history.engine.messages import Timing
from skerry.storage.history.engine.moments import Moments, Session
from skerry.storage.history.engine.selects import MOTE, ROWS, group_names, window_selects
from skerry.storage.history.layout import Int64
from skerry.storage.history.sorting import in_order
from skerry.windows.window_parts import WindowPart, WindowRows, WindowView


class Ask(Protocol):
    """All rows of a question about so many, None: about all."""

    def __call__(self, select: exp.Select, rows: int | None = None) -> pa.Table: ...


_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_FOLDS = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
#: How folds go on, and what they are of nothing.
_ACCUMULATED = {"sum": (np.add, 0), "min": (np.minimum, _MOST), "max": (np.maximum, _LEAST)}
_LOW = 0xFFFFFFFF


@dataclass(frozen=True)
class _Given:
    """Rows of windows, as :class:`skerry.windows.results.Result` has them."""

    numbers: Int64
    ends: Int64
    revisions: Int64
    motes: Int64
    states: Mapping[tuple[Window, Expr | None], Int64]


def windows(plan: QueryPlan, end: int, timing: Timing, since_ms: int, ask: Ask, moments: Moments) -> Numbered:
    """The rows of a plan's windows that are over, in the order of the log's rows that brought them. ``since_ms``: where the query's span
    begins, UTC; numbers of rows that are late are in :data:`~skerry.storage.history.engine.selects.LATE`."""
    selects = window_selects(plan, end, timing, late=len(moments.late) > 0)
    frame = plan.window
    assert frame is not None
    sessions = moments.sessions
    courses = {session: _Course.of(known, frame, since_ms, timing) for session, known in sessions.items()}
    groups = group_names(plan)
    table = _over_windows(
        ask(selects.panes), frame, ["session", "end", *groups], selects.names, courses
    ).combine_chunks()
    motes = _motes(ask(selects.motes), frame, courses) if selects.motes is not None else None
    of_each, ends = (table.column(name).to_numpy() for name in ("session", "end"))
    keys = [_ranked(table.column(name)) for name in groups]
    residual, found = Residual(plan), []
    order: list[Int64] = []
    for rank, (session, known) in enumerate(sessions.items()):
        brought = _Brought.of(plan, frame, known, moments.behind, end, timing)
        mine = np.arange(len(ends)) if len(sessions) == 1 else np.flatnonzero(of_each == session)
        mine = mine[brought.over(ends[mine])]
        mine = mine[in_order([ends[mine], *(key[mine] for key in keys)])]
        view = WindowView(residual, courses[session].since_ms, -1, _MOST)
        part = _part(
            plan, frame, _Lines(table, mine), brought, motes, selects.names, session, courses[session]
        )
        delivery = part.delivery(view)
        if delivery is not None:
            found.append(delivery)
            stages = np.where(delivery.numbers == end - 1, 1, 0) * (rank + 1)
            order.append(stages)
    if not found:
        schema = pa.schema([(output.name, type_of(output)) for output in plan.outputs])
        return np.empty(0, np.int64), pa.RecordBatch.from_arrays(
            [pa.array([], kind) for kind in schema.types], schema=schema
        )
    if len(found) == 1:
        return found[0].numbers, found[0].columns
    numbers = np.concatenate([delivery.numbers for delivery in found])
    places = np.lexsort([np.concatenate(order), numbers])
    whole = pa.Table.from_batches([delivery.columns for delivery in found]).combine_chunks()
    return numbers[places], whole.take(pa.array(places)).combine_chunks().to_batches()[0]


@dataclass(frozen=True)
class _Lines:
    """Some lines of a table, by their places."""

    table: pa.Table
    places: Int64

    def integers(self, name: str, empty: int) -> Int64:
        """A column, where it is there, without its NULLs; of decimals Python's integers."""
        if name not in self.table.column_names:
            return np.full(len(self.places), empty, np.int64)
        column = self.table.column(name)
        if pa.types.is_decimal(column.type):
            values = column.take(pa.array(self.places)).to_pylist()
            return np.array([empty if value is None else int(value) for value in values], object)
        filled = column.fill_null(empty) if column.null_count else column
        found: Int64 = filled.to_numpy()[self.places].astype(np.int64, copy=False)
        return found

    def known(self, name: str) -> npt.NDArray[np.bool_]:
        """Where a column is not NULL."""
        column = self.table.column(name)
        if not column.null_count:
            return np.ones(len(self.places), np.bool_)
        found: npt.NDArray[np.bool_] = column.is_valid().to_numpy()[self.places]
        return found


def _ranked(column: pa.ChunkedArray) -> Int64:
    """Numbers that are in the order of a column's values, NULL last."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = sorted(pc.unique(column).drop_null().to_pylist())
        ranks = pc.index_in(column, value_set=pa.array(texts, column.type)).cast(pa.int64())
        found: Int64 = ranks.fill_null(len(texts)).to_numpy()
        return found
    whole = column.cast(pa.int64())
    filled = whole.fill_null((pc.max(whole).as_py() or 0) + 1) if whole.null_count else whole
    found = filled.to_numpy()
    return found


@dataclass(frozen=True)
class _Course:
    """The windows of a session on their way through time: where they may begin, where those begin that are landmarks', and the end of the
    last one that may be over."""

    since_ms: int
    first_ms: int
    last_ms: int

    @classmethod
    def of(cls, known: Session, frame: Frame, since_ms: int, timing: Timing) -> _Course:
        behind = round((known.first_utc_ms - since_ms) * timing.speed)
        since = max(0, known.first_ms - behind)
        last = known.latest_ms // frame.slide_ms * frame.slide_ms
        return cls(since, -(-since // frame.slide_ms) * frame.slide_ms, last)


Courses = Mapping[int, _Course]


@dataclass(frozen=True)
class _Brought:
    """Which row brings each window of a session. Time came into ``slides``, ascending, with ``rows``, which were sampled at ``times``, in
    UTC at ``utc``."""

    frame: Frame
    slides: Int64
    rows: Int64
    times: Int64
    utc: Int64
    behind: int
    last: tuple[int, int, int]
    period_ms: int
    speed: float

    @classmethod
    def of(
        cls, plan: QueryPlan, frame: Frame, known: Session, behind: int, end: int, timing: Timing
    ) -> _Brought:
        last = end - 1, known.latest_ms, known.latest_utc_ms
        return cls(frame, *known.of_steps(), behind, last, plan.period_ms, timing.speed)

    def over(self, ends: Int64) -> npt.NDArray[np.bool_]:
        """Whether windows with these ends are over: by a row that far behind them, or by the last row."""
        latest = int(self.slides[-1]) - self.behind
        by_row: npt.NDArray[np.bool_] = ends < (latest + 1) * self.frame.slide_ms
        return by_row | (ends + self.period_ms <= self.last[1])

    def at(self, ends: Int64) -> tuple[Int64, Int64]:
        """Of windows with these ends, ascending: by which row they come, and UTC of the ends."""
        begins = np.flatnonzero(np.diff(ends, prepend=ends[:1] - 1))
        times = np.diff(np.append(begins, len(ends)))
        ends = ends[begins]
        places = np.searchsorted(self.slides, ends // self.frame.slide_ms + self.behind)
        there = places < len(self.slides)
        places = np.minimum(places, len(self.slides) - 1)
        number, latest, utc = self.last
        sampled = np.where(there, self.times[places], latest)
        utc_ms = np.where(there, self.utc[places], utc)
        ago = np.rint((sampled - ends) / self.speed).astype(np.int64)
        numbers = np.where(there, self.rows[places], number)
        return np.repeat(numbers, times), np.repeat(utc_ms - ago, times)


def _over_windows(
    panes: pa.Table,
    frame: Frame,
    keys: Sequence[str],
    names: Mapping[tuple[Expr, str], str],
    courses: Courses,
) -> pa.Table:
    """Rows of windows of all sessions: for each window and what is aggregated in it ``w0_rows``, ``w0_a0`` …"""
    folds = {ROWS: "sum"} | {name: _FOLDS[function] for (_, function), name in names.items()}
    tables = []
    for i, window in enumerate(frame.windows):
        if not window.length_ms:
            spread = _since_landmarks(panes, window, frame, keys, folds, courses)
        else:
            spread = _spread(panes, window, frame)
            if window.length_ms > frame.width_ms or window.slide_ms > frame.slide_ms:
                spread = _grouped(spread, keys, folds)
        tables.append(
            spread.select([*keys, *folds]).rename_columns([*keys, *(f"w{i}_{name}" for name in folds)])
        )
    if len(tables) == 1:
        return tables[0]
    whole = pa.concat_tables(tables, promote_options="default")
    return _grouped(whole, keys, {name: "max" for name in whole.column_names if name not in keys})


def _spread(panes: pa.Table, window: Window, frame: Frame) -> pa.Table:
    """Each pane in all the rows of windows that hold it, by ``end``."""
    begins = panes.column("pane").to_numpy() * frame.width_ms
    first = _latest(window, begins) + window.slide_ms
    # A window is in its own row and in those that follow until its next one.
    last = _latest(window, begins + window.length_ms) + window.slide_ms - frame.slide_ms
    return _repeated(panes, first, last, frame.slide_ms)


def _since_landmarks(
    panes: pa.Table,
    window: Window,
    frame: Frame,
    keys: Sequence[str],
    folds: Mapping[str, str],
    courses: Courses,
) -> pa.Table:
    """What there has been of each group since the windows began, at each end of one."""
    begins = panes.column("pane").to_numpy() * frame.width_ms
    first = _of_sessions(panes, {session: course.first_ms for session, course in courses.items()})
    panes = panes.append_column("end", pa.array(_latest(window, begins) + window.slide_ms))
    table = _grouped(panes.filter(pa.array(begins >= first)), keys, folds)
    groups = [key for key in keys if key != "end"]
    table = table.sort_by([(name, "ascending") for name in (*groups, "end")])
    new = np.ones(table.num_rows, np.bool_)
    new[1:] = ~np.logical_and.reduce([_as_before(table.column(name)) for name in groups])
    starts = np.flatnonzero(new)
    for name, fold in folds.items():
        place = table.column_names.index(name)
        table = table.set_column(place, name, _accumulated(table.column(name), starts, fold))
    ends = table.column("end").to_numpy()
    last = _of_sessions(table, {session: course.last_ms for session, course in courses.items()})
    last[:-1] = np.where(new[1:], last[:-1], ends[1:] - frame.slide_ms)
    return _repeated(table.drop_columns("end"), ends, np.maximum(last, ends - frame.slide_ms), frame.slide_ms)


def _of_sessions(table: pa.Table, values: Mapping[int, int]) -> Int64:
    sessions = table.column("session").to_numpy()
    known = np.array(sorted(values), np.int64)
    of_known = np.array([values[session] for session in known.tolist()], np.int64)
    found: Int64 = of_known[np.searchsorted(known, sessions)]
    return found


def _as_before(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Whether a value is that of the row before, NULL like NULL."""
    codes = pc.fill_null(column.combine_chunks().dictionary_encode().indices, -1).to_numpy()
    same: npt.NDArray[np.bool_] = codes[1:] == codes[:-1]
    return same


def _accumulated(column: pa.ChunkedArray, starts: Int64, fold: str) -> pa.Array:
    """What there has been of a column up to each row, begun anew at some; NULL where there was nothing."""
    make, empty = _ACCUMULATED[fold]
    decimal = pa.types.is_decimal(column.type)
    values = (
        np.array([empty if value is None else int(value) for value in column.to_pylist()], object)
        if decimal
        else column.fill_null(empty).to_numpy()
    )
    known = column.is_valid().to_numpy()
    parts = [
        (make.accumulate(part), np.logical_or.accumulate(there))
        for part, there in zip(np.split(values, starts[1:]), np.split(known, starts[1:]), strict=True)
        if len(part)
    ]
    if not parts:
        return column.combine_chunks()
    found, there = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    if not decimal:
        return pa.array(found, column.type, mask=~there)
    return pa.array([Decimal(v) if k else None for v, k in zip(found, there, strict=True)], column.type)


def _repeated(panes: pa.Table, first: Int64, last: Int64, slide_ms: int) -> pa.Table:
    """Panes once for each end from the first to the last."""
    count = (last - first) // slide_ms + 1
    if (count == 1).all():
        return panes.append_column("end", pa.array(first))
    copies = np.repeat(np.arange(len(count)), count)
    place = np.arange(len(copies)) - np.repeat(np.cumsum(count) - count, count)
    return panes.take(pa.array(copies)).append_column("end", pa.array(first[copies] + place * slide_ms))


def _latest(window: Window, times: Int64) -> Int64:
    return times // window.slide_ms * window.slide_ms


def _grouped(table: pa.Table, keys: Sequence[str], folds: Mapping[str, str]) -> pa.Table:
    found = table.group_by(list(keys)).aggregate(list(folds.items()))
    named = {f"{name}_{function}": name for name, function in folds.items()}
    return found.rename_columns([named.get(name, name) for name in found.column_names])


def _motes(panes: pa.Table, frame: Frame, courses: Courses) -> dict[tuple[int, int], int]:
    """How many motes there are from where the first of a row's windows begins to its end, by session and end."""
    begins = panes.column("pane").to_numpy() * frame.width_ms
    first = begins // frame.slide_ms * frame.slide_ms + frame.slide_ms
    lasts = [
        _latest(w, begins + w.length_ms) + w.slide_ms - frame.slide_ms for w in frame.windows if w.length_ms
    ]
    if not frame.is_bounded:
        counts = begins >= _of_sessions(panes, {n: course.first_ms for n, course in courses.items()})
        lasts.append(
            np.where(counts, _of_sessions(panes, {n: course.last_ms for n, course in courses.items()}), 0)
        )
    last = np.maximum(np.max(lasts, axis=0), first - frame.slide_ms)
    whole = _repeated(panes, first, last, frame.slide_ms).group_by(["session", "end", MOTE]).aggregate([])
    counts = whole.group_by(["session", "end"]).aggregate([(MOTE, "count")]).to_pylist()
    return {(row["session"], row["end"]): row[f"{MOTE}_count"] for row in counts}


def _part(
    plan: QueryPlan,
    frame: Frame,
    lines: _Lines,
    brought: _Brought,
    motes: Mapping[tuple[int, int], int] | None,
    names: Mapping[tuple[Expr, str], str],
    session: int,
    course: _Course,
) -> WindowPart:
    ends = lines.integers("end", 0)
    begun = [_latest(window, ends) > course.first_ms for window in frame.windows if not window.length_ms]
    if begun:
        there = np.logical_and.reduce(begun)
        lines, ends = _Lines(lines.table, lines.places[there]), ends[there]
    states: dict[tuple[Window, Expr | None], Int64] = {}
    for i, window in enumerate(frame.windows):
        states[window, None] = lines.integers(f"w{i}_{ROWS}", 0)[:, None]
        for argument in dict.fromkeys(argument for argument, _ in names):
            cells = [
                lines.integers(f"w{i}_{names.get((argument, function), '')}", empty)
                for function, empty in (("count", 0), ("sum", 0), ("min", _MOST), ("max", _LEAST))
            ]
            if cells_of(argument) > len(cells):
                totals = cells[1].tolist()
                cells[1] = np.array([total & _LOW for total in totals], np.int64)
                cells.append(np.array([total >> 32 for total in totals], np.int64))
            if (argument, "count") not in names:
                # Whether there is any value the least and the greatest say, too.
                known = [lines.known(f"w{i}_{name}") for (of, _), name in names.items() if of == argument]
                cells[0] = np.max(known, axis=0)
            # A line for each row, each cell's values side by side.
            states[window, argument] = np.array([cell.astype(np.int64, copy=False) for cell in cells]).T
    nothing = np.zeros(len(ends), np.int64)
    counts = nothing
    if motes is not None:
        counts = np.array([motes.get((session, end), 0) for end in ends.tolist()], np.int64)
    numbers, utc_ms = brought.at(ends)
    given = _Given(numbers, ends, nothing, counts, states)
    groups: dict[Expr, Vector] = {}
    texts: dict[Expr, list[str]] = {}
    for name, expr in zip(group_names(plan), plan.groups, strict=True):
        if expr.kind is not Kind.TEXT:
            groups[expr] = lines.integers(name, 0), lines.known(name)
            continue
        # Ranks stand for texts, so that they can be ordered by.
        column = lines.table.column(name).take(pa.array(lines.places)).combine_chunks()
        texts[expr] = sorted(column.unique().drop_null().to_pylist())
        ranks = pc.index_in(column, value_set=pa.array(texts[expr], pa.string())).cast(pa.int64())
        groups[expr] = _vector(ranks)
    rows = WindowRows(given, groups, texts, utc_ms)
    spans = [
        _latest(window, ends) - window.length_ms if window.length_ms else np.full(len(ends), course.first_ms)
        for window in frame.windows
    ]
    return WindowPart(given, rows, np.min(spans, axis=0))


def _vector(column: pa.Array) -> Vector:
    known = column.is_valid().to_numpy(zero_copy_only=False)
    return column.fill_null(0).to_numpy(zero_copy_only=False), known
