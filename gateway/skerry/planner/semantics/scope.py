"""What names mean in a query: columns of ``sensors`` and fields of the storage points that FROM names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from skerry.catalog.static_attributes import NO_STATICS, Statics
from skerry.expressions import build
from skerry.expressions.expression import MILLISECONDS, Expr, Kind
from skerry.planner.model.epoch_facts import FACTS
from skerry.planner.model.joined_tables import NO_TABLES, PAST, JoinedTable, Tables, TableSchema, Trouble
from skerry.planner.model.pairing import HOST, HOST_NAME
from skerry.planner.model.row_time import NETWORK_TIME_NAME, OF_ROWS, TIME, TIME_NAME, later_of, utc_of
from skerry.planner.model.storage_points import Point, Points
from skerry.sql import ast
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.quoting import as_name, as_text
from skerry.sql.units import duration_text
from skerry_protocol.attributes import (
    ATTRIBUTES,
    BY_NAME,
    BY_NUMBER,
    EVENT_BY_NAME,
    STATIC_ATTRIBUTES,
    Attribute,
)
from skerry_protocol.bytecode import Op, StoredField
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import PERIOD_MINIMUM_MS, SOURCES_MAXIMUM

#: Other names of attributes: plain words, and those of TinyDB's own catalog.
SYNONYMS = {
    "temperature": "temp", "id": "nodeid", "depth": "level", "freeram": "free_ram", "qlen": "queue_length",
    "qual": "link", "quality": "link", "boots": "resets", "name": "nodeid", "roomno": "room", "accel": "accel_x", "mag": "mag_x",
    "volume": "noise", "loudness": "noise", "xloc": "xpos", "yloc": "ypos",
}  # fmt: skip
#: What is most likely meant by words that are no other names of attributes: units and scales differ.
_MEANT = {
    "battery": "voltage", "bat": "voltage", "vbat": "voltage", "vcc": "voltage", "volt": "voltage", "volts": "voltage", "power": "energy",
    "lux": "light", "brightness": "light", "illuminance": "light", "rh": "humidity", "moisture": "humidity",
    "rssi": "link", "lqi": "link", "signal": "link", "hops": "level", "hop": "level",
    "node": "nodeid", "mote": "nodeid", "moteid": "nodeid", "address": "nodeid", "sound": "noise", "sequence": "epoch",
    "x": "xpos", "y": "ypos", "memory": "free_ram", "reboots": "resets", "acceleration": "accel_x", "acc_x": "accel_x", "acc_y": "accel_y",
    "storey": "floor",
}  # fmt: skip
#: What is looked for among attributes when a name is none's.
_NAMED = tuple(name for name, entry in BY_NAME.items() if entry not in STATIC_ATTRIBUTES)
#: Of what every event says, the other names.
_OF_EVENTS = {name: SYNONYMS[name] for name in ("id", "xloc", "yloc")}
#: The longest past that a stream is joined with: it is held in memory.
_PAST_MAXIMUM_MS = 7 * 86_400_000
#: Every row says these, whatever it is a row of.
_IN_EVERY_ROW = ("nodeid", "epoch")
#: What ``time`` is looked for by, and what the row's own is called too.
_WHEN = frozenset({"timestamp", "datetime", "date"})
_NOW = "now"
#: Both coordinates.
_LOC = "loc"
_MOTES = "sensors"


def attribute_names() -> str:
    """All attributes, for messages."""
    return ", ".join(entry.name for entry in ATTRIBUTES)


@dataclass(frozen=True)
class Source:
    """A storage point in FROM. ``combined``: aggregates by number of the field that COMBINE makes one value of."""

    called: str
    point: Point
    combined: Mapping[int, Aggregate] = field(default_factory=dict)


@dataclass(frozen=True)
class Scope:
    """The tables of one query. ``sensors``: what sensors is called, None where FROM does not name it."""

    sensors: str | None = "sensors"
    sources: tuple[Source, ...] = ()
    tables: tuple[JoinedTable, ...] = ()
    #: Attributes that users have made, by name in lower case.
    statics: Statics = field(default_factory=dict)
    #: What ``random()`` begins at.
    seed: int = 0
    #: What the query calls the value of its event, besides what every event says.
    event_value: str | None = None
    #: Whether names are those of an aggregate's row.
    of_aggregate: bool = False
    #: Whether they are those of two rows that motes join.
    of_join: bool = False
    #: Whether aggregates are of the rows themselves, as of a past that ends, not of what motes keep of them.
    recorded: bool = False
    #: What the query's columns are called, in lower case, and what they say.
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def inside(self) -> Scope:
        """Of what is aggregated."""
        return replace(self, of_aggregate=False, of_join=False)

    @property
    def points(self) -> tuple[str, ...]:
        """The storage points that are read, in lower case."""
        return tuple(source.point.name.lower() for source in self.sources)

    def resolve(self, node: ast.Name) -> Expr:
        """What a name stands for. Raises QueryError."""
        if node.table is not None and node.table.lower() == "event":
            return self._event_attribute(node)
        found = self._found(node)
        if len(found) > 1:
            hint = f"write {' or '.join(found)}"
            raise QueryError(f"'{node.name}' is in several tables", hint, node.span)
        if found:
            return next(iter(found.values()))
        name = SYNONYMS.get(node.name.lower(), node.name.lower())
        if node.table is None and name == _NOW:
            return TIME
        if node.table is None and name in FACTS and self.of_aggregate:
            return FACTS[name]
        if node.table is None and name == HOST_NAME and self.of_join:
            return HOST
        if node.table is None and name in _IN_EVERY_ROW:
            return build.attribute(BY_NAME[name])
        raise self._unknown(node)

    def as_text(self, expr: Expr) -> Expr:
        """A column that has nothing in it as one of texts; anything else as it is."""
        if any(joined.is_blank(expr) for joined in self.tables):
            return Expr(Op.ATTR, kind=Kind.TEXT, final=expr.final)
        return expr

    def _event_attribute(self, node: ast.Name) -> Expr:
        name = node.name.lower()
        if name == _LOC:
            raise _position(node)
        if name == TIME_NAME:
            return utc_of(build.attribute(EVENT_BY_NAME["event.network_time"]), "event.time")
        entry = EVENT_BY_NAME.get(f"event.{_OF_EVENTS.get(name, name)}")
        if entry is None and name == self.event_value:
            entry = event_parameter(node)
        if entry is None:
            known = [
                *EVENT_BY_NAME,
                "event.time",
                *([f"event.{self.event_value}"] if self.event_value else []),
            ]
            hint = f"{did_you_mean(f'event.{name}', known)}of an event there are {', '.join(known)}"
            raise QueryError(
                f"unknown attribute 'event.{name}'",
                f"{hint}; name others behind the event, as in ON EVENT hot(temp)",
                node.span,
            )
        return build.attribute(entry)

    def star(self, node: ast.Star) -> list[tuple[str, Expr]]:
        """What ``*`` stands for: all attributes, all fields with the time of their row; or those of one table alone. Raises QueryError."""
        columns: list[tuple[str, Expr]] = []
        called = [self.sensors] if self.sensors is not None else []
        called += [source.called for source in self.sources] + [joined.called for joined in self.tables]
        own = node.table.lower() if node.table is not None else None
        if own is not None and own not in map(str.lower, called):
            hint = f"{did_you_mean(own, called)}it is {' or '.join(called)}"
            raise QueryError(f"unknown table '{node.table}'", hint, node.span)
        if self.sensors is not None and own in (None, self.sensors.lower()):
            columns += [(entry.name, build.attribute(entry)) for entry in ATTRIBUTES]
        for i, source in enumerate(self.sources):
            if own not in (None, source.called.lower()):
                continue
            prefix = f"{source.called}." if self.sensors is not None or len(self.sources) > 1 else ""
            columns.append((f"{prefix}{TIME_NAME}", _time(i, source)))
            for index, entry in enumerate(source.point.fields):
                columns.append((f"{prefix}{entry.name}", _field(i, source, index)))
        for joined in self.tables:
            for described in joined.schema.columns if own in (None, joined.called.lower()) else ():
                column = joined.column(described.name)
                assert column is not None
                columns.append((f"{joined.called}.{described.name}", column))
        return columns

    def _found(self, node: ast.Name) -> dict[str, Expr]:
        """Columns of that name, by the name that tells them apart."""
        name, table = node.name.lower(), node.table.lower() if node.table is not None else None
        attribute = self._attribute(name)
        found: dict[str, Expr] = {}
        if (
            name in OF_ROWS
            and self.sensors is None
            and table is None
            and len(self.sources) == SOURCES_MAXIMUM
        ):
            # Of a join, the later row's.
            make = _time if name == TIME_NAME else _network_time
            first, second = (make(i, source) for i, source in enumerate(self.sources))
            return {name: later_of(first, second, name)}
        if self.sensors is not None and table in (None, "sensors", self.sensors):
            if attribute is not None:
                found[f"{self.sensors}.{name}"] = attribute
            elif name in OF_ROWS:
                found[f"{self.sensors}.{name}"] = OF_ROWS[name]
                if table is None:
                    # What a reading is joined with of motes' is older.
                    return self._of_files(name, found)
        for i, source in enumerate(self.sources):
            if table not in (None, source.called, source.point.name.lower()):
                continue
            index = source.point.field(name)
            if index is not None:
                found[f"{source.called}.{name}"] = _field(i, source, index)
            elif name == TIME_NAME:
                found[f"{source.called}.{name}"] = _time(i, source)
            elif name == NETWORK_TIME_NAME:
                found[f"{source.called}.{name}"] = _network_time(i, source)
        for joined in self.tables:
            column = joined.column(name) if table in (None, joined.called, joined.schema.name) else None
            if column is not None:
                found[f"{joined.called}.{name}"] = column
        return found

    def _attribute(self, name: str) -> Expr | None:
        """An attribute by its name in lower case; None: it is none."""
        own = self.statics.get(name)
        if own is not None:
            return replace(build.attribute(BY_NUMBER[own.number]), unit=own.unit, label=own.name)
        entry = BY_NAME.get(SYNONYMS.get(name, name))
        return None if entry is None or entry in STATIC_ATTRIBUTES else build.attribute(entry)

    def _of_files(self, name: str, found: dict[str, Expr]) -> dict[str, Expr]:
        """With columns of that name of tables that are no motes'."""
        for joined in self.tables:
            column = joined.column(name) if joined.past_ms is None else None
            if column is not None:
                found[f"{joined.called}.{name}"] = column
        return found

    def _unknown(self, node: ast.Name) -> QueryError:
        """Offers what there is; of one table, where the name says which."""
        table = node.table.lower() if node.table is not None else None
        known: list[str] = []
        has: list[str] = []
        said = self.columns.get(node.name.lower()) if table is None else None
        if said is not None:
            hint = f"it is what a column is called: write {said} here, too"
            return QueryError(f"unknown attribute '{node.name}'", hint, node.span)
        for joined in self.tables:
            for name, why in joined.schema.unusable:
                if name == node.name.lower() and table in (None, joined.called, joined.schema.name):
                    message = f"column {name} of table {joined.schema.name} cannot be used"
                    return QueryError(message, why, node.span)
        # Motes' rows that are joined have what motes have.
        motes = [self.sensors, *(source.called for source in self.sources if source.point.name == _MOTES)]
        if any(called is not None and table in (None, _MOTES, called) for called in motes):
            if node.name.lower() == _LOC:
                return _position(node)
            known += [*_NAMED, *SYNONYMS, *self.statics]
            made = "".join(f", {entry.name}" for entry in self.statics.values())
            has.append(f"attributes are {attribute_names()}{made}")
        for called, also, names in self._columns():
            if table in (None, called, also):
                known += names
                has.append(f"{called} has {', '.join(map(as_name, names))}")
        meant = _MEANT.get(node.name.lower())
        guess = f"did you mean '{meant}'? " if meant in known else did_you_mean(node.name.lower(), known)
        hint = guess + "; ".join(has)
        if node.quoted and table is None:
            hint = f"it is read as a name: a text stands in single marks, as in {as_text(node.name)}; {hint}"
        if node.name.lower() in _WHEN:
            hint = f"when a row was sampled is its {TIME_NAME}, in UTC"
        elif table is None and node.name.lower() in FACTS:
            hint = f"an aggregate's row says {' and '.join(FACTS)}: select it beside the aggregate, or choose by it with HAVING"
        elif node.name.lower() == HOST_NAME:
            hint = f"two rows that motes join say together which has joined them: select {HOST_NAME} there, as a column"
        return QueryError(f"unknown attribute '{node.name}'", hint, node.span)

    def _columns(self) -> list[tuple[str, str, list[str]]]:
        """What storage points and joined tables are called, the names that are their own, and their columns."""
        points = [
            (
                source.called,
                source.point.name.lower(),
                [*(f.name for f in source.point.fields), TIME_NAME, NETWORK_TIME_NAME],
            )
            for source in self.sources
            if source.point.name != _MOTES
        ]
        return points + [
            (joined.called, joined.schema.name, [column.name for column in joined.schema.columns])
            for joined in self.tables
        ]


