"""Rows of motes as those of a stream that joins: what the queries that motes are asked for a join bring, as columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from skerry.execution.filters import Filter, Indices
from skerry.execution.range_index import Int64
from skerry.execution.residual import Rows
from skerry.execution.stream_batches import stream_batch
from skerry.expressions import build
from skerry.planner.model import source_plans as plans
from skerry.planner.model.plans import Feed, Output, QueryPlan
from skerry.sensors.evaluate import MOMENT
from skerry.storage.log.record import Records
from skerry.streams.stream import Stream
from skerry_protocol.attributes import BY_NAME, BY_NUMBER

#: For JSON.
Written = dict[str, Any]


@dataclass(frozen=True)
class MoteRows:
    """Which rows of the log are those of a query that motes are asked: its filter, the attributes that it selects, each by the name that
    users know and by the motes', and by number the streams that have any, each with what it means and which of its rows are the query's."""

    filter: Filter
    attributes: tuple[tuple[str, str], ...]
    feeds: Mapping[int, tuple[Stream, Feed]]

    @classmethod
    def known(cls, plan: QueryPlan, feeds: Mapping[int, Feed], streams: Mapping[int, Stream]) -> MoteRows:
        """Of a query for plain attributes, and its feeds."""
        made = {
            number: (streams[number], replace(feed, user="", query=0))
            for number, feed in feeds.items()
            if number in streams
        }
        own = {name: BY_NUMBER[entry.number].name for name, entry in plan.statics.items()}
        names = [output.name.lower() for output in plan.outputs]
        return cls(Filter.of(plan), tuple((name, own.get(name, name)) for name in names), made)

    @classmethod
    def of(cls, written: Written) -> MoteRows:
        """What :meth:`written` wrote."""
        made = ((Stream.from_dict(stream), Feed("", 0, *times)) for stream, times in written["feeds"])
        feeds = {stream.number: (stream, feed) for stream, feed in made}
        attributes = tuple((name, own) for name, own in written["attributes"])
        return cls(Filter.from_list(written["filter"]), attributes, feeds)

    def written(self) -> Written:
        """For JSON."""
        feeds = [
            [
                stream.to_dict(),
                [feed.period_ms, feed.stream_period_ms, feed.since_ms, feed.until_ms, feed.before_ms],
            ]
            for stream, feed in self.feeds.values()
        ]
        attributes = [[name, own] for name, own in self.attributes]
        return {"filter": self.filter.to_list(), "attributes": attributes, "feeds": feeds}

    def among(self, numbers: Int64, records: Records) -> tuple[Int64, dict[str, pa.Array]] | None:
        """Those of some records in the order of the log: their numbers, and columns, called as those of other sources are; None: there are
        none."""
        found: list[tuple[Int64, Records, dict[str, pa.Array]]] = []
        for number, (stream, feed) in self.feeds.items():
            mine = np.flatnonzero(records["stream"] == number)
            if not len(mine):
                continue
            rows = Rows(stream_batch(records[mine], stream), stream.mote_query)
            places = self.filter.select(rows, feed)
            if len(places):
                taken = mine[places]
                found.append((numbers[taken], records[taken], self._columns(rows, places)))
        if not found:
            return None
        of_log = np.concatenate([part for part, _, _ in found])
        order = np.argsort(of_log, kind="stable")
        kept = np.concatenate([part for _, part, _ in found])[order]
        taken = pa.array(order)
        columns = {
            name: pa.concat_arrays([part[name] for _, _, part in found]).take(taken) for name in found[0][2]
        }
        columns[plans.TIME] = pa.array(kept["sample"].astype(np.int64)).cast(MOMENT)
        columns[plans.SOURCE] = pa.array(kept["node"].astype(np.int64))
        return of_log[order], columns

    def _columns(self, rows: Rows, places: Indices) -> dict[str, pa.Array]:
        evaluate, found = rows.evaluate.at(places), {}
        for name, own in self.attributes:
            attribute = BY_NAME[own]
            output = Output(name, build.attribute(attribute), attribute.unit, attribute.digits)
            found[f"{plans.MOTES}.{name}"] = rows.array(output, evaluate, self.filter.period_ms)
        return found
