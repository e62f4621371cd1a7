"""Numbers of bundles: a parent takes one that has the number of the one before for a repetition, so that next ones never have it, whatever
else a mote has sent between them."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from skerry_protocol.codes import PacketType
from skerry_testbed.pytest import MakeNetwork, disc, grid
from skerry_testbed.queries import ask


def test_each_bundle_has_the_number_behind_the_one_before(network: MakeNetwork) -> None:
    net = network(grid(3, 2, spacing=10, boards=("iris", "cc2538")), radio=disc(15), seed=2)
    net.advance("60s")
    ask(net, 1, "SELECT nodeid, light FROM sensors SAMPLE PERIOD 20 s")
    net.advance("300s")
    numbers: dict[int, list[int]] = defaultdict(list)
    others: dict[int, int] = defaultdict(int)
    for _, frame, packet in net.packets():
        if packet.type is not PacketType.BUNDLE:
            others[frame.source] += 1
        elif not numbers[frame.source] or numbers[frame.source][-1] != frame.sequence:
            numbers[frame.source].append(frame.sequence)
    assert len(numbers) == len(net.motes) - 1
    for source, sent in numbers.items():
        assert len(sent) > 10
        assert others[source] > 10
        steps = {(after - before) % 256 for before, after in pairwise(sent)}
        assert steps == {4}, (source, sent)
