"""Plans, mote queries, installations and feeds: what planner, demand, link and proxy hand each other.

The way of a query: ``plan_query(text)`` → :class:`QueryPlan` → ``Demand.add_user(id, plan, now)`` →
:class:`Difference` with the :class:`Installation` s to send and the query ids to stop. Rows of a mote
query are decoded by its ``columns``; each user reads them through its :class:`Feed` s.

Stream batches (``pyarrow.RecordBatch``), one schema per mote query:

* plain rows: ``nodeid`` int64, ``epoch`` int64 (of the mote query), ``combined`` and ``left_out`` int64 (what its mote's
  queue made of it), ``via`` int64 (the root that it came through), then for each of ``MoteQuery.columns``
  one int64 column by its ``name``: the integer as it came, null where the row says NULL;
* aggregates: ``epoch`` int64, ``motes``, ``kind``, ``wait`` and ``revision`` int64 as in :mod:`skerry.storage.log.record`, then for
  column i ``count_i`` int64 and ``value_i`` int64 (null where the sum overflowed), one row per epoch and group, and one for each
  revision (:mod:`skerry.ingest.epoch_states` merges).

Further columns (arrival, …) are left alone. Times are network times in ms since the root's boot;
the sample time of a row is ``epoch * period_ms``.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from skerry.catalog.static_attributes import Statics
from skerry.expressions.expression import Expr, Kind, from_list
from skerry.expressions.unit_algebra import UTC
from skerry.planner.model.clause import Clause
from skerry.planner.model.epoch_facts import REVISION
from skerry.planner.model.frames import Frame
from skerry.planner.model.joined_tables import Probe
from skerry.planner.model.lifetime_budget import LifetimeBudget
from skerry.planner.model.ordering import Ordering
from skerry.planner.model.source_plans import SourceOutput, SourcePlan
from skerry_protocol.attributes import ValueFormat
from skerry_protocol.codes import Aggregate

if TYPE_CHECKING:
    from skerry.planner.model.pairing import Pairing


@dataclass(frozen=True, slots=True)
class Output:
    """A column that a user sees. ``digits``: decimal places; 0: integers, and of a timestamp's seconds. ``unit``: SI, "" for none."""

    name: str
    expr: Expr
    unit: str
    digits: int

    @property
    def type(self) -> str:
        """``integer``, ``decimal``, ``boolean``, ``timestamp``, ``list`` or ``text``."""
        if self.expr.kind is Kind.CONDITION:
            return "boolean"
        if self.expr.kind is Kind.LIST:
            return "list"
        if self.expr.kind is Kind.TEXT:
            return "text"
        if self.expr.unit == UTC:
            return "timestamp"
        return "decimal" if self.digits else "integer"


