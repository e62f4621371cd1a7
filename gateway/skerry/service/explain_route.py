"""Which motes a query goes to by a semantic routing tree, as far as the gateway knows their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skerry.planner.physical.srt_routes import Route

if TYPE_CHECKING:
    from skerry.catalog.catalog import Catalog

#: Of the motes that a query goes to, those that the text names.
MOTES_SHOWN = 20


def describe_route(route: Route, catalog: Catalog | None) -> dict[str, Any]:
    """Where the query goes. ``motes``: those whose values may pass, ``forwarding``: others on their way to the root; None where
    the gateway does not know the values."""
    motes = catalog.all() if catalog is not None else []
    per_axis = [catalog.values(axis.name) if catalog is not None else [] for axis in route.srt.axes]
    described: dict[str, Any] = {
        "srt": route.srt.name,
        "attributes": [axis.name for axis in route.srt.axes],
        "share": route.share,
        "motes": None,
        "forwarding": None,
    }
    if not all(len(values) == len(motes) > 0 for values in per_axis):
        return described
    parents = {mote.nodeid: mote.parent for mote in motes}
    asked = [
        mote.nodeid
        for mote, *values in zip(motes, *per_axis, strict=True)
        if route.takes(tuple(axis.code(value) for axis, value in zip(route.srt.axes, values, strict=True)))
    ]
    on_the_way: set[int] = set()
    for nodeid in asked:
        above = parents[nodeid]
        while above is not None and above in parents and above not in on_the_way:
            on_the_way.add(above)
            above = parents[above]
    return {**described, "motes": asked, "forwarding": sorted(on_the_way - set(asked))}


def route_lines(route: dict[str, Any] | None) -> list[str]:
    """The same for people."""
    if route is None:
        return []
    over = f"semantic routing tree {route['srt']} over {', '.join(route['attributes'])}"
    if route["motes"] is None:
        return ["route", f"  by {over}: to {route['share']:.0%} of its codes"]
    asked, between = route["motes"], route["forwarding"]
    lines = ["route", f"  by {over}: to {_motes_text(asked)}"]
    return [*lines, f"  and {_motes_text(between)} on the way"] if between else lines


def _motes_text(motes: list[int]) -> str:
    if not motes:
        return "no mote"
    shown = ", ".join(map(str, motes[:MOTES_SHOWN])) + (", …" if len(motes) > MOTES_SHOWN else "")
    return f"{len(motes)} {'mote' if len(motes) == 1 else 'motes'} ({shown})"
