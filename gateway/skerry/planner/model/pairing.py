"""A join of motes' rows with each other that motes do themselves, before it is known which motes are pairs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from skerry.expressions.assembler import assemble
from skerry.expressions.build import attribute, constant_of, stored
from skerry.expressions.expression import Expr, Kind
from skerry.joins.placement.estimates import Estimates
from skerry.planner.model import pair_groups
from skerry.planner.model.clause import Clause
from skerry.planner.model.pair_groups import S, T
from skerry.planner.model.plans import Column, MoteQuery
from skerry.sql.join_strategies import NAIVE
from skerry_protocol import mote_sets
from skerry_protocol.attributes import BY_NAME, BY_NUMBER, ValueFormat
from skerry_protocol.bytecode import Op
from skerry_protocol.codes import Aggregate, PairsWay
from skerry_protocol.limits import PAIRS_MOTES
from skerry_protocol.programs import Pairs, PairsHost

#: What two rows that have met say together, told apart from fields of either, which are those of 0 and of 1: the mote that has joined them,
#: and how many epochs behind the later one s and t are.
_OF_BOTH = 2 << 4
HOST_NAME = "joined_at"
HOST = stored(_OF_BOTH, HOST_NAME, 0, 0, 0xFFFF, "")
BEHIND = tuple(stored(_OF_BOTH | 1 + side, f"epochs behind, {side}", 0, 0, 2**31 - 1, "") for side in (0, 1))
#: The first columns of joined rows: the mote that is t, and how far behind the later row s and t are.
NUMBERED = 3
#: The first column that motes carry up: as what a row has passed.
ROLES = ValueFormat.U8
#: Where a row's number in each role stands beside them. It is 0 for the first since its mote started, then goes round from 1 to this.
_NUMBER_BIT, _CYCLE = {S: 2, T: 5}, 7
#: Rows climb to the root in the second after their sample, and what fails is sent again in the nine after that. By ways they come in cells
#: some seconds apart, several times where they fail.
CLIMB_MS, _WAYS_MS = 10_000, 30_000
_DELAY_MAXIMUM = 30
#: A way has a cell each 4 s at most often, and a fifth of them is for what has failed in others: what comes more often is left behind.
WAYS_PERIOD_MS = 5_000
#: struct meet_state; struct pairs_row with the nulls of its values; struct sending with the first value, of which a mote that sends rows by
#: ways has the first number of places at most and a root that does the second one (firmware/query/operators/meet_pairs.h, query_conf.h).
_STATE, _ROW, _SENDING = 14, 8, 13
_PLACES, _PLACES_ROOT = 8, 10

AT_BASE, AT_ANCESTOR, THROUGH_BASE, BY_HASH, IN_NETWORK = (
    "AT BASE",
    "AT ANCESTOR",
    "THROUGH BASE",
    "BY HASH",
    "IN NETWORK",
)
#: How rows come to the motes that join them, by where a query says that it is joined. NAIVE is at the base, too: motes send all rows.
WAY_OF = {
    AT_BASE: PairsWay.CLIMB,
    AT_ANCESTOR: PairsWay.CLIMB,
    THROUGH_BASE: PairsWay.FROM_ROOT,
    BY_HASH: PairsWay.SENT,
    IN_NETWORK: PairsWay.SENT,
    NAIVE: PairsWay.CLIMB,
}


@dataclass(frozen=True, slots=True)
class Pairing:
    """``statics``: conditions of attributes that never change, of ``fields`` by number, on one mote or between both: which motes are
    pairs; ``condition``: what is asked of two rows, of the ``carried`` attributes; ``rows``, ``epochs``: of a window, one of both 0."""

    aliases: tuple[str, str]
    statics: tuple[Expr, ...]
    fields: tuple[int, ...]
    condition: Expr | None
    carried: tuple[int, ...]
    rows: int
    epochs: int
    #: How many of ``statics`` are between both.
    between: int
    #: Where they are joined, of :data:`WAY_OF`.
    strategy: str = AT_ANCESTOR
    #: How often rows pass as s and as t, and match when they meet; and what a join's cost is counted in.
    shares: tuple[float, float, float] = (1.0, 1.0, 1.0)
    cost: str = "energy"
    #: Whether they are placed anew by what is counted while it runs; ms from a sample until its answers are to be there, if that is said.
    learns: bool = False
    within_ms: int | None = None

    @property
    def way(self) -> PairsWay:
        """How rows come to their hosts."""
        return WAY_OF[self.strategy]

    @property
    def estimates(self) -> Estimates:
        """What its user knows of it, and how many rows of a mote a window holds."""
        return Estimates(*self.shares, window=max(self.rows, self.epochs + 1))

    @property
    def width(self) -> int:
        """Bytes of the values of a row that is carried up."""
        return sum(BY_NUMBER[number].format.size for number in self.carried)


def number_of(passed: int, role: int) -> int:
    """A row's number in a role, by its first column."""
    return passed >> _NUMBER_BIT[role] & _CYCLE


