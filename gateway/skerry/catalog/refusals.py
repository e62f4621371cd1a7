"""Which motes do not run a mote query, and what they lack."""

from __future__ import annotations

from construct import Container

from skerry_protocol.packets import RefusalReason

_TEXTS = {
    RefusalReason.MALFORMED: "takes its program for none: is its firmware older than the gateway?",
    RefusalReason.SLOTS: "runs as many queries as it can already",
    RefusalReason.TREES: "holds as many semantic routing trees as its board has room for",
    RefusalReason.MEMORY: "has {missing} bytes too few for its program and windows",
}


class Refusals:
    """What motes have refused, by mote query; forgotten when that query ends."""

    def __init__(self) -> None:
        self._by_query: dict[int, dict[int, str]] = {}

    def add(self, body: Container[int]) -> str:
        """A REFUSAL packet; returns it as a sentence."""
        try:
            why = _TEXTS[RefusalReason(body.reason)].format(missing=body.missing)
        except ValueError:
            why = f"gives a reason that this gateway does not know ({body.reason})"
        self._by_query.setdefault(body.query, {})[body.node] = why
        return f"mote {body.node} refused mote query {body.query}: it {why}"

    def forget(self, query: int) -> None:
        """The query is stopped, or its id is used anew."""
        self._by_query.pop(query, None)

    def of(self, query: int) -> list[str]:
        """Sentences about a query, by mote."""
        return [f"mote {node} {why}" for node, why in sorted(self._by_query.get(query, {}).items())]