#: Of a query that reads no storage point.
SENSORS = Scope()
_WHERE_FILES_BELONG = (
    "CSV, Parquet and SQLite files belong into the gateway's directory of tables, which 'skerry tables' names"
)


def _position(node: ast.Name) -> QueryError:
    hint = "write xpos or ypos, or the distance from another, as in dist(loc, point(3 m, 4 m))"
    return QueryError(f"'{node.name}' is a position, not a number", hint, node.span)


def scope_of(
    tables: tuple[ast.Table, ...], points: Points, files: Tables = NO_TABLES, statics: Statics = NO_STATICS
) -> Scope:
    """The scope of a FROM. Raises QueryError for tables that are not, or too many."""
    sensors: str | None = None
    sources: list[Source] = []
    joined: list[JoinedTable] = []
    for table in tables:
        name = table.name.name.lower()
        if table.past is not None:
            joined.append(JoinedTable(table.called, PAST, _past(table, name)))
        elif name == "sensors":
            if sensors is not None:
                hint = "name one of them's past, as in FROM sensors AS s, sensors HISTORY 1 day AS h, or say within which WINDOW they join"
                raise QueryError("sensors stands twice in FROM", hint, table.name.span)
            sensors = table.called
        elif name in points:
            sources.append(Source(table.called, points[name]))
        elif name in files:
            joined.append(JoinedTable(table.called, _schema(table, files[name])))
        else:
            known = ["sensors", *points, *files]
            there = [point.name for point in points.values()]
            near = did_you_mean(name, known)
            hint = f"{near}tables are sensors and storage points"
            hint += f": {', '.join(there)}" if there else ", of which there are none"
            usable = [name for name, file in files.items() if not isinstance(file, Trouble)]
            hint += f"; and the files {', '.join(usable)}" if usable else ""
            hint += "" if near or usable else f"; {_WHERE_FILES_BELONG}"
            raise QueryError(f"unknown table '{table.name.name}'", hint, table.name.span)
    if len(sources) > SOURCES_MAXIMUM:
        hint = f"join at most {SOURCES_MAXIMUM}, and sensors"
        raise QueryError(f"{len(sources)} storage points are too many", hint, tables[-1].name.span)
    return Scope(sensors, tuple(sources), tuple(joined), statics)


