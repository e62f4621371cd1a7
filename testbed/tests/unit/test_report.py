"""Yield, repetitions and latency from what is on the air and on the root's line."""

from skerry_protocol import codec, mac
from skerry_protocol.codes import PacketType
from skerry_protocol.framing import FrameKind, LinkFrame
from skerry_testbed.core import AirFrame
from skerry_testbed.report import Observer

S = 1_000_000_000
END = 100 * S


def row(node: int, epoch: int, query: int = 1) -> dict[str, object]:
    return {"query": query, "node": node, "epoch": epoch, "nulls": 0, "values": b"\0\0"}


def on_air(
    observer: Observer, at: int, sequence: int, *rows: dict[str, object], received_by: int = 1
) -> None:
    records = [
        {"type": PacketType.RESULT, "body": codec.encode(PacketType.RESULT, **fields)[2:]} for fields in rows
    ]
    payload = codec.encode(PacketType.BUNDLE, flags=0, records=records)
    psdu = mac.encode(mac.MacFrame(sequence, 0, 5, payload, acknowledged=True))
    observer.air(AirFrame(at, at + 1000, 5, received_by, psdu))


def at_root(observer: Observer, at: int, sequence: int, type: PacketType, **fields: object) -> None:
    observer.line(LinkFrame(FrameKind.DATA, sequence, codec.encode(type, **fields)).to_bytes(), at)


def reset(observer: Observer, session: int) -> None:
    hello = codec.encode(
        PacketType.HELLO, node=0, session=session, seconds=0, ticks=0, query_version=0, queries=b""
    )
    observer.line(LinkFrame(FrameKind.RESET, 0, hello).to_bytes(), 0)


def test_yield_is_the_share_of_rows_that_reach_the_root() -> None:
    observer = Observer()
    on_air(observer, 1 * S, 1, row(3, 10), row(4, 10))
    on_air(observer, 2 * S, 2, row(3, 11))
    at_root(observer, 3 * S, 0, PacketType.RESULT, **row(3, 10))
    at_root(observer, 3 * S, 1, PacketType.RESULT, **row(0, 10))
    (query,) = observer.queries(END)
    assert (query["produced"], query["delivered"], query["yield"]) == (4, 2, 0.5)
    assert query["latency_s"] == {"median": 1.0, "maximum": 2.0}


def test_rows_just_seen_are_under_way_and_not_lost() -> None:
    observer = Observer()
    on_air(observer, 1 * S, 1, row(3, 10))
    on_air(observer, END - 2 * S, 2, row(3, 11))
    at_root(observer, 3 * S, 0, PacketType.RESULT, **row(3, 10))
    (query,) = observer.queries(END)
    assert (query["produced"], query["under_way"], query["yield"]) == (2, 1, 1.0)


def test_a_row_twice_in_frames_of_their_own_is_a_duplicate() -> None:
    observer = Observer()
    at_root(observer, S, 0, PacketType.RESULT, **row(3, 10))
    at_root(observer, S, 1, PacketType.RESULT, **row(3, 10))
    assert observer.queries(END)[0]["duplicates"] == 1


def test_a_repetition_on_the_line_is_none() -> None:
    observer = Observer()
    for _ in range(2):
        at_root(observer, S, 0, PacketType.RESULT, **row(3, 10))
    at_root(observer, S, 1, PacketType.RESULT, **row(3, 11))
    (query,) = observer.queries(END)
    assert (query["delivered"], query["duplicates"]) == (2, 0)


def test_epochs_of_another_session_are_others() -> None:
    observer = Observer()
    reset(observer, 1)
    at_root(observer, S, 0, PacketType.RESULT, **row(3, 10))
    reset(observer, 2)
    at_root(observer, S, 0, PacketType.RESULT, **row(3, 10))
    (query,) = observer.queries(END)
    assert (query["delivered"], query["duplicates"]) == (2, 0)


def test_partial_records_of_an_epoch_are_one_row_and_their_motes_add_up() -> None:
    observer = Observer()
    for sequence, motes in enumerate((5, 2)):
        states = [{"count": motes, "value": 7}]
        at_root(
            observer,
            S,
            sequence,
            PacketType.PARTIAL,
            query=2,
            epoch=4,
            motes=motes,
            overflow=0,
            states=states,
        )
    (query,) = observer.queries(END)
    assert (query["delivered"], query["duplicates"], query["motes_per_epoch"]) == (1, 0, 7)


def test_what_is_no_packet_is_passed_over() -> None:
    observer = Observer()
    observer.air(AirFrame(0, 1, 2, 0, b"\x12\x34garbage"))
    observer.line(b"\x05garbage\0", 0)
    reset(observer, 1)
    observer.line(LinkFrame(FrameKind.DATA, 0, b"\x63\x10").to_bytes(), 0)
    assert observer.queries(END) == []
