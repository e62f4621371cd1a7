"""Groups that come and go in windows: only those that are there at once take room, and whose are too many is told."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from gateway.tests.logs import PERIODS, STREAMS, plan_of
from skerry.delivery.engine import Engine
from skerry.planner.model import frames
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.planner import plan_query
from skerry.storage.log.record import RECORD, Block

PERIOD_MS = PERIODS[1]
#: Epochs after which another group comes, and how many reach into an hour and a window.
EPOCHS_OF_GROUP = 3
ROWS = 2500
QUERY = "SELECT light, COUNT(*, 1 min, 30 s) AS n FROM sensors GROUP BY light SAMPLE PERIOD 5 s"
LONGER = "SELECT light, COUNT(*, 90 min, 30 s) AS n FROM sensors GROUP BY light SAMPLE PERIOD 5 s"


def drifting() -> np.ndarray:
    """Rows whose light goes up by one each few epochs; now and then an old one comes again."""
    columns = [column.name for column in STREAMS[1].mote_query.columns]
    epochs = np.arange(ROWS)
    records = np.zeros(ROWS, RECORD)
    records["stream"], records["epoch"] = 1, epochs
    records["value"][:, columns.index("light")] = np.where(epochs % 97 == 96, 1, epochs // EPOCHS_OF_GROUP)
    return records


RECORDS = drifting()


def block(first: int, end: int) -> Block:
    return Block(first, RECORDS[first:end])


def reach(plan: QueryPlan) -> int:
    """Groups that windows and late rows reach, about."""
    assert plan.window is not None
    return (plan.window.lookback_ms + frames.LATENESS_MS) // PERIOD_MS // EPOCHS_OF_GROUP


def limit(monkeypatch: pytest.MonkeyPatch, plan: QueryPlan, groups: int) -> None:
    """Room for so many groups in windows of this plan."""
    window = plan.window
    assert window is not None
    monkeypatch.setattr(frames, "CELLS_MAXIMUM", groups * (frames.CELLS_MAXIMUM // window.groups_maximum))
    assert abs(window.groups_maximum - groups) <= 1


def started(*texts: str) -> Engine:
    engine = Engine(STREAMS.get, block)
    for text in texts:
        engine.subscribe(text, plan_of(text), 0)
        engine.set_feeds(text, {1: Feed(text, 1, PERIOD_MS, PERIOD_MS, 0)})
    return engine


def run(engine: Engine, batch: int) -> dict[str, list[tuple[int, ...]]]:
    """All rows in batches, and what each reader has of them."""
    found: dict[str, list[tuple[int, ...]]] = {text: [] for text in engine._subscribers}
    while engine.done < ROWS:
        position = engine.done - 1
        engine.process(block(engine.done, min(engine.done + batch, ROWS)))
        for text, got in found.items():
            subscriber = engine.subscriber(text)
            assert subscriber is not None
            read = subscriber.buffer.deliveries(position, most=10**9, through=engine.done)
            assert read is not None
            got += [(number, *row.values()) for delivery in read[0] for number, row in delivery.values()]
    return found


def replayed(engine: Engine, text: str) -> list[tuple[int, ...]]:
    """A reader's rows as he gets them who comes back."""
    return [(number, *row.values()) for number, row in engine.replay(text, block(0, ROWS), -1)]


def test_groups_without_rows_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(QUERY)
    limit(monkeypatch, plan, reach(plan) + 50)
    found: list[list[tuple[int, ...]]] = []
    for batch in (ROWS, 211, 7):
        engine = started(QUERY)
        found.append(run(engine, batch)[QUERY])
        (shared,) = engine._windows.windows._shared.values()
        assert not engine._windows.windows.exceeded
        assert len(shared.groups.known) <= 1.25 * (reach(plan) + 50) + batch // EPOCHS_OF_GROUP
        assert replayed(engine, QUERY) == found[-1]
    assert found[0] == found[1] == found[2]
    # Windows of 12 epochs, each 6, from the first whole one on: what is in each.
    expected = duckdb.sql(
        "SELECT g, n FROM (SELECT w, g, count(*) AS n FROM (SELECT e, CASE WHEN e % 97 = 96 THEN 1 ELSE e // $each END AS g"
        " FROM range($rows) AS t(e)), range(2, $rows // 6 + 1) AS u(w) WHERE e < 6 * w AND e >= 6 * w - 12 GROUP BY w, g)"
        " ORDER BY w, g",
        params={"rows": ROWS, "each": EPOCHS_OF_GROUP},
    ).fetchall()
    # The last windows are not over, and the first begins with the query.
    got = [(light, n) for _, light, n in found[0]]
    assert len(got) > 1500
    assert got == expected[: len(got)]


@pytest.mark.parametrize("batch", [1000, 7])
def test_who_has_too_many_groups_is_told_and_others_go_on(
    monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    everything = run(started(QUERY, LONGER), 1000)
    limit(monkeypatch, plan_of(LONGER), reach(plan_of(QUERY)) + 200)
    engine = started(QUERY, LONGER)
    found = run(engine, batch)
    longer, other = engine.subscriber(LONGER), engine.subscriber(QUERY)
    assert longer is not None
    assert other is not None
    assert "groups in each of its windows: write a longer slide" in str(longer.buffer.trouble)
    assert other.buffer.trouble is None
    # Nothing is folded any more for windows that are over.
    assert len(engine._entries._windows) == len(engine._windows.windows._shared) == 1
    assert found[QUERY] == everything[QUERY] == replayed(engine, QUERY)
    before = found[LONGER]
    assert 0 < len(before) < len(everything[LONGER])
    assert before == everything[LONGER][: len(before)] == replayed(engine, LONGER)
    # A gateway that starts again says so again.
    again = started(QUERY, LONGER)
    again.process(block(ROWS - 10, ROWS))
    restarted = again.subscriber(LONGER)
    assert restarted is not None
    assert restarted.buffer.trouble == longer.buffer.trouble


@pytest.mark.parametrize(
    "text",
    [
        "SELECT nodeid, room, AVG(temp, 15 min, 1 min) FROM sensors GROUP BY nodeid, room SAMPLE PERIOD 30 s",
        "SELECT floor, COUNT(light, 5 min, 1 s) FROM sensors GROUP BY floor SAMPLE PERIOD 1 s",
        "SELECT light, COUNT(light, 5 min, 1 s) FROM sensors GROUP BY light SAMPLE PERIOD 1 s",
    ],
)
def test_nobody_is_refused_for_groups_that_could_be(text: str) -> None:
    assert plan_query(text).window is not None
