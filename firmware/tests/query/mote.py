"""A mote's query engine in this process: the firmware's C code over the environment of environment.c."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skerry_protocol import codec, dissemination, limits, records
from skerry_protocol.attributes import ValueFormat
from skerry_protocol.codes import PacketType
from skerry_protocol.limits import FRAGMENT_MAXIMUM, QUERIES_MAXIMUM

SECOND = limits.TICKS_PER_SECOND
STORED, COMPLETE, KNOWN, REFUSED, PASSED = range(5)
NO_LEVEL = limits.NO_LEVEL


class _Record(ctypes.Structure):
    _fields_ = (
        ("local", ctypes.c_uint32),
        ("type", ctypes.c_uint8),
        ("length", ctypes.c_uint8),
        ("body", ctypes.c_uint8 * 128),
    )


class _Refusal(ctypes.Structure):
    _fields_ = (("query", ctypes.c_uint8), ("reason", ctypes.c_uint8), ("missing", ctypes.c_uint16))


@dataclass(frozen=True)
class Record:
    """A record that the engine queued, and the local time in ticks when it did."""

    local: int
    type: PacketType
    body: Any


def field(format: ValueFormat, code: bytes, aggregate: int = 0) -> dict[str, Any]:
    """One column of a program."""
    return {"format": format.code, "aggregate": aggregate, "code": code}


def program(
    fields: Sequence[dict[str, Any]],
    *,
    where: bytes = b"",
    period: int = 1000,
    flags: int = 0,
    start: int = 0,
    end: int = limits.FOREVER,
) -> bytes:
    """A serialized program; ``period`` in ms, ``start`` and ``end`` in network seconds."""
    return codec.encode_program(
        flags=flags, period=period, start=start, end=end, where=where, fields=list(fields)
    )


def fragments(data: bytes, query: int, version: int = 1) -> list[bytes]:
    """QUERY_INSTALL bodies of a program, in order."""
    return [
        dissemination.QueryInstall.build(
            {
                "query_version": version,
                "query": query,
                "total": len(data),
                "offset": offset,
                "data": data[offset : offset + FRAGMENT_MAXIMUM],
            }
        )
        for offset in range(0, len(data), FRAGMENT_MAXIMUM)
    ]


class Mote:
    """The library's single mote; every instance begins with a reset."""

    def __init__(self, library: Path, local: int = 0) -> None:
        self._c = ctypes.CDLL(str(library))
        self._c.environment_record.restype = ctypes.POINTER(_Record)
        for name in ("environment_local", "environment_last_mask", "app_rows"):
            getattr(self._c, name).restype = ctypes.c_uint32
        for name in ("environment_acquisitions", "environment_reads", "environment_records", "app_refused"):
            getattr(self._c, name).restype = ctypes.c_uint16
        for name in ("app_held", "app_fragment", "app_child_state"):
            getattr(self._c, name).restype = ctypes.c_uint8
        for name in (
            "app_epoch_in",
            "app_merge",
            "app_superfluous",
            "app_alike",
            "vm_accepts",
            "environment_foreign_acquisition",
        ):
            getattr(self._c, name).restype = ctypes.c_bool
        self._c.environment_reset(ctypes.c_uint32(local))

    def synchronise(self, seconds: float, ppm: int = 0) -> None:
        """Network time is ``seconds`` now and runs ``ppm`` faster than the mote's clock."""
        whole, ticks = divmod(round(seconds * SECOND), SECOND)
        self._c.environment_synchronise(ctypes.c_uint32(whole), ctypes.c_uint16(ticks), ctypes.c_int32(ppm))

    def run(self, seconds: float) -> None:
        """Run for that much local time."""
        self._c.environment_run(ctypes.c_uint32(round(seconds * SECOND)))

    @property
    def local(self) -> int:
        """Local time in ticks."""
        return int(self._c.environment_local())

    def sensor(self, attribute: int, value: int | None) -> None:
        """The sensor exists from now on; None: it fails."""
        self._c.environment_sensor(
            ctypes.c_uint8(attribute), ctypes.c_int32(value or 0), ctypes.c_bool(value is None)
        )

    def acquisition_time(self, seconds: float) -> None:
        """How long each acquisition takes."""
        self._c.environment_acquisition_time(ctypes.c_uint32(round(seconds * SECOND)))

    def foreign_acquisition(self) -> bool:
        """Somebody else occupies the sensors."""
        return bool(self._c.environment_foreign_acquisition())

    @property
    def acquisitions(self) -> int:
        """Acquisitions begun."""
        return int(self._c.environment_acquisitions())

    def reads(self, attribute: int) -> int:
        """Acquisitions begun that an attribute was one of."""
        return int(self._c.environment_reads(ctypes.c_uint8(attribute)))

    @property
    def last_mask(self) -> int:
        """Attributes of the last acquisition."""
        return int(self._c.environment_last_mask())

    def identify(self, node: int) -> None:
        """Another short address than 7."""
        self._c.environment_identify(ctypes.c_uint16(node))

    def ways(self, room: int) -> None:
        """Ways have room for so many records from now on."""
        self._c.environment_ways(ctypes.c_uint8(room))

    def round(self) -> None:
        """A round begins: what waits for ways may go."""
        self._c.app_rows_due(ctypes.c_bool(True))

    def carried(self) -> tuple[int, bytes] | None:
        """The last record that a way was given since this was asked, and where to."""
        to, record = ctypes.c_uint16(), (ctypes.c_uint8 * 64)()
        length = self._c.environment_carried(ctypes.byref(to), record) & 0xFF
        return (to.value, bytes(record[:length])) if length else None

    def arrives(self, record: bytes) -> bool:
        """A row comes by a way; whether it is well formed."""
        return bool(self._c.app_row(record, ctypes.c_uint8(len(record))) & 1)

    def gathers(self, record: bytes) -> bool:
        """What another mote has found of an index's tuples comes; whether it is of a question of this one."""
        return bool(self._c.app_gathered(record, ctypes.c_uint8(len(record))) & 1)

    def lost(self, record: bytes) -> None:
        """A row has got no further than here."""
        self._c.app_row_lost(record, ctypes.c_uint8(len(record)))

    @property
    def trails(self) -> int:
        """Times that it has asked to be found."""
        return int(self._c.environment_trails()) & 0xFF

    def root(self, root: bool) -> None:
        """Whether it is a root."""
        self._c.environment_root(ctypes.c_bool(root))

    def tree(self, parent: int, level: int) -> None:
        """Place in the tree; level 255: none."""
        self._c.environment_tree(ctypes.c_uint16(parent), ctypes.c_uint8(level))

    def install_fragment(self, body: bytes) -> int:
        """One QUERY_INSTALL body; the outcome."""
        return int(self._c.app_install(body, ctypes.c_uint8(len(body))))

    def install(self, data: bytes, query: int, version: int = 1) -> int:
        """A whole program; the outcome of its last fragment."""
        return [self.install_fragment(body) for body in fragments(data, query, version)][-1]

    def stop(self, query: int) -> None:
        """Stop a query; 0: all."""
        self._c.app_stop(ctypes.c_uint8(query))

    def queries(self) -> list[int]:
        """Ids held whole."""
        ids = (ctypes.c_uint8 * QUERIES_MAXIMUM)()
        count = self._c.app_held(ids)
        return list(ids)[:count]

    def fragment(self, query: int, offset: int) -> bytes:
        """QUERY_INSTALL body for a neighbour, its query_version 0; empty past the end."""
        body = (ctypes.c_uint8 * (limits.PACKET_MAXIMUM - 2))()
        length = self._c.app_fragment(ctypes.c_uint8(query), ctypes.c_uint8(offset), body)
        return bytes(body)[:length]

    def epoch_in(self, second: int) -> bool:
        """Whether an epoch begins in that network second."""
        return bool(self._c.app_epoch_in(ctypes.c_uint32(second)))

    def merge(self, into: bytes, record: bytes) -> bytes | None:
        """The merged partial state record, or None where the shapes differ."""
        buffer = ctypes.create_string_buffer(into, len(into))
        return buffer.raw if self._merge(buffer, record) else None

    def _merge(self, buffer: ctypes.Array[ctypes.c_char], record: bytes) -> bool:
        sizes = [ctypes.c_uint8(len(data)) for data in (buffer, record)]
        return bool(self._c.app_merge(buffer, sizes[0], record, sizes[1]))

    def superfluous(self, own: bytes, heard: bytes) -> bool:
        """Whether a partial state record changes nothing in another."""
        sizes = [ctypes.c_uint8(len(data)) for data in (own, heard)]
        return bool(self._c.app_superfluous(own, sizes[0], heard, sizes[1]))

    def alike(self, own: bytes, heard: bytes) -> bool:
        """Whether a mote may count as another one, of an approximate query."""
        sizes = [ctypes.c_uint8(len(data)) for data in (own, heard)]
        return bool(self._c.app_alike(own, sizes[0], heard, sizes[1]))

    def child(self, node: int, record: bytes) -> bytes:
        """A child's partial state record comes; what of it is passed on."""
        return record[: self._c.app_child_state(ctypes.c_uint16(node), record, ctypes.c_uint8(len(record)))]

    def row(self, record: bytes) -> bool:
        """A row of a mote below comes; whether it goes on up."""
        self._c.app_child_row.restype = ctypes.c_bool
        return bool(self._c.app_child_row(record, ctypes.c_uint8(len(record))))

    def fill(self) -> None:
        """The children have sent: silent ones are counted."""
        self._c.app_fill_in()

    @property
    def rows(self) -> int:
        """Rows and partial state records produced."""
        return int(self._c.app_rows())

    @property
    def memory_free(self) -> int:
        """Bytes that its queries leave of those they share."""
        self._c.memory_free.restype = ctypes.c_uint16
        return int(self._c.memory_free())

    def refusal(self) -> tuple[int, int, int]:
        """What the gateway was told last: query, reason, bytes missing."""
        self._c.environment_refusal.restype = ctypes.POINTER(_Refusal)
        told = self._c.environment_refusal().contents
        return told.query, told.reason, told.missing

    @property
    def refusals(self) -> int:
        """How often the gateway was told that a query is refused."""
        return int(self._c.environment_refusals())

    @property
    def signals(self) -> int:
        """Events raised."""
        return int(self._c.environment_signals())

    @property
    def signal_value(self) -> int:
        """What the last event raised says."""
        return int(self._c.environment_signal_value())

    def signal_room(self, room: bool) -> None:
        """Whether floods have room for events; one that finds none is tried again in a control window."""
        self._c.environment_signal_room(ctypes.c_bool(room))

    def window(self) -> None:
        """A control window begins."""
        self._c.app_window()

    @property
    def actions(self) -> tuple[int, int, int]:
        """Commands run, and the last one's operation and argument."""
        operation, argument = divmod(self._c.environment_action(), 1 << 16)
        return int(self._c.environment_actions()), operation, argument

    def event(
        self, number: int, node: int, seconds: int, x: int = 0, y: int = 0, value: int = -(2**31)
    ) -> None:
        """An event comes in: its number, the mote that raised it and where, cm, when, network seconds, and its value (NULL)."""
        fields = {"event": number, "node": node, "x": x, "y": y, "seconds": seconds, "value": value}
        self._c.app_event(bytes(records.Event.build(fields)))

    def was_refused(self, query: int) -> bool:
        """Whether the mote remembers that it refused the query."""
        self._c.app_refused_lately.restype = ctypes.c_bool
        return bool(self._c.app_refused_lately(ctypes.c_uint8(query)))

    @property
    def refused(self) -> int:
        """Programs refused."""
        return int(self._c.app_refused())

    def records(self) -> Iterator[Record]:
        """Records queued since the last call, decoded."""
        for index in range(self._c.environment_records()):
            record = self._c.environment_record(ctypes.c_uint16(index)).contents
            packet = codec.decode_record(record.type, bytes(record.body[: record.length]))
            yield Record(record.local, packet.type, packet.body)
        self._c.environment_forget_records()

    def accepts(self, code: bytes) -> bool:
        """Whether vm_check accepts the code."""
        return bool(self._c.vm_accepts(code, ctypes.c_uint8(len(code))))

    def evaluate(self, code: bytes, rows: Sequence[Sequence[int | None]]) -> list[int | None]:
        """Value of checked code for each row; a row holds attribute values by number, None for NULL."""
        width = len(rows[0])
        values = (ctypes.c_int32 * (width * len(rows)))(*[value or 0 for row in rows for value in row])
        nulls = (ctypes.c_uint32 * len(rows))(
            *[sum(1 << n for n, value in enumerate(row) if value is None) for row in rows]
        )
        results = (ctypes.c_int32 * len(rows))()
        known = (ctypes.c_uint8 * len(rows))()
        self._c.vm_run_rows(
            code, ctypes.c_uint8(len(code)), values, nulls, ctypes.c_uint32(width),
            ctypes.c_uint32(len(rows)), results, known,
        )  # fmt: skip
        return [value if flag else None for value, flag in zip(results, known, strict=True)]
