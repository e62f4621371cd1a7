"""What names mean in a join of motes' rows with each other that motes do: attributes of one mote or the other."""

from __future__ import annotations

from skerry.catalog.static_attributes import Statics
from skerry.expressions import build
from skerry.planner.model.storage_points import Point, PointField
from skerry.planner.semantics.scope import SYNONYMS, Scope, Source
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import BY_NAME, BY_NUMBER, STATIC_ATTRIBUTES, Attribute
from skerry_protocol.bytecode import StoredField

#: Numbers of fields that attributes take.
FIELDS = range(12)
_NODEID = BY_NAME["nodeid"]
_AXES = ("xpos", "ypos")
_UNNAMED = ""


def attributes_named(select: ast.Select, statics: Statics) -> dict[str, Attribute]:
    """Those that a query names, by the names that it has for them, but nodeid. Raises QueryError for more than fields can be told apart."""
    found: dict[str, Attribute] = {}
    for node in ast.walk(select):
        if not isinstance(node, ast.Name):
            continue
        for name in _AXES if node.name.lower() == "loc" else (node.name.lower(),):
            entry = _attribute(name, statics)
            if entry is not None and entry is not _NODEID:
                found[name] = entry
                if len(found) > len(FIELDS):
                    hint = f"a join of motes' rows names {len(FIELDS)} at most: ask for less, or leave out where it is joined"
                    raise QueryError("these are too many attributes", hint, node.span)
    return found


def _attribute(name: str, statics: Statics) -> Attribute | None:
    own = statics.get(name)
    if own is not None:
        return BY_NUMBER[own.number]
    entry = BY_NAME.get(SYNONYMS.get(name, name))
    return None if entry in STATIC_ATTRIBUTES else entry


def scope_of_motes(select: ast.Select, statics: Statics) -> Scope:
    """Each mote's rows are as those of a storage point, whose fields are the attributes that the query names. Raises QueryError."""
    known = attributes_named(select, statics)
    fields = [_field(name, entry, statics) for name, entry in known.items()]
    fields += [_field(_UNNAMED, _NODEID, statics)] * (StoredField.NUMBER - len(fields))
    names = [*SYNONYMS, "nodeid"]
    called = next(
        (name for name in names if _attribute(name, {}) is _NODEID and _names(select, name)), "nodeid"
    )
    point = Point("sensors", 0, (*fields, _field(called, _NODEID, statics)), 0, circular=True)
    return Scope(None, tuple(Source(table.called, point) for table in select.tables), (), statics)


def _names(select: ast.Select, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.name.lower() == name for node in ast.walk(select))


def _field(name: str, entry: Attribute, statics: Statics) -> PointField:
    expr = build.attribute(entry)
    unit = statics[name].unit if name in statics else entry.unit
    return PointField(name, entry.format, entry.digits, unit, expr.low, expr.high)