def _schema(table: ast.Table, file: TableSchema | Trouble) -> TableSchema:
    if isinstance(file, Trouble):
        raise QueryError(file.message, file.hint, table.name.span)
    return file


def _past(table: ast.Table, name: str) -> int:
    """How far back a table goes, in ms."""
    assert table.past is not None
    span = table.past.milliseconds
    if name != "sensors":
        hint = "sensors has a past: write FROM sensors AS s, sensors HISTORY 1 day AS h"
        raise QueryError(f"'{table.name.name}' has no past to be joined with", hint, table.name.span)
    if not PERIOD_MINIMUM_MS <= span <= _PAST_MAXIMUM_MS:
        hint = f"write {duration_text(PERIOD_MINIMUM_MS)} to {duration_text(_PAST_MAXIMUM_MS)}"
        raise QueryError(f"a past of {duration_text(span)} is out of range", hint, table.past.span)
    return int(span)


def event_parameter(node: ast.Name) -> Attribute | None:
    """The value of an event under an attribute's name: that of the mote that raised it. None: there is no such attribute."""
    name = SYNONYMS.get(node.name.lower(), node.name.lower())
    own = BY_NAME.get(name)
    if own is None:
        return None
    value = EVENT_BY_NAME["event.value"]
    return replace(own, number=value.number, name=f"event.{node.name.lower()}", energy=0.0, sample_ms=0.0)


