"""Static attributes: statements that make and end them, values that users set, and motes that are told late."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skerry.catalog import actions
from skerry.catalog.catalog import Mote
from skerry.catalog.static_attributes import VALUE_MAXIMUM, StaticError, Statics, checked, setting
from skerry.catalog.static_values import StaticValues
from skerry.catalog.tags import TagError, Tags
from skerry.network.networks import Networks
from skerry.planner.model.row_time import OF_ROWS
from skerry.planner.semantics.scope import SYNONYMS
from skerry.sensors.store import Done
from skerry.service.queries import Queries
from skerry.sql import attribute_statements, units
from skerry.sql.ast import Name
from skerry.sql.attribute_statements import CreateAttribute, DropAttribute
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.misspellings import KEYWORDS
from skerry.storage.state import StorageError
from skerry_protocol.attributes import BY_NAME, PLACE_ATTRIBUTES, STATIC_ATTRIBUTES, STATIC_FIRST

#: Commands that are sent at once to motes that lack values: motes pass on four at a time, and users' are to find room.
_AT_ONCE = 2
#: How often, in s of network time, so that each has gone its way.
_EVERY_S = 4.0
#: What motes have that were told nothing of an attribute; NULL of all others.
_ABSENT = {entry.number: 0 for entry in PLACE_ATTRIBUTES}
_NAMES = frozenset({*BY_NAME, *SYNONYMS, *OF_ROWS, "loc", "now", "position"})


class AttributeService:
    """Public methods may be called from any thread; ``lock`` is the gateway's, ``save`` makes what has changed durable."""

    def __init__(
        self, lock: threading.RLock, network: Networks, queries: Queries, tags: Tags, save: Callable[[], None]
    ) -> None:
        self._lock, self._network, self._queries, self._save = lock, network, queries, save
        self._statics, self._values = queries.statics, StaticValues()
        self._tags = tags
        self._told = 0.0

    # ---- statements ----

    def run(self, sql: str, user: str) -> Done | None:
        """Do what a statement about static attributes says; None: it is none. Raises QueryError, StorageError: nothing has changed."""
        if not attribute_statements.is_one(sql):
            return None
        statement = attribute_statements.parse(sql)
        with self._lock:
            before = self._statics.rows(), self._values.rows(), self._tags.rows()
            try:
                match statement:
                    case CreateAttribute():
                        return self._create(statement, user)
                    case DropAttribute():
                        return self._drop(statement.name, user)
                return Done(
                    "", ("attribute", "unit", "command", "motes", "number", "made by"), tuple(self._shown())
                )
            except QueryError as error:
                raise error.within(sql) from None
            except StorageError:
                statics, values, tags = before
                self._statics.restore(statics)
                self._values.restore(values)
                self._tags.restore(tags)
                raise

    def _create(self, statement: CreateAttribute, user: str) -> Done:
        name, unit = statement.name, "" if statement.unit is None else _unit(statement.unit)
        self._check_free(name)
        values = self._tagged(name.name)
        try:
            made = self._statics.make(name.name, unit, user, time.time())
        except StaticError as error:
            raise QueryError(error.message, error.hint, name.span) from None
        if made.again:
            # Motes may still have what the attribute had that was in its place before.
            self._values.set(made.number, None, None)
        for nodeid, value in values.items():
            self._values.set(made.number, nodeid, value)
            self._tags.drop(nodeid, name.name)
        self._save()
        where = f"; {len(values)} tags of that name are its values now" if values else ""
        return Done(f"attribute {made.name} is there: set_{made.name} sets it{where}")

    def _check_free(self, name: Name) -> None:
        key = name.name.lower()
        if key in self._statics.all():
            raise QueryError(
                f"attribute '{name.name}' is there already",
                f"drop it first, with DROP ATTRIBUTE {name.name}, or take another name",
                name.span,
            )
        if key in _NAMES or key.upper() in KEYWORDS or actions.find_or_none(f"set_{key}") is not None:
            raise QueryError(f"'{name.name}' is the language's already", "take another name", name.span)

    def _tagged(self, name: str) -> dict[int, int]:
        """What tags of that name say, by mote. Raises QueryError: one is no value of an attribute."""
        found = {}
        for nodeid, key, value, *_ in self._tags.all():
            if key.lower() == name.lower():
                number = _whole(value)
                if number is None or abs(number) > VALUE_MAXIMUM:
                    hint = f"an attribute is a whole number: take the tag away first, with skerry tag {nodeid} {key}="
                    raise QueryError(f"mote {nodeid} has the tag {key}={value}", hint)
                found[nodeid] = number
        return found

    def _drop(self, name: Name, user: str) -> Done:
        known = self._statics.all()
        found = known.get(name.name.lower())
        if found is None:
            names = [entry.name for entry in known.values()]
            hint = (
                f"{did_you_mean(name.name, names)}{', '.join(names)} are there"
                if names
                else "CREATE ATTRIBUTE makes one"
            )
            if name.name.lower() in BY_NAME:
                hint = "every mote has it; only what CREATE ATTRIBUTE made is dropped"
            raise QueryError(f"there is no attribute '{name.name}' to drop", hint, name.span)
        if found.user != user:
            raise QueryError(f"attribute '{found.name}' is another user's", "who made it drops it", name.span)
        readers = [
            query.id
            for query in self._queries.all()
            if found.number in query.plan.attributes and not query.finished
        ]
        if readers:
            raise QueryError(
                f"queries {', '.join(readers)} read '{found.name}'", "stop them first", name.span
            )
        self._statics.drop(found.name)
        self._values.forget(found.number)
        self._save()
        return Done(f"attribute {found.name} is dropped")

    def _shown(self) -> list[tuple[Any, ...]]:
        motes = self._network.catalog.all()
        built_in = [
            (
                entry.name,
                entry.unit,
                f"set_{entry.name}" if entry in PLACE_ATTRIBUTES else "",
                len(motes),
                entry.number,
                "",
            )
            for entry in BY_NAME.values()
            if entry.constant and entry not in STATIC_ATTRIBUTES
        ]
        having = [self._values.of(mote) for mote in motes]
        return built_in + [
            (entry.name, entry.unit, f"set_{entry.name}", sum(entry.number in one for one in having), entry.number, entry.user)
            for entry in self._statics.all().values()
        ]  # fmt: skip

    def made(self) -> Statics:
        """Those that users have made, by name."""
        return self._statics.all()

    def expect(self, names: Sequence[str], user: str) -> None:
        """Make those of these attributes that there are not yet; motes' descriptions have given their places in this order. Raises
        QueryError, StorageError."""
        for place, name in enumerate(names):
            if name.lower() not in self._statics.all():
                self.run(f"CREATE ATTRIBUTE {name}", user)
            found = self._statics.all()[name.lower()].number - STATIC_FIRST
            if found != place:
                hint = "drop others first, or leave --attribute out"
                raise QueryError(
                    f"attribute {name} has place {found} here and place {place} on the motes", hint
                )

    # ---- values ----

    def number(self, name: str) -> int | None:
        """The motes' number of an attribute that has values of its own on each mote, by its name; None: there is none such."""
        return self._statics.number(name)

    def of(self, mote: Mote) -> dict[str, int]:
        """What a mote has, by name: as it is to have it, else as it has told."""
        named = {self._statics.name(number): value for number, value in self._values.of(mote).items()}
        return {name: value for name, value in sorted(named.items(), key=str) if name is not None}

    def value(self, name: str, text: str | None) -> int | None:
        """The value that a text says for an attribute; None: none. Raises TagError."""
        number = self._statics.number(name)
        assert number is not None
        if text is None:
            return None
        whole = _whole(text)
        if whole is None:
            raise TagError(f"{name}={text}: {name} is an attribute of motes, a whole number as in {name}=4")
        try:
            return checked(name, number, whole)
        except StaticError as error:
            raise TagError(f"{error.message}: {error.hint}") from None

    def want(self, mote: int | None, values: Mapping[str, int | None]) -> None:
        """A mote, or each, is to have these values from now on, None for none; they are sent soon, and to motes that are late when they
        come. Raises StorageError: nothing has changed."""
        if not values:
            return
        before = self._values.rows()
        for name, value in values.items():
            number = self._statics.number(name)
            assert number is not None
            self._values.set(number, mote, value)
        try:
            self._save()
        except StorageError:
            self._values.restore(before)
            raise

    def sent(self, name: str, mote: int | None) -> None:
        """A value was just sent."""
        number = self._statics.number(name)
        if number is not None:
            self._values.sent(number, mote, time.time())

    def tell(self) -> None:
        """Send what motes that have reported lately have otherwise: called every second or so, under the lock."""
        now, speed = time.time(), self._network.catalog.speed
        if (now - self._told) * speed < _EVERY_S:
            return
        self._told = now
        lacking = self._values.lacking(self._network.catalog.all(), now, speed, _ABSENT)
        for number, mote, value in lacking[:_AT_ONCE]:
            self._network.run(*setting(number, value), mote)
            self._values.sent(number, mote, now)

    # ---- kept over a restart ----

    def attribute_rows(self) -> list[dict[str, Any]]:
        """The attributes, to be kept."""
        return self._statics.rows()

    def value_rows(self) -> list[dict[str, Any]]:
        """The values, to be kept."""
        return self._values.rows()

    def restore(self, values: Sequence[Mapping[str, Any]]) -> None:
        """What :meth:`value_rows` said."""
        self._values.restore(values)


def _whole(text: str) -> int | None:
    """The whole number that a text is; None: it is none."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,6}", text) else None


def _unit(unit: Name) -> str:
    """The unit of an attribute. Raises QueryError."""
    found = units.unit_of(unit.name)
    if found is None or found[1] != 1:
        whole = [written for written, (_, factor) in units.UNITS.items() if factor == 1]
        hint = f"values are whole numbers of {', '.join(whole)}, or of no unit"
        raise QueryError(f"'{unit.name}' is no unit of an attribute", hint, unit.span)
    return found[0]