@dataclass(frozen=True, slots=True)
class Past:
    """What HISTORY asks for: samples of the last ``span_ms``; ``only``: and none to come; ``recorded``: each as it was
    taken, not the first in each epoch of the query, and aggregates over all of them."""

    span_ms: int
    only: bool
    recorded: bool


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """One user's query. ``duration_ms``: the FOR clause, None without; for ONCE the period is 1000 ms.

    ``having`` is asked of an aggregate's rows, at the gateway; ``groups``: what GROUP BY names.
    ``mote_where`` is the part of ``where`` that motes can evaluate: no row that ``where`` passes fails it.
    """

    text: str
    period_ms: int
    duration_ms: int | None
    once: bool
    aggregate: bool
    outputs: tuple[Output, ...]
    where: Expr | None
    mote_where: Expr | None
    attributes: frozenset[int]
    having: Expr | None = None
    groups: tuple[Expr, ...] = ()
    #: Temporal aggregates that its columns and HAVING need, each once.
    temporal: tuple[Expr, ...] = ()
    #: Over which its aggregates are taken, at the gateway; None: over none.
    window: Frame | None = None
    #: Of a window's rows, or a past's.
    order: Ordering | None = None
    #: What LIFETIME allows each mote.
    budget: LifetimeBudget | None = None
    #: What it waits for and does.
    clauses: tuple[Clause, ...] = ()
    #: What motes report, or keep, where it is not for :mod:`skerry.planner.physical.merge` to choose.
    columns: tuple[Column, ...] = ()
    #: Storage points, in lower case: those it reads, the one its rows go to, and whether that one is its own.
    reads: tuple[str, ...] = ()
    into: str | None = None
    creates: bool = False
    #: Texts of the queries that its rows start (OUTPUT ACTION (SELECT …)).
    starts: tuple[str, ...] = ()
    history: Past | None = None
    #: The tables that its rows are joined with, in this order, at the gateway.
    probes: tuple[Probe, ...] = ()
    #: The tolerance of APPROXIMATE WITHIN, a constant; None: it is exact.
    within: Expr | None = None
    #: NO INTERLEAVE: all that it reads is sampled at the epoch's beginning, before any condition is asked.
    at_once: bool = False
    #: How it is read where it leaves something open, for who asked it.
    notes: tuple[str, ...] = ()
    #: Attributes that users have made and it reads, by name in lower case.
    statics: Statics = field(default_factory=dict, compare=False)
    #: Whether rows are to come before all motes can have heard of the query.
    start_now: bool = False
    #: For how long an epoch is waited for, in ms from its beginning; None: as long as is usual.
    wait_ms: int | None = None
    #: What it asks of sensors that are no motes, which are all that it is about; its ``outputs`` are there, too.
    sources: SourcePlan | None = None
    #: Of motes that join their rows with each other: which are pairs. Where they do it stands in ``clauses``.
    pairing: Pairing | None = None

    @property
    def shown(self) -> tuple[Output, ...] | tuple[SourceOutput, ...]:
        """The columns that its user sees."""
        return self.outputs if self.sources is None else self.sources.outputs

    def exprs(self) -> list[Expr]:
        """What its columns, HAVING and ORDER BY are made of."""
        exprs = [output.expr for output in self.outputs] + ([self.having] if self.having is not None else [])
        return exprs + (self.order.exprs() if self.order is not None else [])

    @property
    def revises(self) -> bool:
        """Whether it asks for rows again that something late has changed."""
        return any(node == REVISION for expr in self.exprs() for node in expr.walk())

    @property
    def awaited(self) -> tuple[str, ...]:
        """Names of the events that it waits for."""
        waits = (clause.name for clause in self.clauses if clause.kind is Aggregate.ON_EVENT)
        return tuple(dict.fromkeys(waits))

    def aggregates(self) -> list[Expr]:
        """The aggregates that its columns, HAVING and ORDER BY need, each once."""
        return list(dict.fromkeys(node for expr in self.exprs() for node in expr.walk() if node.aggregate))

    def joined_exprs(self) -> list[Expr]:
        """All that its join is computed from and for."""
        exprs = [output.expr for output in self.outputs] + self.aggregates() + list(self.groups)
        exprs += self.order.exprs() if self.order is not None else []
        for probe in self.probes:
            exprs += [probe.inner, probe.outer, *probe.then]
        return exprs

    def without_windows(self) -> QueryPlan:
        """What chooses the rows that go into its windows."""
        return replace(self, outputs=(), having=None, window=None, order=None, probes=())

    def cells(self) -> int:
        """Cells of a partial state: of what is grouped by, and of each aggregate's state once."""
        states = {(node.aggregate, node.args): node.cells for node in self.aggregates()}
        return len(self.groups) + sum(states.values())


@dataclass(frozen=True, slots=True)
class Column:
    """A field of a mote query. ``aggregate`` NONE, or temporal: ``expr`` itself; GROUP: ``expr``, by which rows are
    grouped; else over ``expr`` (None: COUNT(*)).

    The state of an aggregate of several ``cells`` takes as many columns: those behind the first have no
    expression and ``aggregate`` NONE, and are not in the program."""

    name: str
    expr: Expr | None
    format: ValueFormat
    aggregate: Aggregate = Aggregate.NONE
    cells: int = 1

    @property
    def is_field(self) -> bool:
        """Whether it begins a field of the program."""
        return self.expr is not None or self.aggregate is not Aggregate.NONE

    @property
    def digits(self) -> int:
        """Decimal places of the integers that arrive."""
        return 0 if self.expr is None or self.aggregate is Aggregate.COUNT else self.expr.digits


