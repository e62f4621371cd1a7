"""QUEUE: what motes are told, who shares it, and the order that the gateway restores."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.execution.residual import Residual, Rows
from skerry.execution.stream_batches import stream_batch
from skerry.ingest.ingest import Ingest
from skerry.ingest.reorder import FILE, Reorder
from skerry.planner.features.queueing import held_ms
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry.service.explain import explain, explain_text
from skerry.sharing.demand import Demand
from skerry.storage.log.stream_log import StreamLog, read
from skerry.streams.stream import Source, Stream
from skerry_protocol import codec
from skerry_protocol.codec import Packet, decode_program
from skerry_protocol.codes import Aggregate, PacketType
from skerry_protocol.programs import Queue
from skerry_protocol.records import Tally

DELTA = "SELECT light FROM sensors SAMPLE PERIOD 1 s QUEUE DELTA SIZE 5 SEND PERIOD 4 s"


def plan(text: str) -> QueryPlan:
    result = plan_query(text)
    assert isinstance(result, QueryPlan)
    return result


def test_the_program_says_policy_size_and_rate() -> None:
    fields = decode_program(encode(merge([plan(DELTA)]), 0)).fields
    (clause,) = [field for field in fields if field.aggregate == Aggregate.QUEUE]
    assert dict(Queue.parse(clause.code), _io=None) == {"policy": 2, "size": 5, "every": 4, "_io": None}


@pytest.mark.parametrize("clause", ["", "QUEUE NAIVE", "QUEUE naive SEND PERIOD 1 s"])
def test_what_motes_do_anyway_is_no_clause(clause: str) -> None:
    assert plan(f"SELECT light FROM sensors {clause} SAMPLE PERIOD 1 s").clauses == ()


def test_users_share_a_queue_only_where_it_does_the_same() -> None:
    demand = Demand()
    queries = {
        "plain": "SELECT light FROM sensors SAMPLE PERIOD 1 s",
        "naive": "SELECT light FROM sensors SAMPLE PERIOD 1 s QUEUE NAIVE",
        "delta": DELTA,
        "delta, too": DELTA.replace("light FROM", "light * 2, left_out FROM").replace("1 s", "1 s FOR 100 s"),
        "delta of more": DELTA.replace("light FROM", "light, temp FROM"),
        "longer": DELTA.replace("SIZE 5", "SIZE 6"),
        "winavg": DELTA.replace("DELTA", "WINAVG"),
        "slower": DELTA.replace("1 s", "2 s"),
    }
    for user, text in queries.items():
        demand.add_user(user, plan(text), 100)
    ids = {user: demand.feeds(user)[0].query for user in queries}
    assert ids["plain"] == ids["naive"]
    assert ids["delta"] == ids["delta, too"]
    assert len(set(ids.values())) == len(queries) - 2


def test_explain_names_the_policy() -> None:
    explained = explain(plan(DELTA))
    assert explained["gateway"]["held_ms"] == 20_000
    text = explain_text(explained)
    assert "  queue delta: keep at most 5 rows, send one each 4 s; beyond that the row is left out" in text
    assert "  puts rows in order, 20 s after they were sampled" in text


def test_aligned_epochs_are_held_back_by_their_own_period() -> None:
    """Motes count them on a grid of a second."""
    explained = explain(plan("ON ALIGNED EVENT hot SELECT light SAMPLE PERIOD 10 s FOR 100 s QUEUE DELTA"))
    assert (explained["period_ms"], explained["gateway"]["held_ms"]) == (10_000, 80_000)
    assert "  every 10 s acquire light" in explain_text(explained)


def stream(text: str) -> Stream:
    return Stream(number=1, session=1, query=1, mote_query=merge([plan(text)]))


def row(node: int, epoch: int, light: int, left_out: int = 0, more: int = 0) -> Packet:
    tally = Tally.build({"left_out": left_out, "more": more}) if left_out or more else b""
    values = light.to_bytes(2, "little") + tally
    return codec.decode(
        codec.encode(PacketType.RESULT, query=1, node=node, epoch=epoch, nulls=0, values=values)
    )


def test_rows_say_what_was_combined_and_left_out(tmp_path: Path) -> None:
    text = "SELECT light, combined, left_out FROM sensors WHERE left_out < 7 SAMPLE PERIOD 1 s QUEUE WINAVG"
    of = stream(text)
    ingest, log = Ingest(), StreamLog(tmp_path)
    source = Source({1: of}.get, lambda _: None)
    ingest.store([row(1, 5, 10), row(1, 6, 11, left_out=3, more=2), row(1, 7, 12, left_out=9)], source, log)
    batch = stream_batch(read(log.path, 0, log.rows), of)
    rows, residual = Rows(batch, of.mote_query), Residual(plan(text))
    chosen = np.flatnonzero(rows.evaluate.truth(residual.filter.where, 1000))
    assert residual.project(rows, chosen).to_pylist() == [
        {"light": 10, "combined": 1, "left_out": 0},
        {"light": 11, "combined": 3, "left_out": 3},
    ]


def test_rows_with_half_a_tally_are_refused(tmp_path: Path) -> None:
    ingest, log = Ingest(), StreamLog(tmp_path)
    source = Source({1: stream(DELTA)}.get, lambda _: None)
    packet = row(1, 5, 10, left_out=1)
    packet.body = packet.body._replace(values=packet.body.values[:-1])
    ingest.store([packet], source, log)
    assert (ingest.counters.malformed, log.rows) == (1, 0)


# ---- order ----


class Held:
    """An ingest with a clock that the test moves."""

    def __init__(self, data: Path, query: MoteQuery, current: bool = True) -> None:
        held = held_ms(query)
        self.stream = Stream(number=1, session=1, query=1, mote_query=query)
        self.log = StreamLog(data)
        reorder = Reorder(data, lambda _: (query.period_ms, held) if held and current else None)
        self.ingest = Ingest(reorder)
        self.source = Source({1: self.stream}.get, lambda ms: ms / 1000)
        self.ingest.restore(self.log, {1: self.stream})

    def epochs(self) -> list[int]:
        """Of the rows in the log, in their order."""
        stored: list[int] = read(self.log.path, 0, self.log.rows)["epoch"].tolist()
        return stored


@pytest.mark.slow
@given(delays=st.lists(st.integers(0, 30), min_size=1, max_size=30), seed=st.integers(0, 1000))
def test_rows_that_come_within_the_bound_are_in_order(
    tmp_path_factory: pytest.TempPathFactory, delays: list[int], seed: int
) -> None:
    """Row n was sampled at n s and comes after its delay; the bound is 20 s."""
    held = Held(tmp_path_factory.mktemp("data"), merge([plan(DELTA)]))
    arrivals = sorted(
        range(len(delays)), key=lambda n: (n + delays[n], random.Random(f"{seed} {n}").random())
    )
    for now in range(len(delays) + 60):
        coming = [row(1, n, n) for n in arrivals if n + delays[n] == now]
        if coming:
            held.ingest.store(coming, held.source, held.log, now * 1000)
        else:
            held.ingest.release(held.log, now * 1000)
        assert all(n + 20 <= now for n in held.epochs())
    assert sorted(held.epochs()) == list(range(len(delays)))
    in_time = [n for n in held.epochs() if delays[n] <= 20]
    assert in_time == sorted(in_time)


def test_held_rows_outlive_a_restart_and_come_once(tmp_path: Path) -> None:
    query = merge([plan(DELTA)])
    held = Held(tmp_path, query)
    held.ingest.store([row(1, 9, 1), row(1, 3, 1), row(1, 6, 1)], held.source, held.log, 10_000)
    before = (tmp_path / FILE).read_bytes()
    held.ingest.release(held.log, 25_000)
    assert held.epochs() == [3]
    # A crash between the log and the file, and one while a row is written.
    (tmp_path / FILE).write_bytes(before + before[:50])
    again = Held(tmp_path, query)
    again.ingest.store([row(1, 9, 1), row(1, 3, 1)], again.source, again.log, 26_000)
    assert again.ingest.counters.duplicates == 2
    again.ingest.release(again.log, 60_000)
    assert again.epochs() == [3, 6, 9]


def test_a_held_row_that_a_disk_has_changed_is_left_out_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    query = merge([plan(DELTA)])
    held = Held(tmp_path, query)
    held.ingest.store([row(1, 9, 1), row(1, 3, 1), row(1, 6, 1)], held.source, held.log, 10_000)
    changed = bytearray((tmp_path / FILE).read_bytes())
    changed[len(changed) // 2] ^= 1
    (tmp_path / FILE).write_bytes(changed)
    again = Held(tmp_path, query)
    assert f"{tmp_path / FILE}: 1 of its 3 rows are damaged and are left out" in caplog.text
    again.ingest.release(again.log, 60_000)
    assert again.epochs() == [6, 9]


def test_rows_of_a_session_that_is_over_are_not_held(tmp_path: Path) -> None:
    query = merge([plan(DELTA)])
    held = Held(tmp_path, query)
    held.ingest.store([row(1, 9, 1), row(1, 3, 1)], held.source, held.log, 10_000)
    after = Held(tmp_path, query, current=False)
    after.ingest.release(after.log, 0)
    assert after.epochs() == [3, 9]


def test_other_rows_go_by(tmp_path: Path) -> None:
    held = Held(tmp_path, merge([plan(DELTA.replace("DELTA", "WINAVG"))]))
    held.ingest.store([row(1, 9, 1), row(1, 3, 1)], held.source, held.log, 0)
    assert held.epochs() == [9, 3]
    assert not (tmp_path / FILE).exists()
