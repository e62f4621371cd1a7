"""What a row of an aggregate says of its epoch or window, besides what it aggregates."""

from __future__ import annotations

from skerry.expressions.expression import Expr, Kind
from skerry_protocol.bytecode import Op

#: How many motes are in the epoch or window, in all its groups.
MOTES = Expr(Op.ATTR, (), None, 0, 0, 0xFFFF, Kind.NUMBER, final=("motes",))
#: Which of its rows this is: 0 is the first, one more each time that something late has changed it.
REVISION = Expr(Op.ATTR, (), None, 0, 0, 2**53, Kind.NUMBER, final=("revision",))
#: By name.
FACTS = {"motes": MOTES, "revision": REVISION}
