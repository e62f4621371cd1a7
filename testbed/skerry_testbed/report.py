"""What a run came to: energy, duty cycle and frames per mote; yield and latency per query."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from skerry_protocol import codec, framing, mac
from skerry_protocol.codes import PacketType
from skerry_protocol.errors import PacketError, VersionMismatchError
from skerry_protocol.limits import NO_LEVEL, NO_NODE
from skerry_testbed.core import AirFrame, World
from skerry_testbed.network import Mote

#: A row that was first seen this shortly before the end of a run may still be under way, s.
UNDER_WAY_S = 10.0
#: In place of a node: a partial state record, which is many motes'.
MERGED = -1

#: Records of a bundle that a report is made of.
_TOLD = (PacketType.RESULT, PacketType.PARTIAL, PacketType.STATUS)

#: Session of the root (its epochs begin anew when it reboots), query, node, epoch.
Key = tuple[int, int, int, int]


@dataclass
class _Query:
    """Virtual ns at which rows were first seen anywhere, and at which they came out of the root."""

    produced: dict[Key, int] = field(default_factory=dict)
    delivered: dict[Key, int] = field(default_factory=dict)
    duplicates: int = 0
    merged: Counter[Key] = field(default_factory=Counter)


class Observer:
    """Watches the air and the root's serial line. What counts as a row: (query, node, epoch) of a plain query, (query, epoch) of
    an aggregate, whose partial state records may come in several parts."""

    def __init__(self) -> None:
        self._deframer = framing.Deframer()
        self._queries: dict[int, _Query] = defaultdict(_Query)
        self._status: dict[int, Any] = {}
        #: Level and parent by each mote's last beacon.
        self._trees: dict[int, tuple[int, int]] = {}
        self._frames: Counter[int] = Counter()
        self._repeated: Counter[int] = Counter()
        self._lost: Counter[int] = Counter()
        self._last_sequence: dict[int, int] = {}
        self._expected = 0
        self._session = 0

    def air(self, frame: AirFrame) -> None:
        """A frame that was on the air."""
        try:
            decoded = mac.decode(frame.psdu)
            if decoded is None:
                return
            self._frames[frame.sender] += 1
            if self._last_sequence.get(frame.sender) == decoded.sequence:
                self._repeated[frame.sender] += 1
            self._last_sequence[frame.sender] = decoded.sequence
            self._lost[frame.sender] += frame.received_by == 0
            packet = codec.decode(decoded.payload)
            if packet.type is PacketType.BUNDLE:
                for record in packet.body.records:
                    if record.type in _TOLD:
                        self._record(codec.decode_record(record.type, record.body), frame.start_ns)
            elif packet.type is PacketType.BEACON:
                self._trees[decoded.source] = (packet.body.level, packet.body.parent)
        except (PacketError, VersionMismatchError):
            return

    def _record(self, packet: codec.Packet, now_ns: int) -> None:
        if packet.type is PacketType.STATUS:
            self._status[packet.body.node] = packet.body
        else:
            self._produced(packet, now_ns)

    def line(self, data: bytes, now_ns: int) -> None:
        """Bytes that the root sent."""
        for frame in self._deframer.feed(data):
            try:
                if frame.kind is framing.FrameKind.DATA:
                    self._data(frame, now_ns)
                elif frame.kind in (framing.FrameKind.RESET, framing.FrameKind.RESET_ACK):
                    self._expected = 0
                    self._session = codec.decode(frame.payload).body.session
            except (PacketError, VersionMismatchError):
                continue

    def _data(self, frame: framing.LinkFrame, now_ns: int) -> None:
        # Go-back-N: what is not the next frame is a repetition, of use to nobody here.
        if frame.sequence != self._expected:
            return
        self._expected = (self._expected + 1) & 0xFF
        packet = codec.decode(frame.payload)
        if packet.type in (PacketType.RESULT, PacketType.PARTIAL):
            self._produced(packet, now_ns)
            self._delivered(packet, now_ns)
        elif packet.type is PacketType.STATUS:
            self._status[packet.body.node] = packet.body

    def _key(self, packet: codec.Packet) -> Key:
        body = packet.body
        return (
            self._session,
            body.query,
            body.node if packet.type is PacketType.RESULT else MERGED,
            body.epoch,
        )

    def _produced(self, packet: codec.Packet, now_ns: int) -> None:
        self._queries[packet.body.query].produced.setdefault(self._key(packet), now_ns)

    def _delivered(self, packet: codec.Packet, now_ns: int) -> None:
        query, key = self._queries[packet.body.query], self._key(packet)
        if packet.type is PacketType.PARTIAL:
            query.merged[key] += packet.body.motes
        elif key in query.delivered:
            query.duplicates += 1
        query.delivered.setdefault(key, now_ns)

    def report(self, world: World, motes: list[Mote], name: str, seed: int) -> dict[str, Any]:
        """The whole report; lists by mote and by query."""
        queries = self.queries(world.now_ns)
        produced, delivered, under_way = (
            sum(query[key] for query in queries) for key in ("produced", "delivered", "under_way")
        )
        dropped = sum(status.dropped for status in self._status.values())
        return {
            "name": name,
            "seed": seed,
            "duration_s": world.now_ns / 1e9,
            "rows": {
                "produced": produced,
                "delivered": delivered,
                "under_way": under_way,
                "dropped": dropped,
                "yield": _share(delivered, produced - under_way + dropped),
            },
            "motes": [self._mote(world, index, mote) for index, mote in enumerate(motes)],
            "queries": queries,
            "line_errors": self._deframer.errors.frames,
        }

    def _mote(self, world: World, index: int, mote: Mote) -> dict[str, Any]:
        energy, counters = world.energy(index), world.counters(index)
        radio_s = sum(energy[f"radio_{state}_s"] for state in ("idle", "rx", "tx"))
        alive_s = radio_s + energy["radio_sleep_s"] + energy["radio_off_s"]
        joule = {key.removesuffix("_j"): value for key, value in energy.items() if key.endswith("_j")}
        status = self._status.get(mote.id)
        erasures = world.erasures(index)
        said = (NO_LEVEL, NO_NODE) if status is None else (status.level, status.parent)
        level, parent = self._trees.get(mote.id, said)
        return {
            "node": mote.id,
            "board": mote.board,
            "alive": world.alive(index),
            "fault": world.fault(index),
            "level": None if level == NO_LEVEL else level,
            "parent": None if parent == NO_NODE else parent,
            "energy": {**joule, "total_j": sum(joule.values())},
            "radio_duty_cycle": radio_s / alive_s if alive_s else 0.0,
            "cpu_duty_cycle": energy["cpu_active_s"] / alive_s if alive_s else 0.0,
            "frames": {
                "sent": self._frames[index],
                "retransmitted": self._repeated[index],
                "lost": self._lost[index],
                "received": counters["received"],
                "lost_to_link": counters["lost_link"],
                "lost_to_collision": counters["lost_collision"],
                "lost_to_interference": counters["lost_interference"],
                "overrun": counters["overrun"],
                "cca_busy": counters["cca_busy"],
            },
            "resets": counters["resets"],
            "erasures": {"all": sum(erasures), "most": max(erasures)} if erasures else None,
            "dropped": None if status is None else status.dropped,
        }

    def queries(self, now_ns: int) -> list[dict[str, Any]]:
        """Yield and latency of each query so far."""
        return [self._query(number, query, now_ns) for number, query in sorted(self._queries.items())]

    def _query(self, number: int, query: _Query, now_ns: int) -> dict[str, Any]:
        waits = [
            (arrived - query.produced[key]) / 1e9
            for key, arrived in query.delivered.items()
            if key[2] != MERGED
        ]
        recent = now_ns - round(UNDER_WAY_S * 1e9)
        under_way = sum(seen > recent for key, seen in query.produced.items() if key not in query.delivered)
        produced, delivered = len(query.produced), len(query.delivered)
        return {
            "query": number,
            "produced": produced,
            "delivered": delivered,
            "under_way": under_way,
            "yield": _share(delivered, produced - under_way),
            "duplicates": query.duplicates,
            "latency_s": {"median": statistics.median(waits), "maximum": max(waits)} if waits else None,
            "motes_per_epoch": statistics.mean(query.merged.values()) if query.merged else None,
        }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
