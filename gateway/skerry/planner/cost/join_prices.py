"""What a hop of a join's row or answer costs, in bytes or in J, by the frames of docs/protocol.md and the cells of docs/routing.md."""

from __future__ import annotations

from skerry.joins.placement.prices import Prices
from skerry.planner.cost import radio

#: Bytes before values, of a RESULT; of a row on a way: what it is, query, roles, epoch; of an answer: query, motes, epochs, NULLs.
_ROW, _CARRIED, _ANSWER = 9, 7, 15
#: Around a record on a way: preamble and SFD 5, length 1, MAC header 9, FCS 2, packet header 2, CARRIED 9.
WAY_FRAME_BYTES = 28
#: Around the records of a frame up the tree, each of which has 2 bytes more; and what records have room for in a frame of 127 bytes.
RECORD_BYTES = 2
FRAME_BYTES = radio.FRAME_BYTES - RECORD_BYTES
ROOM = 127 + 6 - FRAME_BYTES
_AROUND = radio.on_air(FRAME_BYTES)
#: A listener has its radio on for so long where nothing comes.
CELL_SECONDS = 0.008
#: In an epoch of a join, in which not each mote has something to say, a parent listens to a child that says nothing in so many rounds
#: (SILENT_ROUNDS of firmware/net/net_conf.h), and to one that has sent in the next one, too, as its acknowledgement may have been lost
#: (NEIGHBOUR_DONE_ROUNDS of firmware/net/routing/neighbours.h).
CHILD_CELLS = 2
#: A way's cells are in one round, of 1 s, of 2 to a power from the first to the second of these (WAY_EVERY_LEAST and WAY_EVERY_MOST,
#: firmware/net/transport/transport_conf.h).
EVERY = (2, 8)
#: So many cells at least come in a sample period where the power is more than the least: a record that is repeated, or waits behind
#: another, is to be there before the next one (every(), firmware/query/operators/meet_ways.c).
CELLS_IN_PERIOD = 4
#: S after which an empty row keeps a way of most cells open, longer by as much as others have fewer (MEET_KEPT_OPEN, query_conf.h).
KEPT_OPEN = 32


def row_bytes(values: int) -> int:
    """Of a row's record up the tree, values of 16 bits."""
    return _ROW + 2 * values


def carried_bytes(values: int) -> int:
    """Of its record on a way."""
    return _CARRIED + 2 * values


def answer_bytes(values: int) -> int:
    """Of an answer's record up the tree."""
    return _ANSWER + 2 * values


def way_cells(period_s: float) -> float:
    """Cells of a way in a sample period, as motes choose how often they come."""
    return period_s / (1 << _every(period_s))


def kept_rows(period_s: float) -> float:
    """Empty rows in a sample period, where nothing else goes by a way."""
    return period_s / (KEPT_OPEN << _every(period_s) - EVERY[0])


def _every(period_s: float) -> int:
    power = EVERY[0]
    while power < EVERY[1] and CELLS_IN_PERIOD << power + 1 <= period_s:
        power += 1
    return power


def way_seconds(size: int) -> float:
    """Time on the air of a record of so many bytes on a way, and of its acknowledgement."""
    return radio.on_air(size + WAY_FRAME_BYTES)


def prices(unit: str, row_values: int, answer_values: int, period_s: float) -> Prices:
    """``bytes`` or ``energy``, of rows and answers of so many values of 16 bits, each alone in its frame."""
    row, answer, carried = row_bytes(row_values), answer_bytes(answer_values), carried_bytes(row_values)
    room = ROOM / (RECORD_BYTES + max(row, answer))
    times = radio.record_seconds(row), way_seconds(carried), radio.record_seconds(answer)
    if unit == "bytes":
        each = [radio.bytes_in(time) for time in times]
        frame = radio.bytes_in(_AROUND)
        kept, cells = kept_rows(period_s), way_cells(period_s)
        return Prices(unit, each[0], each[1], each[2], frame=frame, room=room, kept=kept, cells=cells)
    cell = radio.listening(CELL_SECONDS)
    each = [radio.both_ends(time) for time in times]
    listened = CHILD_CELLS * cell, way_cells(period_s) * cell
    return Prices(
        unit,
        each[0],
        each[1],
        each[2],
        *listened,
        frame=radio.both_ends(_AROUND),
        room=room,
        kept=kept_rows(period_s),
        cells=way_cells(period_s),
    )
