"""Motes that pass rows on, where ways part and meet: on motes of both boards answers are DuckDB's, and fewer bytes are on the air."""

from __future__ import annotations

import dataclasses

import pytest

from bench.measuring.air import joules
from hil_tests.drawn_joins import Drawn
from hil_tests.joining import Joining
from skerry_protocol import codec, mac
from skerry_protocol.codes import Carries, PacketType
from skerry_testbed.pytest import NetworkHandle

#: Mote 11 with those of room 2, which say much more: each of these joins its own rows, and needs those of mote 11.
ASKED = Drawn(
    "s.nodeid = t.room + 9 AND t.room = 2", "s.light > 500", "", "s.temp < t.temp", 1, 0, "IN NETWORK ESTIMATE s 40 %, pair 50 % COST BYTES"
)  # fmt: skip
#: Before a frame's MAC header, and behind it: preamble, SFD and length, FCS.
AROUND = 6 + 2


def carried(net: NetworkHandle) -> int:
    """Bytes of all frames with rows on ways, those that only keep them open among them; without acknowledgements."""
    found = 0
    for frame in net.frames:
        packet = (
            mac.decode(frame.psdu) if len(frame.psdu) >= 15 and frame.psdu[10] == PacketType.CARRIED else None
        )
        if packet is not None and bytes(codec.decode(packet.payload).body.record)[0] == Carries.ROW:
            found += len(frame.psdu) + AROUND
    return found


@pytest.mark.slow
def test_rows_go_once_over_hops_that_hosts_share(drawn_seed: int) -> None:
    """The same readings in the same network, each time anew, with rows that are passed on and without."""
    sent: dict[bool, int] = {}
    for passes_on in (False, True):
        joining = dataclasses.replace(Joining.of(drawn_seed), passes_on=passes_on)
        joining.net.frames.clear()
        [outcome], _, stays = joining.batch([ASKED])
        sent[passes_on], relays = carried(joining.net), joining.passed[0].of
        print(f"passes on: {passes_on}; {outcome.told()}; {sent[passes_on]} B of rows on ways; {relays}")
        assert not outcome.wrong, (drawn_seed, outcome.wrong)
        assert not stays or outcome.ours == outcome.theirs, drawn_seed
        assert outcome.ours.total() > 5
        assert bool(relays) == passes_on
    print(f"seed {drawn_seed}: {sent[False]} B, and {sent[True]} B where hosts pass rows on")
    assert sent[True] < sent[False]


#: Two rooms of four motes and one of three: all rows of a room go to one mote each.
MEETING = Drawn(
    "s.room = t.room AND s.nodeid < t.nodeid",
    "s.light > 450",
    "t.light > 450",
    "s.temp < t.temp",
    1,
    0,
    "BY HASH ESTIMATE s 50 %, t 50 %, pair 50 %",
)


def radios(net: NetworkHandle) -> float:
    """J of all but the root's."""
    return joules((mote.energy for number, mote in net.motes.items() if number), "radio")


@pytest.mark.slow
def test_ways_branch_and_meet_at_motes_that_join_none(drawn_seed: int) -> None:
    """The same readings in the same network, each time anew, with and without."""
    sent: dict[bool, int] = {}
    for passes_on in (False, True):
        joining = dataclasses.replace(Joining.of(drawn_seed), passes_on=passes_on)
        joining.net.frames.clear()
        before = radios(joining.net)
        [outcome], _, stays = joining.batch([MEETING])
        sent[passes_on], relays = carried(joining.net), joining.passed[0]
        alone = relays.branching(outcome.hosts)
        print(
            f"passes on: {passes_on}; {outcome.told()}; {sent[passes_on]} B of rows on ways; {relays.of}, {alone} join none;"
        )
        print(f"radios took {1000 * (radios(joining.net) - before):.0f} mJ, {outcome.strays} strays")
        assert not outcome.wrong, (drawn_seed, outcome.wrong)
        assert not stays or outcome.ours == outcome.theirs, drawn_seed
        assert outcome.ours.total() > 5
        assert bool(alone) == passes_on
    print(f"seed {drawn_seed}: {sent[False]} B, and {sent[True]} B where ways branch and meet")
    assert sent[True] < sent[False]
