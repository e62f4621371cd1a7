"""What a mote query takes of the memory that a mote's queries share: its program and, behind that, the state of what it does.

The accounting is the firmware's (``firmware/query/query_conf.h``, and the ``state_size`` of each clause), of the mote that needs most:
the root, which keeps more children of approximate aggregates than others.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from skerry.expressions.expression import Expr, attributes_of
from skerry.expressions.temporal import counts_epochs, is_pulse, is_temporal, parameters
from skerry.planner.model import pairing
from skerry.planner.model.clause import Clause
from skerry.planner.model.plans import Column, MoteQuery
from skerry.planner.model.storage_points import RAM_HEADER, kept
from skerry.planner.physical.program import program_size
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.bytecode import ATTRIBUTE_MAXIMUM
from skerry_protocol.codes import Aggregate, EventFlag, StoreFlag
from skerry_protocol.limits import EVENT_RUNS
from skerry_protocol.programs import Store
from skerry_protocol.records import Event

#: Bytes for all queries of a mote together (MEMORY_BYTES).
MEMORY_BYTES = 1536
#: Of a window: where it stands; of one of epochs, which it is at besides (struct window, struct epochs).
_WINDOW, _EPOCHS = 3, 10
#: struct average, struct delta, struct pulse.
_AVERAGE, _DELTA, _PULSE = 9, 11, 12
#: struct ring of a storage point.
_RING = 6
#: struct waiting of an index, and so many tuples, each a struct held and its values.
_WAITING, _TUPLES, _TUPLE = 2, 10, 10
#: struct scan of a join, without the values of its attributes.
_SCAN = 29
#: struct gathering of a mote that asks others.
_GATHERING = 49
#: struct state of a semantic routing tree, with what each of 24 neighbours told.
_TREE = 255
#: struct children and struct child, of which a root keeps so many.
_CHILDREN, _CHILD, _ROOT_CHILDREN = 4, 11, 48
#: struct run of a query that waits for events: when it began, and the event.
_RUN = 4 + int(Event.sizeof())
#: The value of a signal that a row has raised.
_SIGNAL = 4
_VOLTAGE = BY_NAME["voltage"].number


@lru_cache(maxsize=4096)
def bytes_taken(query: MoteQuery) -> int:
    """Bytes that the query takes of the memory that all share."""
    return program_size(query) + state_bytes(query)


def state_bytes(query: MoteQuery) -> int:
    """Those behind its program."""
    windows = sum(_window_bytes(column.expr) for column in query.columns if column.expr is not None)
    approximate = (
        any(column.aggregate is Aggregate.REPRESENTATIVE for column in query.columns) and query.snoop
    )
    found = windows if not query.aggregate else 0
    found += _CHILDREN + _ROOT_CHILDREN * _CHILD if approximate else 0
    found += sum(_point_bytes(clause, query.columns) for clause in query.clauses)
    if any(clause.kind is Aggregate.INDEX for clause in query.clauses):
        found += _WAITING + _TUPLES * (_TUPLE + sum(column.format.size for column in query.columns))
    pairs = pairing.pairs_clause(query)
    found += pairing.state_bytes(pairs) if pairs is not None else 0
    found += _TREE * any(clause.kind is Aggregate.SRT for clause in query.clauses)
    found += _GATHERING * any(clause.kind is Aggregate.GATHER for clause in query.clauses)
    if any(clause.kind is Aggregate.FROM for clause in query.clauses):
        found += _SCAN + 4 * len(_sampled(query))
    found += _SIGNAL * any(
        clause.kind is Aggregate.SIGNAL and clause.expr is not None for clause in query.clauses
    )
    return found + _RUN * _runs(query.clauses)


def _window_bytes(expr: Expr) -> int:
    if not is_temporal(expr):
        return 0
    if expr.aggregate in (Aggregate.DELTA, Aggregate.ADPDELTA):
        return _DELTA
    if expr.aggregate is Aggregate.EXPAVG:
        return _AVERAGE
    if is_pulse(expr):
        return _PULSE
    return _WINDOW + 4 * parameters(expr).window + (_EPOCHS if counts_epochs(expr) else 0)


def _point_bytes(clause: Clause, columns: Iterable[Column]) -> int:
    if clause.kind is not Aggregate.STORE:
        return 0
    store = Store.parse(bytes(clause.values))
    if store.flags & StoreFlag.FLASH:
        return _RING
    row = RAM_HEADER + sum(column.format.size for column in columns)
    return _RING + kept(int(store.rows), bool(store.flags & StoreFlag.CIRCULAR)) * row


def _sampled(query: MoteQuery) -> frozenset[int]:
    """Attributes that are sampled for it."""
    exprs = [column.expr for column in query.columns] + [clause.expr for clause in query.clauses]
    read = frozenset[int]().union(
        *(attributes_of(expr) for expr in [*exprs, query.where] if expr is not None)
    )
    read |= {_VOLTAGE} if query.budget is not None else frozenset()
    return frozenset(number for number in read if number <= ATTRIBUTE_MAXIMUM)


def _runs(clauses: Iterable[Clause]) -> int:
    """Events that run it at once."""
    on = next((clause for clause in clauses if clause.kind is Aggregate.ON_EVENT), None)
    if on is None or on.values[1] & EventFlag.TIMER:
        return 0
    return EVENT_RUNS if on.values[1] & EventFlag.EACH else 1
