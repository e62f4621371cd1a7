"""By which clock rows were dated, and what that was wrong by.

Rows bear UTC as this machine's clock had it when they came, and keep the network time of their sample beside it. A clock may be wrong
for a while: in 1970 until the network sets it, or years ahead. When it is set, whatever came before in the same run of the machine is
known to have been dated wrongly by as much, and what came while the machine ran before if a root's time, which went on meanwhile, tells
so. The log stays as it was written, and whoever was given a row keeps its time; the files of the past are dated again
(:mod:`skerry.storage.history.redating`).
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from skerry.storage.log import machine_clock
from skerry.storage.log.record import Int64, Records
from skerry.storage.replacement import Replacement
from skerry.storage.state import DataError

_log = logging.getLogger(__name__)

#: Rows ``first`` .. ``end`` - 1 of the log, and what has to be added to their times, in us.
Shift = tuple[int, int, int]

FILE = "clock.json"
#: A clock that is set by less, in s, dates as before: rows are dated to the second in any case while one is slewed.
SET_S = 1.0
#: A root's crystal and its line may be off by so much of the time that has gone, and by so many s.
_DRIFT, _LINE_S = 200e-6, 5.0
#: So long, in s that the machine runs, a clock decides over no row that was set, or that a start of the machine has brought out of step.
DOUBT_S = 86_400.0
#: A clock that a start of the machine brings is in doubt if it is behind the last row, or so far ahead of it, in s.
_AHEAD_S = 86_400.0
#: No clock that shows an earlier UTC, in s, is right: 2020-01-01.
_EARLIEST_S = 1_577_836_800.0
#: How much of the doubt may be gone before that is noted, in s.
_NOTED_S = 600.0
#: A row is appended so many s after it has come, at most, if nothing holds it back.
_SOON_S = 1.0


@dataclass(frozen=True)
class Span:
    """Rows of the log from number ``first`` on, up to the next span's, were dated by a clock that had the machine started (its run is
    called ``boot``) at ``started_us``, UTC."""

    first: int
    boot: str
    started_us: int


@dataclass(frozen=True)
class Run:
    """A run of the machine: when it was started, UTC in us, by its clock as it was last (``shown_us``) and at first (``first_us``), and by
    one that is right as far as is known (``right_us``); ``began_s``, ``last_s``: when rows of it could first come and when the last came,
    in s since then."""

    boot: str
    shown_us: int
    right_us: int
    began_s: float
    first_us: int
    last_s: float | None = None


@dataclass(frozen=True)
class MachineClock:
    """``boot``, ``since_start`` and ``started`` of :mod:`skerry.storage.log.machine_clock`."""

    boot: Callable[[], str] = machine_clock.boot
    since_start: Callable[[], float] = machine_clock.since_start
    started: Callable[[], float] = machine_clock.started


class Dating:
    """One data directory's; from any thread. ``last_us``: when the log's last row came, by the clock of then; None: it has none.

    Raises DataError."""

    def __init__(self, data: Path, last_us: int | None = None, clock: MachineClock | None = None) -> None:
        self._path, self._clock, self._lock = data / FILE, clock or MachineClock(), threading.Lock()
        self._boot = self._clock.boot()
        self._spans: list[Span] = []
        #: Runs of the machine, the present one last.
        self._runs: list[Run] = []
        #: How long the clock remains in doubt, in s of the machine's, and when that was so.
        self._doubt, self._doubted = 0.0, self._clock.since_start()
        #: What it was set by, in s, and when by the clock of afterwards, newest last.
        self._sets: list[tuple[float, float]] = []
        #: When the clock of this run was set, in s since the machine's start, and when it has had the machine started since, UTC in us.
        self._changes: list[tuple[float, int]] = []
        self._load()
        if not self._runs or self._runs[-1].boot != self._boot:
            self._begin(last_us)
        else:
            self._changes = [(0.0, self._runs[-1].shown_us)]
            self._look()

    def _begin(self, last_us: int | None) -> None:
        """The machine's run is new to this directory."""
        began_s, now_us = self._clock.since_start(), round(self._clock.started() * 1e6)
        if self._runs and self._spans and last_us is not None:
            last_s = (last_us - self._spans[-1].started_us) / 1e6
            self._runs[-1] = replace(self._runs[-1], last_s=last_s)
        self._runs.append(Run(self._boot, now_us, now_us, began_s, now_us))
        self._changes = [(0.0, now_us)]
        ahead = self._shown() - (last_us or 0) / 1e6
        if last_us is not None and not 0 <= ahead < _AHEAD_S:
            _log.warning(
                "clock: the last row came %s: the clock decides over no row for a day",
                f"{ahead / 86400:.1f} days ago" if ahead > 0 else f"{-ahead:.0f} s after what it shows now",
            )
            self._doubt_it()
        self._reconcile()
        self._save()

    # ---- the clock is set ----

    def _look(self) -> None:
        """Notice that the clock was set."""
        now_us, run = round(self._clock.started() * 1e6), self._runs[-1]
        by = (now_us - run.shown_us) / 1e6
        if abs(by) < SET_S:
            return
        _log.warning("clock: this machine's was set by %+.1f s: rows from before are dated by it", by)
        # What it showed before is nearer to the truth than what no right clock shows.
        right_us = now_us if self._shown() >= _EARLIEST_S else run.right_us
        self._runs[-1] = replace(run, shown_us=now_us, right_us=right_us)
        self._changes.append((self._clock.since_start(), now_us))
        self._reconcile()
        self._noticed(by)

    def went_on(self, gap_s: float, gone_s: float) -> None:
        """A root's session has gone on over a start of the machine: by its time, UTC is ``gap_s`` further than the clock of before would
        have it after the ``gone_s`` since. Rows of the run before are then dated as those of this one."""
        with self._lock:
            self._look()
            if len(self._runs) < 2 or not self._spans or self._spans[-1].boot == self._boot:
                return
            old, new = self._runs[-2:]
            gap_us = round(gap_s * 1e6) if abs(gap_s) > _LINE_S + _DRIFT * gone_s else 0
            # As if this run's clock had dated them: both showed what they do when the root told its time.
            earlier_us = new.shown_us - old.shown_us - gap_us
            self._spans = [
                replace(span, boot=self._boot, started_us=span.started_us + earlier_us)
                if span.boot == old.boot
                else span
                for span in self._spans
            ]
            began_s = old.began_s - earlier_us / 1e6
            self._runs[-2:] = [replace(new, began_s=began_s)]
            if gap_us:
                _log.warning("clock: it was wrong before the machine's start, by %+.1f s", gap_s)
                self._reconcile()
                self._noticed(gap_s)
            else:
                self._save()

    def _reconcile(self) -> None:
        """No row has come before those of an earlier run: a clock that has it so was wrong then as it was later, until it was set. One that
        showed what no right clock shows is taken to have stood still while the machine was off."""
        for i in reversed(range(len(self._runs) - 1)):
            run, later = self._runs[i], self._runs[i + 1]
            if run.last_s is None:
                continue
            begun_us = later.right_us + later.began_s * 1e6
            ended_us = run.right_us + run.last_s * 1e6
            if ended_us > begun_us or (ended_us < _EARLIEST_S * 1e6 <= begun_us):
                by_us = later.right_us - later.first_us
                same_us = run.shown_us + by_us
                if not _EARLIEST_S * 1e6 <= same_us + run.last_s * 1e6 <= begun_us:
                    same_us = round(begun_us - run.last_s * 1e6)
                self._runs[i] = replace(run, right_us=same_us)

    def _noticed(self, by: float) -> None:
        self._doubt_it()
        self._sets = [*self._sets[-9:], (by, self._clock.started() + self._clock.since_start())]
        self._save()

    def _doubt_it(self) -> None:
        self._doubt, self._doubted = DOUBT_S, self._clock.since_start()

    # ---- rows ----

    def note(self, numbers: Int64, records: Records) -> None:
        """Records are about to be appended with these numbers. OSError: then they must not be."""
        with self._lock:
            self._look()
            if not len(numbers):
                return
            order = np.argsort(numbers)
            clocks = self._clocks(records["arrival"][order])
            changed = [0, *(np.flatnonzero(np.diff(clocks)) + 1).tolist()]
            found = [Span(int(numbers[order[i]]), self._boot, int(clocks[i])) for i in changed]
            kept = [span for span in self._spans if span.first < found[0].first]
            if kept and (kept[-1].boot, kept[-1].started_us) == (found[0].boot, found[0].started_us):
                found.pop(0)
            if found or len(kept) < len(self._spans):
                self._spans = kept + found
                self._save()

    def _clocks(self, arrivals: Int64) -> Int64:
        """By which of this run's clocks records were dated that bear these times."""
        now = self._clock.since_start()
        clocks = np.full(len(arrivals), self._changes[-1][1], np.int64)
        if len(self._changes) > 1:
            ends = [since for since, _ in self._changes[1:]] + [now]
            known = np.zeros(len(arrivals), np.bool_)
            for (since, started_us), end in reversed(list(zip(self._changes, ends, strict=True))):
                at = (arrivals - started_us) / 1e6
                fits = ~known & (at >= since - _SOON_S) & (at <= end + _SOON_S)
                clocks[fits] = started_us
                known |= fits
        return clocks

    def shifts(self, row: int) -> list[Shift]:
        """(first row, end, us) of all rows before ``row``: what has to be added to their times; the ends ascend."""
        with self._lock:
            self._look()
            return _shifts(self._spans, self._runs, row)

    def _shown(self) -> float:
        return self._clock.started() + self._clock.since_start()

    def dated(self, start: int, records: Records) -> Records:
        """Records of the log from number ``start`` on, dated by the clock that is right as far as is known."""
        return shifted(start, records, self.shifts(start + len(records)))

    # ---- what goes by the clock ----

    def doubtful(self) -> bool:
        """Whether the clock may decide over no row now, how old it is: it was set lately, or is out of step with what came before."""
        with self._lock:
            self._look()
            left = self._left()
            # A start of the machine takes nothing of it away but what was not noted.
            if self._doubt and (self._doubt - left >= _NOTED_S or not left):
                self._doubt, self._doubted = left, self._clock.since_start()
                self._save()
            return left > 0 or self._shown() < _EARLIEST_S

    def _left(self) -> float:
        return max(0.0, self._doubt - (self._clock.since_start() - self._doubted))

    def trouble(self) -> str | None:
        """Why the clock is doubted, for people; None: it is not."""
        if not self.doubtful():
            return None
        with self._lock:
            until = f"no row goes for its age for {max(1, round(self._left() / 3600))} h more"
            if self._shown() < _EARLIEST_S:
                return (
                    "this machine's clock shows a time before 2020: rows are dated again once it is set, and none goes for its age "
                    "until then"
                )
            if self._sets:
                by, at = self._sets[-1]
                when = datetime.fromtimestamp(at, UTC).isoformat(" ", "seconds")
                return f"this machine's clock was set by {by:+.0f} s at {when}: rows from before are dated again, and {until}"
            return f"this machine's clock is behind the last row, or more than a day ahead of it: if it is wrong, set it; {until}"

    def status(self) -> dict[str, object]:
        """For people: ``set``, what the clock was set by lately, in s, and when, UTC in s; ``doubtful_s``: how long that is in doubt."""
        with self._lock:
            return {
                "set": [{"by_s": by, "at": at} for by, at in self._sets],
                "doubtful_s": round(self._left()),
            }

    # ---- on disk ----

    def _load(self) -> None:
        data = _read(self._path)
        if data is None:
            return
        with _understood(self._path):
            self._spans, self._runs = _spans_and_runs(data)
            self._doubt = float(data["doubt_s"])
            self._sets = [(by, at) for by, at in data["sets"]]

    def _save(self) -> None:
        data = {
            "spans": [asdict(span) for span in self._spans],
            "runs": [asdict(run) for run in self._runs],
            "doubt_s": self._doubt,
            "sets": self._sets,
        }
        with Replacement(self._path) as file:
            file.write(json.dumps(data, indent=1).encode())