def event_value(events: Sequence[ast.Event | ast.StopOn]) -> str | None:
    """What a query calls the value of its event. Raises QueryError where it names several."""
    named = {p.name.lower(): p for event in events for p in event.parameters}
    own = [
        p
        for name, p in named.items()
        if f"event.{name}" not in EVENT_BY_NAME and name not in (_LOC, TIME_NAME, *_OF_EVENTS)
    ]
    for parameter in own:
        if event_parameter(parameter) is None:
            hint = f"{did_you_mean(parameter.name.lower(), list(BY_NAME))}parameters of events are attributes of the mote that raises it"
            raise QueryError(f"unknown attribute '{parameter.name}'", hint, parameter.span)
    if len(own) > 1:
        hint = "besides nodeid, loc and time an event carries one value"
        raise QueryError("these are too many parameters of an event", hint, own[1].span)
    return own[0].name.lower() if own else None


def _field(number: int, source: Source, index: int) -> Expr:
    entry = source.point.fields[index]
    name = f"{source.called}.{entry.name}"
    kind = source.combined.get(index, Aggregate.NONE)
    operand = number << 4 | index
    if kind is Aggregate.COUNT:
        return build.stored(operand, f"COUNT({name})", 0, 0, source.point.rows, "")
    if kind is Aggregate.SUM:
        bound = build.INT32_MAXIMUM
        return build.stored(operand, f"SUM({name})", entry.digits, -bound, bound, entry.unit)
    name = name if kind is Aggregate.NONE else f"{kind.name}({name})"
    return build.stored(operand, name, entry.digits, entry.low, entry.high, entry.unit)


def _time(number: int, source: Source) -> Expr:
    """UTC of a stored row's sample."""
    return utc_of(_network_time(number, source), f"{source.called}.{TIME_NAME}")


def _network_time(number: int, source: Source) -> Expr:
    """Seconds and milliseconds together."""
    at = f"{source.called}.{NETWORK_TIME_NAME}"
    seconds = build.stored(number << 4 | StoredField.SECONDS, f"{at}, whole seconds", 0, 0, 2**31 - 1, "")
    rest = build.stored(number << 4 | StoredField.MILLISECONDS, f"{at}{MILLISECONDS}", 3, 0, 999, "")
    return build.add(seconds, rest)


def row_number(number: int) -> Expr:
    """Which of the rows of a storage point one is."""
    return build.stored(
        number << 4 | StoredField.NUMBER, f"number of the row of point {number}", 0, 0, 0xFFFF, ""
    )