def numbered(role: int, number: int) -> int:
    """A row's first column, where it has passed in one role."""
    return role | number << _NUMBER_BIT[role]


def missing(earlier: int, later: int, known: int) -> int:
    """Of a mote's rows behind one number, up to another, where so many are known: fewer than seven more."""
    return (later - earlier - known) % _CYCLE


def keys_of(statics: Iterable[Expr]) -> tuple[Expr, ...]:
    """What is equal on both motes of a pair, as s says it."""
    found = []
    for part in statics:
        sides = [
            {(leaf.operand or 0) >> 4 for leaf in arg.walk() if leaf.op is Op.STORED} for arg in part.args
        ]
        if part.op is Op.EQ and sorted(map(sorted, sides)) == [[0], [1]]:
            found.append(part.args[sides.index({0})])
    return tuple(found)


def delay(period_ms: int, way: PairsWay = PairsWay.CLIMB) -> int:
    """Epochs for which rows are waited for."""
    longest = CLIMB_MS if way is PairsWay.CLIMB else _WAYS_MS
    return min(_DELAY_MAXIMUM, -(-longest // period_ms) + 1)


def keeps_up(period_ms: int, way: PairsWay) -> bool:
    """Whether a row of each sample period can go to its hosts."""
    return way is PairsWay.CLIMB or period_ms >= WAYS_PERIOD_MS


def answered_ms(period_ms: int, way: PairsWay) -> int:
    """From a sample until answers that it is part of are at the gateway, where nothing has to be sent again for longer than usual."""
    return delay(period_ms, way) * period_ms + CLIMB_MS


def delay_ms(clause: Clause, period_ms: int) -> int:
    """For how long rows of a query are waited for."""
    return int(Pairs.parse(bytes(clause.values)).delay) * period_ms


def over_ms(clauses: Iterable[Clause], period_ms: int) -> int:
    """From the end of an epoch until all that it is joined with has been told; 0: of what is no join of motes' rows."""
    found = (delay_ms(one, period_ms) + CLIMB_MS for one in clauses if one.kind is Aggregate.PAIRS)
    return max(found, default=0)


#: Of a mote that joins: which it is, rows that it has room for, and its pairs.
Host = tuple[int, int, Sequence[tuple[int, int]]]


def clause_of(
    pairing: Pairing,
    period_ms: int,
    hosts: Sequence[Host] = (),
    pairs: Collection[tuple[int, int]] = (),
    relays: Mapping[int, tuple[int, frozenset[int]]] | None = None,
    *,
    all_come: bool = False,
) -> Clause:
    """What motes are told: ``hosts``, the deepest in the tree first; ``pairs`` that the gateway joins. ``relays``: by host the one that
    passes rows on to it, which stands behind it, and whose; one that only passes rows on is a
    host without pairs. ``all_come``: all motes' rows are to come, also those that are in no pair."""
    code = assemble(pairing.condition) if pairing.condition is not None else b""
    motes = named(hosts)
    sets = [motes, *((() if all_come else {pair[at] for pair in pairs}) for at in (0, 1))]
    told_sets = [mote_sets.build(one) for one in sets]
    head = {
        "rows": pairing.rows,
        "epochs": pairing.epochs,
        "delay": delay(period_ms, pairing.way),
        "width": pairing.width,
        "condition": len(code),
        "way": pairing.way,
        **dict(zip(("motes", "s", "t"), map(len, told_sets), strict=True)),
    }
    told = bytes(Pairs.build(head)) + code + b"".join(told_sets)
    places, relays = [host for host, _, _ in hosts], relays or {}
    for host, rows, own in hosts:
        by, whose = relays.get(host, (host, frozenset[int]()))
        passed = bytes([places.index(by), *map(motes.index, sorted(whose))]) if whose else b""
        groups = passed + pair_groups.build(own, motes)
        told += bytes(PairsHost.build({"host": motes.index(host), "rows": rows, "groups": len(groups)}))
        told += groups
    names = " ".join(BY_NUMBER[number].name for number in pairing.carried)
    return Clause(Aggregate.PAIRS, names, pairing.condition, tuple(told), tuple(pairs))


def named(hosts: Iterable[Host]) -> list[int]:
    """Motes that have numbers in a program: those that join, and those of their pairs."""
    return sorted(
        {mote for host, _, pairs in hosts for mote in (host, *(one for pair in pairs for one in pair))}
    )


def with_pairs(told: Clause, clauses: Iterable[Clause]) -> tuple[Clause, ...]:
    """A query's clauses where its pairs are joined as ``told``. Motes are to know of pairs before they read what two rows that match do."""
    return told, *(one for one in clauses if one.kind is not Aggregate.PAIRS)


def acts(clauses: Iterable[Clause]) -> bool:
    """Whether a mote does something where two rows match."""
    return any(clause.kind in (Aggregate.ACTION, Aggregate.SIGNAL) for clause in clauses)


def pairs_clause(query: MoteQuery) -> Clause | None:
    """What a query says of pairs; None: it is no join of motes' rows."""
    return next((clause for clause in query.clauses if clause.kind is Aggregate.PAIRS), None)


def carried_columns(clause: Clause, where: Expr | None) -> tuple[Column, ...]:
    """What motes' rows have before they are joined. A condition that is a number says itself as what a row passes."""
    both = constant_of(S | T)
    roles = where if where is not None and where.kind is Kind.NUMBER else both
    named = (BY_NAME[name] for name in clause.name.split())
    return (
        Column("roles", roles, ROLES),
        *(Column(one.name, attribute(one), one.format) for one in named),
    )


def hosts_of(clause: Clause) -> dict[int, tuple[int, tuple[tuple[int, int], ...]]]:
    """By the mote that joins them: rows that it has room for, and its pairs."""
    return {host: (rows, pairs) for host, rows, pairs, _ in _hosts(clause) if pairs}


def _hosts(clause: Clause) -> Iterator[tuple[int, int, tuple[tuple[int, int], ...], bool]]:
    """Each with its rows, its pairs, and whether rows are passed on to it."""
    code = bytes(clause.values)
    head = Pairs.parse(code)
    at = Pairs.sizeof() + head.condition
    motes = mote_sets.parse(code[at : at + head.motes])
    at += head.motes + head.s + head.t
    while at < len(code):
        host = PairsHost.parse(code[at:])
        at += PairsHost.sizeof()
        groups = code[at : at + host.groups]
        at += host.groups
        pairs = pair_groups.parse(groups, motes)
        yield motes[host.host], host.rows, tuple(pairs), bool(groups) and groups[0] < PAIRS_MOTES


def window_ms(clause: Clause, period_ms: int) -> int:
    """How far windows reach back, if each row passes."""
    head = Pairs.parse(bytes(clause.values))
    return int(max(head.rows, head.epochs)) * period_ms


def state_bytes(clause: Clause) -> int:
    """Of the memory of queries, on the mote that has most to do."""
    head = Pairs.parse(bytes(clause.values))
    hosts = hosts_of(clause)
    hosted = max((host_bytes(rows, head.width) for rows, _ in hosts.values()), default=_STATE)
    if not hosts or head.way == PairsWay.CLIMB:
        return hosted
    if head.way == PairsWay.SENT:
        passes_on = any(passed for _, _, _, passed in _hosts(clause))
        return hosted + sending_bytes(head.width, head.delay, passes_on=passes_on)
    return max(hosted, _STATE + _PLACES_ROOT * (_SENDING + int(head.width)))


def sending_bytes(width: int, epochs: int, *, passes_on: bool = False) -> int:
    """Of rows that wait for ways on a mote, for so many epochs; on one that passes others' on, of as many as there may be."""
    return (_PLACES if passes_on else min(epochs + 1, _PLACES)) * (_SENDING + width)


def host_bytes(rows: int, width: int) -> int:
    """Of one that has room for so many rows."""
    return _STATE + rows * (_ROW + width)
