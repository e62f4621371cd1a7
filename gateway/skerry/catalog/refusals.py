"""Which motes do not run a mote query, and what they lack."""

from __future__ import annotations

from math import inf

from construct import Container

from skerry_protocol.codes import RefusalReason

_TEXTS = {
    RefusalReason.MALFORMED: "takes its program for none: is its firmware older than the gateway?",
    RefusalReason.SLOTS: "runs as many queries as it can already",
    RefusalReason.TREES: "holds as many semantic routing trees as its board has room for",
    RefusalReason.MEMORY: "has {missing} bytes too few for its program and windows",
}


#: A query is sent again so long after its first refusal for want of a slot, then so long after that, in s.
AGAIN_S = (10, 40)


class Refusals:
    """What motes have refused, by mote query; forgotten when that query ends."""

    def __init__(self) -> None:
        self._by_query: dict[int, dict[int, str]] = {}
        #: Queries that are to be sent again, with how often they were; and when, in s of network time.
        self._again: dict[int, tuple[int, float]] = {}

    def add(self, body: Container[int], now: float) -> str:
        """A REFUSAL packet; returns it as a sentence. ``now``: network time in s."""
        if body.reason == RefusalReason.SLOTS:
            self._again.setdefault(body.query, (0, now + AGAIN_S[0]))
        try:
            why = _TEXTS[RefusalReason(body.reason)].format(missing=body.missing)
        except ValueError:
            why = f"gives a reason that this gateway does not know ({body.reason})"
        self._by_query.setdefault(body.query, {})[body.node] = why
        return f"mote {body.node} refused mote query {body.query}: it {why}"

    def forget(self, query: int) -> None:
        """The query is stopped, or its id is used anew."""
        self._by_query.pop(query, None)
        self._again.pop(query, None)

    def due(self, now: float) -> list[int]:
        """Queries to be sent again. A mote whose slots were taken had not heard yet what was to stop: the gateway asks for no more than
        it has slots for. It does not ask for what it refused by itself, nor refuse it aloud again."""
        found = [query for query, (_, at) in self._again.items() if at <= now]
        for query in found:
            times = self._again[query][0] + 1
            told = self._by_query.get(query, {})
            self._by_query[query] = {n: why for n, why in told.items() if why != _TEXTS[RefusalReason.SLOTS]}
            self._again[query] = (times, now + AGAIN_S[times] if times < len(AGAIN_S) else inf)
        return found

    def motes(self, query: int) -> set[int]:
        """Who does not run a query."""
        return set(self._by_query.get(query, ()))

    def of(self, query: int) -> list[str]:
        """Sentences about a query, by mote."""
        return [f"mote {node} {why}" for node, why in sorted(self._by_query.get(query, {}).items())]
