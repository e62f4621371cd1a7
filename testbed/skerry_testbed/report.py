"""What a run came to: energy, duty cycle and frames per mote; yield and latency per query."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from skerry_protocol import codec, framing, mac
from skerry_protocol.packets import PacketError, PacketType, VersionMismatchError

from skerry_testbed.core import AirFrame, World
from skerry_testbed.network import Mote

Key = tuple[int, int, int]


@dataclass
class _Query:
    produced: dict[Key, int] = field(default_factory=dict)
    delivered: dict[Key, int] = field(default_factory=dict)
    duplicates: int = 0


class Observer:
    """Watches the air and the root's serial line. Rows are (query, node, epoch); a partial state record is counted by its epoch, as
    node -1."""

    def __init__(self) -> None:
        self._deframer = framing.Deframer()
        self._queries: dict[int, _Query] = defaultdict(_Query)
        self._status: dict[int, Any] = {}
        self._frames: Counter[int] = Counter()
        self._repeated: Counter[int] = Counter()
        self._lost: Counter[int] = Counter()
        self._last_sequence: dict[int, int] = {}
        self._last_link_sequence = -1

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
        except (PacketError, VersionMismatchError):
            return
        if packet.type is PacketType.BUNDLE:
            for record in packet.body.records:
                if record.type == PacketType.RESULT:
                    self._row(codec.decode_record(record.type, record.body), frame.start_ns, delivered=False)

    def line(self, data: bytes, now_ns: int) -> None:
        """Bytes that the root sent."""
        for frame in self._deframer.feed(data):
            if frame.kind is not framing.FrameKind.DATA:
                continue
            try:
                packet = codec.decode(frame.payload)
            except (PacketError, VersionMismatchError):
                continue
            if packet.type in (PacketType.RESULT, PacketType.PARTIAL):
                again = frame.sequence == self._last_link_sequence
                self._row(packet, now_ns, delivered=True, again=again)
            elif packet.type is PacketType.STATUS:
                self._status[packet.body.node] = packet.body
            self._last_link_sequence = frame.sequence

    def _row(self, packet: codec.Packet, now_ns: int, *, delivered: bool, again: bool = False) -> None:
        body = packet.body
        key = (body.query, body.node if packet.type is PacketType.RESULT else -1, body.epoch)
        query = self._queries[body.query]
        query.produced.setdefault(key, now_ns)
        if delivered:
            if key in query.delivered and key[1] >= 0 and not again:
                query.duplicates += 1
            query.delivered.setdefault(key, now_ns)

    def report(self, world: World, motes: list[Mote], name: str, seed: int) -> dict[str, Any]:
        """The whole report; lists by mote and by query."""
        return {
            "name": name,
            "seed": seed,
            "duration_s": world.now_ns / 1e9,
            "motes": [self._mote(world, index, mote) for index, mote in enumerate(motes)],
            "queries": [self._query(number, query) for number, query in sorted(self._queries.items())],
            "line_errors": self._deframer.errors.frames,
        }

    def _mote(self, world: World, index: int, mote: Mote) -> dict[str, Any]:
        energy, counters = world.energy(index), world.counters(index)
        radio_s = sum(energy[f"radio_{state}_s"] for state in ("idle", "rx", "tx"))
        alive_s = radio_s + energy["radio_sleep_s"] + energy["radio_off_s"]
        joule = {key.removesuffix("_j"): value for key, value in energy.items() if key.endswith("_j")}
        status = self._status.get(mote.id)
        return {
            "node": mote.id,
            "board": mote.board,
            "alive": world.alive(index),
            "fault": world.fault(index),
            "level": None if status is None or status.level == 255 else status.level,
            "parent": None if status is None or status.parent == 65535 else status.parent,
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
                "cca_busy": counters["cca_busy"],
            },
            "resets": counters["resets"],
            "dropped": None if status is None else status.dropped,
        }

    def _query(self, number: int, query: _Query) -> dict[str, Any]:
        waits = [(arrived - query.produced[key]) / 1e9 for key, arrived in query.delivered.items() if key[1] >= 0]
        produced = len(query.produced)
        return {
            "query": number,
            "produced": produced,
            "delivered": len(query.delivered),
            "yield": len(query.delivered) / produced if produced else None,
            "duplicates": query.duplicates,
            "latency_s": {"median": statistics.median(waits), "maximum": max(waits)} if waits else None,
        }
