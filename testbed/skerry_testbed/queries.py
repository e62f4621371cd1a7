"""Queries of tests over emulated motes: planned by the gateway's planner, put to the root's line, and their rows decoded."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from skerry.planner.features.srt import Srt, Values, no_values
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.model.storage_points import Point, Points
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.physical.srt_routes import routed
from skerry.planner.planner import NO_POINTS, plan_point, plan_query, plan_srt
from skerry.sql.ast import CreatePoint, CreateSrt
from skerry_protocol.codec import Packet, Result, decode_values
from skerry_protocol.codes import PacketType
from skerry_protocol.limits import FOREVER
from skerry_testbed.line import Line, Record
from skerry_testbed.pytest import NetworkHandle

#: Network seconds from an installation to the first epoch: two control windows.
LEAD_S = 10


def create(net: NetworkHandle, query: int, sql: str, points: dict[str, Point]) -> MoteQuery:
    """Make a storage point and add it to ``points``."""
    statement = plan_query(sql, points)
    assert isinstance(statement, CreatePoint)
    point, plan = plan_point(statement, 0x4000 + query, points)
    points[point.name.lower()] = point
    return _install(net, query, plan, FOREVER)


def create_srt(net: NetworkHandle, query: int, sql: str, values: Values = no_values) -> Srt:
    """Make a semantic routing tree. ``values``: what the gateway knows of the motes' attributes."""
    statement = plan_query(sql)
    assert isinstance(statement, CreateSrt)
    srt, plan = plan_srt(statement, 0x40 + query, values=values)
    _install(net, query, plan, FOREVER)
    return srt


def ask(
    net: NetworkHandle,
    query: int,
    sql: str,
    *,
    end: int = FOREVER,
    points: Points = NO_POINTS,
    srts: Sequence[Srt] = (),
    lead_s: int = LEAD_S,
) -> MoteQuery:
    """Install a query; its first epoch begins within ``lead_s`` and a period."""
    plan = plan_query(sql, points)
    assert isinstance(plan, QueryPlan)
    return _install(net, query, plan, end, srts, lead_s)


def _install(
    net: NetworkHandle, query: int, plan: QueryPlan, end: int, srts: Sequence[Srt] = (), lead_s: int = LEAD_S
) -> MoteQuery:
    mote_query = routed(merge([plan]), srts)
    start = int(net.line.network_time()) + lead_s
    if plan.duration_ms is not None:
        end = start + plan.duration_ms // 1000
    net.line.install(query, encode(mote_query, start, end))
    return mote_query


def rows(line: Line, query: int, mote_query: MoteQuery) -> list[dict[str, Any]]:
    """Rows of a query: node, epoch, when it arrived, what its mote's queue made of it, and columns in SI, None for NULL."""
    found = [_row(record, mote_query) for record in line.of(PacketType.RESULT, query)]
    for record in line.of(PacketType.SERIES, query):
        found += _series(record, mote_query)
    return found


def _series(record: Record, mote_query: MoteQuery) -> list[dict[str, Any]]:
    body, size = record.body, sum(column.format.size for column in mote_query.columns)
    found = []
    for i in range(len(body.values) // size):
        values = body.values[i * size :][:size]
        row = Result(query=body.query, node=body.node, epoch=body.epoch + i, nulls=0, values=values)
        found.append(_row(Record(record.at, Packet(PacketType.RESULT, row)), mote_query))
    return found


def _row(record: Record, mote_query: MoteQuery) -> dict[str, Any]:
    body = record.body
    layout = struct.Struct("<" + "".join(c.format.letter for c in mote_query.columns))
    values, combined, left_out = decode_values(body.values, layout)
    row: dict[str, Any] = {"nodeid": body.node, "epoch": body.epoch, "at": record.at}
    row |= {"combined": combined, "left_out": left_out}
    for i, (column, value) in enumerate(zip(mote_query.columns, values, strict=True)):
        row[column.name] = (
            None if body.nulls >> i & 1 else value / 10**column.digits if column.digits else value
        )
    return row


def senders(net: NetworkHandle, query: int, kind: PacketType = PacketType.RESULT) -> set[int]:
    """Motes that sent rows of a query, or its records of another kind: their own or others'."""
    return {
        mac.source
        for _, mac, packet in net.packets()
        if packet.type is PacketType.BUNDLE
        for record in packet.body.records
        if record.type == kind and record.body[0] == query
    }
