"""What the gateway and the process of its engine say to each other, over a socket that only these two have."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.planner.model.plans import QueryPlan
from skerry.storage.history.samples_apart import Sessions
from skerry.storage.log.dating import Shift
from skerry.streams.stream import Stream


@dataclass(frozen=True)
class Timing:
    """By which time epochs go. ``by_utc``: by that which all networks have in common, else by each session's own; ``speed``: s of network
    time in one of UTC's."""

    by_utc: bool = False
    speed: float = 1.0


@dataclass(frozen=True)
class Limits:
    """What the engine may take: threads, bytes of memory and of temporary files, and how long one answer may take, in s.
    ``cluster_rows``: what is asked of so many rows or more is for the cluster; None: there is none."""

    threads: int
    memory: int
    disk: int
    seconds: float
    cluster_rows: int | None = None


@dataclass(frozen=True)
class Begin:
    """The gateway's first word. ``directory``: for temporary files."""

    directory: str
    limits: Limits


@dataclass(frozen=True)
class SourceFile:
    """A file of the past with so many rows. ``whole``: all of them are in question, so that none need be looked at to know that;
    ``apart``, ``sessions``: see :mod:`skerry.storage.history.samples_apart`; ``first``, ``last``: rows' numbers, where they matter."""

    path: str
    rows: int
    whole: bool
    apart: int
    sessions: Sessions
    first: int = 0
    last: int = 0


@dataclass(frozen=True)
class Sources:
    """Where the rows are of which a question is, as it was when that was asked. ``files``: of rows before number ``compacted``; the log,
    below the directory ``log``, has those from there on. ``first`` .. ``end`` - 1: numbers of the rows that there may be; ``since_us``:
    none was sampled before, UTC. ``streams``, ``shifts``: what the log's rows mean, and what is added to their times."""

    files: tuple[SourceFile, ...]
    compacted: int
    log: str
    first: int
    end: int
    since_us: int
    streams: tuple[Stream, ...]
    shifts: tuple[Shift, ...]


@dataclass(frozen=True)
class Reading:
    """Rows ``first`` .. ``until`` - 1 of the log meet a table as a file has it: see :mod:`skerry.tables.table_file`."""

    first: int
    until: int
    path: str


@dataclass(frozen=True)
class TableRows:
    """A table that rows are joined with."""

    readings: tuple[Reading, ...]


@dataclass(frozen=True)
class EarlierRows:
    """What the stream was before each of its rows, as a table that they are joined with: of ``sources`` that begin earlier."""

    sources: Sources


@dataclass(frozen=True)
class Question:
    """A query's rows behind a position. ``number`` comes back; ``key``: what is kept for the next piece goes by it. ``since_ms``: where
    its span begins, UTC; ``most``: rows that may be put in order; ``piece``: rows of a piece at most, where it is not the whole;
    ``tables``: those that it is joined with, in the plan's order; ``extensions``: folders of users' aggregates."""

    number: int
    key: int
    plan: QueryPlan
    sources: Sources
    timing: Timing
    since_ms: int
    position: int
    most: int
    piece: int
    tables: tuple[TableRows | EarlierRows, ...] = ()
    extensions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answered:
    """Rows as an Arrow IPC stream: their numbers in the log, in ascending order, and columns; what position is reached, and whether more
    may follow."""

    number: int
    table: bytes
    position: int
    more: bool


@dataclass(frozen=True)
class Refused:
    """The query cannot be answered: a :class:`skerry.sql.errors.QueryError`."""

    number: int
    message: str
    hint: str


@dataclass(frozen=True)
class Failed:
    """There is no answer now. ``damaged``: a file cannot be read, which ``why`` names; ``moved``: files or rows of the log are no
    longer where the question has them; ``given_up``: nobody waits for it."""

    number: int
    why: str
    damaged: bool = False
    moved: bool = False
    given_up: bool = False


@dataclass(frozen=True)
class Cancel:
    """Nobody waits for the answer to a question."""

    number: int


@dataclass(frozen=True)
class ClusterPart:
    """Some rows of a relation: of Parquet files that each worker sees, in Spark's SQL a condition, "" for none, and columns."""

    paths: tuple[str, ...]
    condition: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class ClusterSelect:
    """What the engine's process asks of the cluster, through the gateway: a SELECT in Spark's SQL, of ``relations`` by their names. Its
    rows go into Parquet files in the directory ``into``, which is not there yet, in the order of their names."""

    number: int
    relations: tuple[tuple[str, tuple[ClusterPart, ...]], ...]
    text: str
    into: str


@dataclass(frozen=True)
class ClusterAnswer:
    """Why the rows are not there; None: they are."""

    number: int
    trouble: str | None


@dataclass(frozen=True)
class ClusterCancel:
    """Nobody waits for the rows."""

    number: int


@dataclass(frozen=True)
class Forget:
    """Nobody wants the next piece; a question that is being answered is given up."""

    key: int


@dataclass(frozen=True)
class Stop:
    """The gateway's last word."""
