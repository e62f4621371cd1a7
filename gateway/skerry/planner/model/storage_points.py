"""Storage points: the rows that queries leave on their motes, for other queries to read. Source: TinyDB 2005, 3.2."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from skerry_protocol.attributes import ValueFormat
from skerry_protocol.codes import StoreFlag
from skerry_protocol.limits import STORE_BLOCK
from skerry_protocol.programs import Store

#: A point whose rows take no more bytes on each mote lies in RAM, a larger one in EEPROM or flash.
RAM_BYTES = 256
#: Blocks that every board has: the IRIS's 4 KB of EEPROM without its settings.
BLOCKS = 63
#: EEPROM takes a byte in 3.4 ms: a sample period below this, in ms, is too fast for it.
FLASH_PERIOD_MS = 250
#: Bytes beside the values of a row: its time and which of its values are NULL; in EEPROM its number and a checksum.
RAM_HEADER, _FLASH_HEADER = 8, 14


@dataclass(frozen=True, slots=True)
class PointField:
    """A field: its value is ``integer * 10**-digits`` in ``unit``; ``low`` and ``high`` bound the integer."""

    name: str
    format: ValueFormat
    digits: int
    unit: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Point:
    """A storage point, of which each mote has its own rows.

    ``number``: how motes call it. ``seconds``: rows older than that are not seen, 0: all are. ``period_ms``: of the
    query that fills it, None where it is filled by INTO. ``block``: first of its blocks in EEPROM or flash, None in RAM.
    """

    name: str
    number: int
    fields: tuple[PointField, ...]
    rows: int
    circular: bool
    seconds: int = 0
    period_ms: int | None = None
    block: int | None = None

    @property
    def bytes(self) -> int:
        """What its rows take on each mote."""
        return kept(self.rows, self.circular) * row_bytes(self.fields, flash=self.block is not None)

    @property
    def blocks(self) -> int:
        """Blocks of EEPROM or flash; 0 in RAM."""
        return 0 if self.block is None else blocks_for(kept(self.rows, self.circular), self.fields)

    def encode(self) -> tuple[int, ...]:
        """A Store."""
        flags = (StoreFlag.CIRCULAR if self.circular else 0) | (
            StoreFlag.FLASH if self.block is not None else 0
        )
        values = {"point": self.number, "rows": self.rows, "seconds": self.seconds, "flags": flags}
        return tuple(Store.build({**values, "block": self.block or 0, "blocks": self.blocks}))

    def field(self, name: str) -> int | None:
        """Index of a field by its name in any case."""
        names = [field.name.lower() for field in self.fields]
        return names.index(name.lower()) if name.lower() in names else None

    def to_dict(self) -> dict[str, object]:
        """For people and programs."""
        return {
            "name": self.name,
            "fields": [{"name": f.name, "unit": f.unit, "digits": f.digits} for f in self.fields],
            "rows": self.rows,
            "seconds": self.seconds or None,
            "circular": self.circular,
            "memory": "RAM" if self.block is None else "EEPROM or flash",
            "bytes": self.bytes,
        }


#: By name in lower case.
Points = Mapping[str, Point]


def kept(rows: int, circular: bool) -> int:
    """Rows that motes keep, of which they show so many: see capacity() in firmware/query/operators/storage.c."""
    return rows + circular


def row_bytes(fields: Collection[PointField], *, flash: bool) -> int:
    """Bytes of a row with these fields."""
    return (_FLASH_HEADER if flash else RAM_HEADER) + sum(field.format.size for field in fields)


def blocks_for(rows: int, fields: Collection[PointField]) -> int:
    """Blocks that so many rows take. Two at least: flash erases one while the other keeps the rows."""
    return max(2, -(-rows * row_bytes(fields, flash=True) // STORE_BLOCK))


def free_block(blocks: int, points: Collection[Point]) -> int | None:
    """Where so many blocks are free beside these points; None: nowhere."""
    taken = sorted((point.block, point.blocks) for point in points if point.block is not None)
    at = 0
    for block, length in taken:
        if block - at >= blocks:
            return at
        at = block + length
    return at if BLOCKS - at >= blocks else None
