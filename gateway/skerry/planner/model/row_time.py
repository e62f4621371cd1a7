"""When a row was sampled: in UTC, and in network time, the seconds since the root's boot. The gateway knows both of each row: of an
aggregate's they are its epoch's beginning, of a window's its end."""

from __future__ import annotations

from dataclasses import replace

from skerry.expressions import build
from skerry.expressions.expression import TIME_LEAF, Expr, Kind
from skerry.expressions.unit_algebra import UTC
from skerry_protocol.bytecode import Op

#: What queries call them.
TIME_NAME, NETWORK_TIME_NAME = "time", "network_time"
#: UTC in s.
TIME = Expr(Op.ATTR, (), None, 3, 0, 10**14, Kind.NUMBER, UTC, final=(TIME_LEAF, TIME_NAME))
#: Network time in s.
NETWORK_TIME = Expr(
    Op.ATTR, (), None, 3, 0, 2**32 * 1000, Kind.NUMBER, "s", final=(TIME_LEAF, NETWORK_TIME_NAME)
)
#: By name.
OF_ROWS = {TIME_NAME: TIME, NETWORK_TIME_NAME: NETWORK_TIME}
#: A time ahead of the row's by more than this, in s, is of a session of the root that is over.
_DISORDER_S = 2


def utc_of(network: Expr, name: str) -> Expr:
    """UTC of a network time that is not behind the row's own, under a name for people; NULL of one that cannot be of this session."""
    latest = build.add(NETWORK_TIME, build.number(_DISORDER_S, 0))
    apart = build.subtract(replace(network, unit="s"), NETWORK_TIME)
    known = build.only_where(build.add(TIME, apart), build.compare(Op.LE, network, latest))
    assert known is not None
    return replace(known, final=("named", name))


def later_of(a: Expr, b: Expr, name: str) -> Expr:
    """The later one of two times, under a name for people; NULL where one of them is not known."""
    ahead = build.subtract(b, a)
    later = build.compare(Op.GT, b, a)
    low, high = min(ahead.low, 0), max(ahead.high, 0)
    # A condition is 1 where it is true.
    by = Expr(Op.MUL, (ahead, later), 0, ahead.digits, low, high, Kind.NUMBER, ahead.unit)
    return replace(build.add(a, by), final=("named", name))


def is_of_row(expr: Expr) -> bool:
    """Whether it is one of these times."""
    return expr.final[:1] == (TIME_LEAF,)
