"""Motes with as many queries as they hold, one of which makes room for another: the gateway's own side of a network, the real image."""

from __future__ import annotations

import time

from skerry.network.network import Common, Network
from skerry.network.networks import Networks
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry_protocol.packets import QUERIES_MAXIMUM, PacketType, RefusalReason
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, line_of


class Asker:
    """What the gateway does for its users, in the virtual time of a testbed."""

    def __init__(self, net: NetworkHandle) -> None:
        self._net, self._heard = net, len(net.line.records)
        self._network = Network(net.line.send)
        self.networks = Networks([self._network], Common())
        assert net.line.hello is not None
        self._network.greet(net.line.hello)
        self.go_on(0)

    def ask(self, user: str, sql: str) -> None:
        """A query, of which the root is told."""
        plan = plan_query(sql)
        assert isinstance(plan, QueryPlan)
        self.networks.add_user(user, plan)
        self._tell()

    def stop(self, user: str) -> None:
        """The same of its end."""
        self.networks.remove_user(user)
        self._tell()

    def _tell(self) -> None:
        self.networks.prepare()
        self.networks.tell()
        self.go_on(1)

    def go_on(self, duration_s: int) -> None:
        """Each second the gateway looks at what has come, and at what time brings."""
        for _ in range(max(1, duration_s)):
            self._net.advance(1.0 if duration_s else 0.0)
            self._network.clock.restart(int(self._net.line.network_time()), 0, time.time())
            for record in self._net.line.records[self._heard :]:
                self._network.hear(record.packet)
            self._heard = len(self._net.line.records)
            if self.networks.advance()[0]:
                self.networks.prepare()
                self.networks.tell()

    def running(self, user: str) -> int:
        """The id on motes of what serves a user now."""
        return self._network.demand.feeds(user)[-1].query


def test_who_takes_the_place_of_another_is_answered_by_all_motes(network: MakeNetwork) -> None:
    """Eight queries, of which one is stopped and asked anew before the stop has come to motes behind others: in two of three runs those
    refuse it then, and run it all the same once they have heard of both."""
    refused = set[RefusalReason]()
    for seed in range(1, 7):
        net = network(line_of(5, spacing=10), radio=disc(22), seed=seed)
        net.advance("60s")
        asker = Asker(net)
        for seconds in range(2, QUERIES_MAXIMUM + 2):
            asker.ask(str(seconds), f"SELECT COUNT(*), MAX(temp) FROM sensors SAMPLE PERIOD {seconds} s")
        asker.go_on(40)
        for threshold in range(6):
            asker.stop("2")
            asker.ask(
                "2", f"SELECT AVG(light), COUNT(*) FROM sensors WHERE light > {threshold} SAMPLE PERIOD 2 s"
            )
        asker.go_on(15)
        query = asker.running("2")
        refused |= {record.body.reason for record in net.line.of(PacketType.REFUSAL, query)}
        asker.go_on(60)
        since = len(net.line.records)
        asker.go_on(20)
        parts = [
            r.body for r in net.line.records[since:] if r.type is PacketType.PARTIAL and r.body.query == query
        ]
        assert max(part.motes for part in parts) == 5, seed
        assert asker.networks.refused("2") == [], seed
    assert refused == {RefusalReason.SLOTS}
