"""What the gateway and its Spark driver say to each other, over a socket that only these two processes have."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.execution.join_buckets import Joined
from skerry.storage.history.engine.messages import ClusterSelect
from skerry.storage.log.source_batches import Through


@dataclass(frozen=True)
class Job:
    """The gateway's first word: what the driver is to read, all paths absolute. ``local``: a directory for Spark's own files, whose
    path has no comma; ``data``: where blocks are published; ``joins``: where window joins are, which Spark notes its progress in
    ``join_checkpoint`` of."""

    master: str
    directory: str
    local: str
    log: str
    index: str
    data: str
    checkpoint: str
    joins: str
    join_checkpoint: str


@dataclass(frozen=True)
class Begin:
    """The gateway knows whose rows are whose: the streaming query may begin."""


@dataclass(frozen=True)
class Started:
    """The streaming query runs."""


@dataclass(frozen=True)
class Batch:
    """A batch of the stream: rows ``first`` .. ``end`` - 1 of the log. Its blocks, an Arrow IPC stream of
    :data:`skerry.spark.log_source.SCHEMA`, are published (:mod:`skerry.storage.block_files`), or come with it where that is not possible.
    The driver waits for :class:`Taken`."""

    first: int
    end: int
    blocks: bytes | None = None


@dataclass(frozen=True)
class Taken:
    """Whether the gateway is done with the batch. One that it could not take comes again."""

    done: bool


@dataclass(frozen=True)
class BeginJoins:
    """There are window joins: their streaming query may begin. ``through``: by stream of answers, how far they are known already."""

    through: dict[int, Through]


@dataclass(frozen=True)
class JoinBatch:
    """What a batch of window joins came to. The driver waits for :class:`JoinsTaken`."""

    joined: Joined


@dataclass(frozen=True)
class JoinsTaken:
    """Whether the answers are durable. A batch whose are not comes again."""

    done: bool


@dataclass(frozen=True)
class Failed:
    """Why the driver ends, in a line: its last word. ``joins``: it cannot read what window joins have kept between batches."""

    reason: str
    joins: bool = False


@dataclass(frozen=True)
class DatabaseRequest:
    """A table to be read over JDBC, of at most ``most`` rows. ``number`` comes back in its :class:`DatabaseAnswer`."""

    number: int
    jar: str
    most: int
    options: dict[str, str]


@dataclass(frozen=True)
class DatabaseAnswer:
    """The table as an Arrow IPC stream, or in a line why there is none."""

    number: int
    table: bytes | None
    trouble: str = ""


@dataclass(frozen=True)
class PastRequest:
    """A question about the past. ``number`` comes back in its :class:`PastAnswer`."""

    number: int
    asked: ClusterSelect


@dataclass(frozen=True)
class PastCancel:
    """Nobody waits for its answer."""

    number: int


@dataclass(frozen=True)
class PastAnswer:
    """In a line why its rows have not been written; None: they have."""

    number: int
    trouble: str | None


@dataclass(frozen=True)
class Stop:
    """The gateway's last word: end, and leave nothing behind."""
