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
from skerry.planner.model.frames import LATENESS_MS, Frame, Window
from skerry.planner.model.plans import QueryPlan
from skerry.storage.history.engine.expressions import ROW
from skerry.storage.history.engine.finishing import Numbered
from skerry.storage.history.engine.selects import (
    BUCKET_ROWS,
    MOTE,
    ROWS,
    Range,
    Timing,
    group_names,
    moments_select,
    times_select,
    window_selects,
)
from skerry.storage.history.layout import Int64
from skerry.windows.shared_windows import WindowPart, WindowRows, WindowView


class Ask(Protocol):
    """All rows of a question about so many, None: about all."""

    def __call__(self, select: exp.Select, rows: int | None = None) -> pa.Table: ...


_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_FOLDS = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
#: How folds go on, and what they are of nothing.
_ACCUMULATED = {"sum": (np.add, 0), "min": (np.minimum, _MOST), "max": (np.maximum, _LEAST)}
_LOW = 0xFFFFFFFF
#: Buckets whose rows are looked at together.
_RUN_BUCKETS = 1024


class Moments:
    """When the rows of each session were sampled and came."""

    def __init__(self, plan: QueryPlan, timing: Timing, ask: Ask) -> None:
        frame = plan.window
        assert frame is not None
        self._plan, self._timing, self._ask = plan, timing, ask
        shift_ms = -LATENESS_MS % frame.slide_ms
        #: How many slides behind its end a window's last row may be sampled.
        self.behind = (LATENESS_MS + shift_ms) // frame.slide_ms
        table = ask(moments_select(plan, timing, shift_ms)).sort_by("first")
        self._columns: dict[str, Int64] = {name: table.column(name).to_numpy() for name in table.column_names}

    def sessions(self) -> dict[int, dict[str, Int64]]:
        """What is known of each session, in the order in which they began, its rows ascending by ``first``."""
        sessions, first = np.unique(self._columns["session"], return_index=True)
        found = {}
        for session in sessions[np.argsort(first)].tolist():
            mine = self._columns["session"] == session
            found[session] = {name: values[mine] for name, values in self._columns.items()}
        return found

    def late(self) -> Int64:
        """Numbers of rows that were sampled so long before another that had come that they are in no window."""
        found = [np.empty(0, np.int64)]
        for session, columns in self.sessions().items():
            buckets, begins = np.unique(columns["bucket"], return_index=True)
            if not len(buckets):
                continue
            least = np.minimum.reduceat(columns["least"], begins)
            time = np.maximum.accumulate(np.maximum.reduceat(columns["latest"], begins))
            doubtful = np.flatnonzero(least < time - LATENESS_MS)
            apart = np.flatnonzero(np.diff(doubtful, prepend=-2) > 1)
            for run in np.split(doubtful, apart[1:]) if len(doubtful) else []:
                for part in np.array_split(run, -(-len(run) // _RUN_BUCKETS)):
                    before = int(time[part[0] - 1]) if part[0] else int(columns["first_ms"][0])
                    found.append(self._late_in(session, buckets[part], before))
        return np.concatenate(found)

    def _late_in(self, session: int, buckets: Int64, before: int) -> Int64:
        part = Range(int(buckets[0]) * BUCKET_ROWS, (int(buckets[-1]) + 1) * BUCKET_ROWS)
        rows = self._ask(times_select(self._plan, self._timing, part), part.end - part.start)
        rows = rows.filter(pc.equal(rows.column("session"), session)).sort_by(ROW)
        times = rows.column("time").to_numpy()
        late = times < np.maximum(np.maximum.accumulate(times), before) - LATENESS_MS
        numbers: Int64 = rows.column(ROW).to_numpy()[late]
        return numbers


@dataclass(frozen=True)
class _Given:
    """Rows of windows, as :class:`skerry.windows.results.Result` has them."""

    numbers: Int64
    ends: Int64
    revisions: Int64
    motes: Int64
    states: Mapping[tuple[Window, Expr | None], Int64]


def windows(
    plan: QueryPlan, end: int, timing: Timing, since_ms: int, ask: Ask, moments: Moments, *, late: bool
) -> Numbered:
    """The rows of a plan's windows that are over, in the order of the log's rows that brought them. ``since_ms``: where the query's span
    begins, UTC; ``late``: whether there are rows in :data:`~skerry.storage.history.engine.selects.LATE`."""
    selects = window_selects(plan, end, timing, late=late)
    frame = plan.window
    assert frame is not None
    sessions = moments.sessions()
    courses = {session: _Course.of(known, frame, since_ms, timing) for session, known in sessions.items()}
    keys = ["session", "end", *group_names(plan)]
    table = _over_windows(ask(selects.panes), frame, keys, selects.names, courses)
    motes = _motes(ask(selects.motes), frame, courses) if selects.motes is not None else None
    residual, found = Residual(plan), []
    order: list[Int64] = []
    for rank, (session, known) in enumerate(sessions.items()):
        mine = table.filter(pc.equal(table.column("session"), session))
        brought = _Brought.of(plan, frame, known, moments.behind, end, timing)
        ends = mine.column("end").to_numpy()
        number, stage, utc_ms = brought.at(ends)
        mine = mine.append_column("number", pa.array(number)).append_column("stage", pa.array(stage))
        mine = mine.append_column("utc_ms", pa.array(utc_ms)).filter(pa.array(stage < _NOT_OVER))
        mine = mine.sort_by([("end", "ascending"), *((name, "ascending") for name in group_names(plan))])
        view = WindowView(residual, courses[session].since_ms, -1, _MOST)
        part = _part(plan, frame, mine, motes, selects.names, session, courses[session])
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
    numbers = np.concatenate([delivery.numbers for delivery in found])
    places = np.lexsort([np.concatenate(order), numbers])
    whole = pa.Table.from_batches([delivery.columns for delivery in found]).combine_chunks()
    if len(found) > 1:
        whole = whole.take(pa.array(places)).combine_chunks()
    return numbers[places], whole.to_batches()[0]


@dataclass(frozen=True)
class _Course:
    """The windows of a session on their way through time: where they may begin, where those begin that are landmarks', and the end of the
    last one that may be over."""

    since_ms: int
    first_ms: int
    last_ms: int

    @classmethod
    def of(cls, known: Mapping[str, Int64], frame: Frame, since_ms: int, timing: Timing) -> _Course:
        behind = round((int(known["first_utc"][0]) - since_ms) * timing.speed)
        since = max(0, int(known["first_ms"][0]) - behind)
        last = int(known["latest"].max()) // frame.slide_ms * frame.slide_ms
        return cls(since, -(-since // frame.slide_ms) * frame.slide_ms, last)


Courses = Mapping[int, _Course]


#: By which a window comes: a row behind it, the last row, by which it is over; or that it is not over.
_BY_ROW, _BY_LAST, _NOT_OVER = 0, 1, 2


@dataclass(frozen=True)
class _Brought:
    """Which row brings each window of a session. By ``slides``, ascending: the first row at or behind each, when that was sampled, and
    UTC of it."""

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
        cls,
        plan: QueryPlan,
        frame: Frame,
        known: Mapping[str, Int64],
        behind: int,
        end: int,
        timing: Timing,
    ) -> _Brought:
        # The first of each slide: they are in the order of their first rows.
        slides, places = np.unique(known["slide"], return_index=True)
        rows, times, utc = (known[name][places] for name in ("first", "first_ms", "first_utc"))
        # Of all that come at a slide or behind it the first one.
        least, order = np.minimum.accumulate(rows[::-1])[::-1], np.argsort(rows)
        best = order[np.searchsorted(rows, least, sorter=order)]
        latest = int(np.argmax(known["latest"]))
        last = end - 1, int(known["latest"][latest]), int(known["latest_utc"][latest])
        return cls(
            frame, slides, rows[best], times[best], utc[best], behind, last, plan.period_ms, timing.speed
        )

    def at(self, ends: Int64) -> tuple[Int64, Int64, Int64]:
        """Of windows with these ends: by which row they come, by what, and UTC of the ends."""
        places = np.searchsorted(self.slides, ends // self.frame.slide_ms + self.behind)
        there = places < len(self.slides)
        places = np.minimum(places, len(self.slides) - 1)
        number, latest, utc = self.last
        over = ends + self.period_ms <= latest
        stage = np.where(there, _BY_ROW, np.where(over, _BY_LAST, _NOT_OVER))
        times = np.where(there, self.times[places], latest)
        utc_ms = np.where(there, self.utc[places], utc)
        ago = np.rint((times - ends) / self.speed).astype(np.int64)
        return np.where(there, self.rows[places], number), stage, utc_ms - ago


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
    table: pa.Table,
    motes: Mapping[tuple[int, int], int] | None,
    names: Mapping[tuple[Expr, str], str],
    session: int,
    course: _Course,
) -> WindowPart:
    ends = table.column("end").to_numpy()
    begun = [_latest(window, ends) > course.first_ms for window in frame.windows if not window.length_ms]
    if begun:
        table = table.filter(pa.array(np.logical_and.reduce(begun)))
        ends = table.column("end").to_numpy()
    states: dict[tuple[Window, Expr | None], Int64] = {}
    for i, window in enumerate(frame.windows):
        states[window, None] = _filled(table, f"w{i}_{ROWS}", 0)[:, None]
        for argument in dict.fromkeys(argument for argument, _ in names):
            cells = [
                _filled(table, f"w{i}_{names.get((argument, function), '')}", empty)
                for function, empty in (("count", 0), ("sum", 0), ("min", _MOST), ("max", _LEAST))
            ]
            if cells_of(argument) > len(cells):
                totals = cells[1].tolist()
                cells[1] = np.array([total & _LOW for total in totals], np.int64)
                cells.append(np.array([total >> 32 for total in totals], np.int64))
            if (argument, "count") not in names:
                # Whether there is any value the least and the greatest say, too.
                known = [_known(table, f"w{i}_{name}") for (of, _), name in names.items() if of == argument]
                cells[0] = np.max(known, axis=0)
            states[window, argument] = np.stack([cell.astype(np.int64, copy=False) for cell in cells], axis=1)
    nothing = np.zeros(len(ends), np.int64)
    counts = nothing
    if motes is not None:
        counts = np.array([motes.get((session, end), 0) for end in ends.tolist()], np.int64)
    given = _Given(table.column("number").to_numpy(), ends, nothing, counts, states)
    groups: dict[Expr, Vector] = {}
    texts: dict[Expr, list[str]] = {}
    for name, expr in zip(group_names(plan), plan.groups, strict=True):
        column = table.column(name).combine_chunks()
        if expr.kind is Kind.TEXT:
            # Ranks stand for texts, so that they can be ordered by.
            texts[expr] = sorted(column.unique().drop_null().to_pylist())
            column = pc.index_in(column, value_set=pa.array(texts[expr], pa.string())).cast(pa.int64())
        groups[expr] = _vector(column)
    rows = WindowRows(given, groups, texts, table.column("utc_ms").to_numpy())
    spans = [
        _latest(window, ends) - window.length_ms if window.length_ms else np.full(len(ends), course.first_ms)
        for window in frame.windows
    ]
    begins = np.min(spans, axis=0)
    return WindowPart(given, rows, begins)


def _known(table: pa.Table, name: str) -> Int64:
    known: Int64 = table.column(name).is_valid().to_numpy().astype(np.int64)
    return known


def _filled(table: pa.Table, name: str, empty: int) -> Int64:
    if name not in table.column_names:
        return np.full(table.num_rows, empty, np.int64)
    column = table.column(name)
    if pa.types.is_decimal(column.type):
        return np.array([empty if value is None else int(value) for value in column.to_pylist()], object)
    return np.asarray(column.fill_null(empty).to_numpy(), np.int64)


def _vector(column: pa.Array) -> Vector:
    known = column.is_valid().to_numpy(zero_copy_only=False)
    return column.fill_null(0).to_numpy(zero_copy_only=False), known