def noted_shifts(data: Path, row: int) -> list[Shift]:
    """:meth:`Dating.shifts` as the gateway of a data directory has noted them, for other processes. Raises DataError."""
    found = _read(data / FILE)
    if found is None:
        return []
    with _understood(data / FILE):
        return _shifts(*_spans_and_runs(found), row)


def shifted(start: int, records: Records, shifts: Sequence[Shift]) -> Records:
    """Records of the log from number ``start`` on, with these added to their times."""
    found = records
    for first, end, shift in shifts:
        if shift and end > start:
            if found is records:
                found = records.copy()
            chosen = slice(max(first - start, 0), end - start)
            for name in ("sample", "arrival"):
                found[name][chosen] += shift
    return found


def _shifts(spans: Sequence[Span], runs: Sequence[Run], row: int) -> list[Shift]:
    ends = [span.first for span in spans[1:]] + [row]
    return [
        (span.first, min(end, row), _shift(span, runs))
        for span, end in zip(spans, ends, strict=False)
        if span.first < row
    ]


def _shift(span: Span, runs: Sequence[Run]) -> int:
    right_us = next((run.right_us for run in runs if run.boot == span.boot), span.started_us)
    shift = right_us - span.started_us
    return shift if abs(shift) >= SET_S * 1e6 else 0


def _read(path: Path) -> dict[str, Any] | None:
    """What was noted; None: nothing yet."""
    try:
        with _understood(path):
            found: dict[str, Any] = json.loads(path.read_text())
            return found
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None


def _spans_and_runs(data: Mapping[str, Any]) -> tuple[list[Span], list[Run]]:
    return [Span(**span) for span in data["spans"]], [Run(**run) for run in data["runs"]]


@contextmanager
def _understood(path: Path) -> Iterator[None]:
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"{path} is not as the gateway wrote it ({type(error).__name__}: {error}): put it back from a copy, or take it away: "
            "rows then stay dated as they are"
        ) from None
