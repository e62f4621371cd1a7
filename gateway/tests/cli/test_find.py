"""``skerry find`` over a real gateway without a Spark; what motes have to say of a search comes from the root as their FOUND records do."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skerry
from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.process import COMMAND, wait_for
from gateway.tests.served import served
from gateway.tests.service.test_catalog import report
from skerry.network.searches import check_seeker
from skerry.sql.errors import QueryError
from skerry_protocol import codec
from skerry_protocol.codes import CommandOp, PacketType
from skerry_protocol.limits import NO_NODE
from skerry_protocol.searches import SearchCommand

MOTES = (1, 2, 3, 7)


@pytest.fixture
def url(peer: RootPeer, tmp_path: Path) -> Iterator[str]:
    """Of a gateway whose motes have reported."""
    with opened(peer, tmp_path / "data") as gateway, served(gateway) as found:
        for mote in MOTES:
            report(peer, node=mote, x=mote * 500)
        wait_for(lambda: len(skerry.connect(found).motes()) == len(MOTES))
        yield found


def start(url: str, *arguments: str) -> subprocess.Popen[str]:
    command = [COMMAND, "find", *arguments, "--url", url]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def searches(peer: RootPeer) -> list[Any]:
    """Commands that the root has got, oldest first."""
    return [
        packet.body
        for packet in list(peer.received)
        if packet.type is PacketType.COMMAND and packet.body.op == CommandOp.SEARCH
    ]


def tell(
    peer: RootPeer, token: int, node: int, *, mote: int = NO_NODE, tree: int = 0, frames: int = 0
) -> None:
    hops = 0 if node == 2 and mote == NO_NODE else 1
    fields = {"node": node, "token": token, "mote": mote, "tree": tree, "hops": hops, "frames": frames}
    peer.waiting.append(codec.encode(PacketType.FOUND, **fields))


def test_progress_is_told_until_all_have_answered(peer: RootPeer, url: str) -> None:
    process = start(url, "room", "=", "4", "--mote", "2")
    assert process.stderr is not None
    assert process.stdout is not None
    waits = process.stderr.readline()
    wait_for(lambda: searches(peer))
    [sent] = searches(peer)
    wait = SearchCommand.parse(bytes(sent.arguments)).wait
    assert wait > 1
    assert waits == (
        f"0 s: mote 2 waits until the motes have trees and summaries for room: {wait} control windows, one each 4 s, in a slow network "
        "each 16 s\n"
    )
    for tree in range(3):
        tell(peer, sent.token, 2, tree=tree, frames=tree == 0)
    tell(peer, sent.token, 7, tree=0x80)
    asked = " s: asked: 2 of 4 motes; answered: 0 of 1 known to have it\n"
    assert any(line.endswith(asked) for line in process.stderr)
    tell(peer, sent.token, 2, mote=7)
    assert process.wait(60) == 0
    assert process.stdout.read().splitlines()[0] == "mote 7: 1 hop to mote 2"


def test_ctrl_c_says_what_is_known_by_then(url: str) -> None:
    process = start(url, "room", "=", "4", "--mote", "2")
    assert process.stderr is not None
    assert process.stdout is not None
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 1
    assert process.stderr.read() == "the motes go on searching all the same; what is known by now:\n"
    found, begun = process.stdout.read().splitlines()
    assert found.startswith("0 found by mote 2; 0 of 4 motes asked;")
    assert begun.startswith("mote 2 has not begun: ")


def test_a_mote_that_is_not_in_the_network_is_refused_and_nothing_sent(peer: RootPeer, url: str) -> None:
    process = start(url, "room", "=", "4", "--mote", "9")
    out, told = process.communicate(timeout=600)
    assert (process.returncode, out) == (1, "")
    assert told == "skerry: mote 9 is not in the network of root 0: its motes are 0 to 3, 7\n"
    assert searches(peer) == []


def test_the_root_may_search_before_any_mote_has_reported() -> None:
    check_seeker(0, 0, [])
    with pytest.raises(QueryError) as refused:
        check_seeker(1, 0, [])
    assert refused.value.summary == "mote 1 is not in the network of root 0: its motes are 0"