@dataclass(frozen=True, slots=True)
class MoteQuery:
    """What motes run: the columns they report every ``period_ms`` for rows that pass ``where``."""

    period_ms: int
    once: bool
    aggregate: bool
    columns: tuple[Column, ...]
    where: Expr | None
    budget: LifetimeBudget | None = None
    clauses: tuple[Clause, ...] = ()
    #: So many of the first columns tell the rows of an epoch apart: numbers of stored rows, or the mote that raised the event.
    numbered: int = 0
    #: Motes withhold partial states that change nothing in what they have heard of others.
    snoop: bool = False
    #: All is sampled before any condition is asked.
    at_once: bool = False

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "period_ms": self.period_ms,
            "once": self.once,
            "aggregate": self.aggregate,
            "numbered": self.numbered,
            "snoop": self.snoop,
            "at_once": self.at_once,
            "where": self.where.to_list() if self.where else None,
            "clauses": [clause.to_list() for clause in self.clauses],
            "budget": list(astuple(self.budget)) if self.budget else None,
            "columns": [
                [c.name, c.expr.to_list() if c.expr else None, c.format.code, int(c.aggregate), c.cells]
                for c in self.columns
            ],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> MoteQuery:
        """The query that :meth:`to_dict` wrote."""
        columns = tuple(
            Column(
                name, from_list(expr) if expr else None, ValueFormat.from_code(code), Aggregate(kind), cells
            )
            for name, expr, code, kind, cells in data["columns"]
        )
        where = from_list(data["where"]) if data["where"] else None
        clauses = tuple(map(Clause.from_list, data["clauses"]))
        budget = LifetimeBudget(*data["budget"]) if data["budget"] else None
        numbered, snoop, at_once = data["numbered"], data["snoop"], data["at_once"]
        period_ms, once, aggregate = data["period_ms"], data["once"], data["aggregate"]
        return cls(period_ms, once, aggregate, columns, where, budget, clauses, numbered, snoop, at_once)


@dataclass(frozen=True, slots=True)
class Installation:
    """A mote query under its id. ``start``, ``end``: network seconds as in the program."""

    query: int
    mote_query: MoteQuery
    start: int
    end: int
    program: bytes


@dataclass(frozen=True, slots=True)
class Feed:
    """The part of one mote query's rows that is one user's, by sample time.

    A row sampled at t passes when ``since_ms <= t < until_ms`` and when it is the first that the user can
    see in its own epoch ``t // period_ms``: the sample before it (``t - stream_period_ms``; for the first
    one after a cut-over, ``before_ms`` of the mote query it follows) lies in an earlier epoch.
    """

    user: str
    query: int
    period_ms: int
    stream_period_ms: int
    since_ms: int
    until_ms: int | None = None
    before_ms: int | None = None

    def passes(self, sample_ms: int) -> bool:
        """Whether the row of this sample time is the user's; see :func:`skerry.execution.filters.in_feed`."""
        if sample_ms < self.since_ms or (self.until_ms is not None and sample_ms >= self.until_ms):
            return False
        previous = sample_ms - self.stream_period_ms
        if self.before_ms is not None and previous < self.since_ms:
            previous = self.before_ms
        return sample_ms // self.period_ms != previous // self.period_ms


@dataclass(frozen=True, slots=True)
class Difference:
    """What changes in the network: send ``stop`` (query ids) first, then ``install``.

    ``finished``: users whose FOR or ONCE is over, with rows that were under way given time to arrive;
    their feeds are gone. ``made``: what the gateway makes of rows from now on, as if motes ran it beside; ``ended``: what it
    makes no more.
    """

    install: tuple[Installation, ...] = ()
    stop: tuple[int, ...] = ()
    finished: tuple[str, ...] = ()
    made: tuple[Installation, ...] = ()
    ended: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.install or self.stop or self.finished or self.made or self.ended)
