"""Rows that the gateway makes of motes' rows: pulses of a slower query, windows of a mote (:mod:`skerry.ingest.pulses`,
:mod:`skerry.ingest.mote_windows`), for each stream that is made of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from skerry.ingest.mote_windows import MoteWindows
from skerry.ingest.plain_rows import Layouts
from skerry.ingest.pulses import Derivation, Row
from skerry.ingest.row_states import Values, epoch_of
from skerry.streams.stream import Derived, Source, Stream
from skerry_protocol.codec import Packet, Result
from skerry_protocol.codes import PacketType
from skerry_protocol.limits import PERIOD_MINIMUM_MS


@dataclass(frozen=True)
class Ended:
    """Windows of a stream to which nothing can be added any more. ``restore``: it is as if they had not been made."""

    source: Source
    packets: list[Packet]
    restore: Callable[[], None]


class DerivedRows:
    """``undo`` takes back what a row has changed. Not for several threads at once."""

    def __init__(self, undo: list[Callable[[], object]], layouts: Layouts) -> None:
        self._undo = undo
        self._layouts = layouts
        #: By number of the stream that they make.
        self._derivations: dict[int, tuple[Stream, Source, Derivation | MoteWindows]] = {}
        self._saved: set[int] = set()

    def begin(self) -> None:
        """What is undone from now on leads back to here."""
        self._saved.clear()

    def take(
        self, stream: Stream, source: Source, derived: Derived, node: int, epoch: int, row: Values
    ) -> Iterator[Result]:
        """Rows that a mote's row brings to a stream of rows that is made of ``stream``."""
        view = derived.stream
        derivation = self._derivation(stream, view, source)
        if view.number not in self._saved:
            self._saved.add(view.number)
            self._undo.append(derivation.kept())
        found: list[Row] = []
        if isinstance(derivation, Derivation):
            found = derivation.take(node, epoch, [row])
        else:
            own = epoch_of(view.mote_query, stream.mote_query, epoch)
            if own is not None and derived.has(own):
                found = derivation.take(stream.mote_query, node, own, row)
        for made in found:
            yield self._result(view, node, made)

    def ended(self, now_ms: int) -> Iterator[Ended]:
        """Of each stream the windows whose time is over. ``now_ms``: network time, where its source does not say its own."""
        for number, (view, source, derivation) in list(self._derivations.items()):
            if source.stream_of(view.query) is not view:
                del self._derivations[number]
            elif isinstance(derivation, Derivation):
                restore = derivation.kept()
                own_ms = now_ms if source.now_ms is None else source.now_ms()
                made = [self._result(view, node, row) for node, row in derivation.complete(own_ms)]
                if made:
                    yield Ended(source, [Packet(PacketType.RESULT, row) for row in made], restore)

    def _derivation(self, stream: Stream, view: Stream, source: Source) -> Derivation | MoteWindows:
        if view.number not in self._derivations:
            pulses = view.mote_query.period_ms < PERIOD_MINIMUM_MS
            made = Derivation(stream.mote_query, view.mote_query) if pulses else MoteWindows(view.mote_query)
            self._derivations[view.number] = view, source, made
        return self._derivations[view.number][2]

    def _result(self, view: Stream, node: int, row: Row) -> Result:
        epoch, values = row
        nulls = sum(1 << i for i, value in enumerate(values) if value is None)
        data = self._layouts.of(view).pack(*(value or 0 for value in values))
        return Result(query=view.query, node=node, epoch=epoch, nulls=nulls, values=data)
