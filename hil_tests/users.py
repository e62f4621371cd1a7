"""A gateway's users in virtual time: what they ask goes to emulated motes, and what motes send comes to them, through the gateway's own
parts; links between these and the clock are the test's."""

from __future__ import annotations

from skerry.planner.model.plans import Difference, QueryPlan
from skerry.planner.planner import plan_query
from skerry.sharing.demand import Demand
from skerry_protocol.codes import PacketType
from skerry_protocol.limits import NO_LEVEL
from skerry_testbed.pytest import NetworkHandle


class Users:
    """A gateway's demand, which motes are told of as it changes, and which goes on each second."""

    def __init__(self, net: NetworkHandle) -> None:
        self.net, self.demand = net, Demand()

    @property
    def now(self) -> float:
        """Network time in s."""
        return self.net.line.network_time()

    def add(self, user: str, sql: str) -> QueryPlan:
        """A user asks. Raises QueryError where motes have no room."""
        plan = plan_query(sql)
        assert isinstance(plan, QueryPlan)
        self.tell(self.demand.add_user(user, plan, self.now))
        return plan

    def remove(self, user: str) -> None:
        """A user goes."""
        self.tell(self.demand.remove_user(user, self.now))

    def advance(self, seconds: int) -> None:
        """Time goes on."""
        for _ in range(seconds):
            self.net.advance("1s")
            levels = [record.body.level for record in self.net.line.of(PacketType.STATUS)]
            self.demand.hops = max((level for level in levels if level != NO_LEVEL), default=0)
            self.tell(self.demand.advance(self.now))

    def tell(self, change: Difference) -> None:
        """Motes are told what changes."""
        for query in change.stop:
            self.net.line.stop(query)
        for installation in change.install:
            self.net.line.install(installation.query, installation.program)
