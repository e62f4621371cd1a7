"""Says in a user's words what msgspec found wrong with a description: which key, which value, what is right."""

from __future__ import annotations

import difflib
import re
import typing
from types import UnionType
from typing import Any, Literal

import msgspec

from skerry_testbed.environment_checks import ATTRIBUTES

_PATH = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.?(?P<name>[A-Za-z_][\w-]*)|\[(?P<index>\d*|\.\.\.)\]")


def explain(error: msgspec.ValidationError, raw: Any, schema: type[msgspec.Struct]) -> str:
    """One line for an error of ``msgspec.convert(raw, schema)``."""
    text = str(error)
    match = _PATH.search(text)
    path, text = (match["path"], text[: match.start()]) if match else ("", text)
    named = _named(path, raw, schema)
    key = named.lstrip(".")
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", text):
        return _unknown(key, unknown[1], _table(_type_at(path, schema)))
    if missing := re.fullmatch(r"Object missing required field `(.*)`", text):
        return f"{_join(key, missing[1])} is missing"
    annotation, value = _type_at(path, schema), _value_at(named, raw)
    allowed = _literals(annotation)
    expected = " or ".join(allowed) if allowed else _expected(text)
    if allowed and _list(annotation) is not annotation:
        expected += " or a list"
    if isinstance(value, dict):
        # A table where there are several: TOML writes these in twice as many brackets.
        if _is_table(_member(annotation)):
            return f"[{key}]: expected [[{key}]], as there may be several"
        one = key.partition("s[")[0]
        if _is_table(_member(_type_at(f".{one}", schema))):
            expected += f"; a table for each is [[{one}]]"
    return f"{key} = {value!r}: expected {expected}"


def _unknown(key: str, name: str, struct: Any) -> str:
    known = list(struct.__struct_fields__)
    if "fields" in known and name in ATTRIBUTES:
        return f"{_join(key, name)}: no such key; what {name} is stands in [{_join(key, 'fields')}]"
    close = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"the keys are {', '.join(known)}"
    return f"{_join(key, name)}: no such key; {hint}"


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _expected(text: str) -> str:
    if counted := re.match(r"Expected `array` of length (\d+)", text):
        return f"a list of {counted[1]}"
    match = re.match(r"Expected `([^`]*)`", text)
    if not match:
        return text[0].lower() + text[1:]
    names = {
        "int": "a whole number",
        "float": "a number",
        "str": "text",
        "bool": "true or false",
        "array": "a list",
        "object": "a table",
    }
    parts = [names.get(part.strip(), part.strip()) for part in match[1].split("|")]
    return " or ".join(dict.fromkeys(part for part in parts if part != "null"))


def _named(path: str, raw: Any, schema: Any) -> str:
    """The path with the key of a table for each ``[...]``, which is how msgspec writes whichever of them."""
    before, found, behind = path.partition("[...]")
    if not found:
        return path
    member = _type_at(before + found, schema)
    for name, value in _value_at(before, raw).items():
        try:
            msgspec.convert(value, member)
        except msgspec.ValidationError:
            return f"{before}.{name}{behind}"
    return path


def _value_at(path: str, raw: Any) -> Any:
    for step in _STEP.finditer(path):
        if step["name"] is not None:
            raw = raw.get(step["name"]) if isinstance(raw, dict) else None
        elif isinstance(raw, list) and step["index"].isdigit():
            raw = raw[int(step["index"])]
    return raw


def _type_at(path: str, schema: Any) -> Any:
    """The type that the schema gives a path such as ``.mote[0].id``."""
    for step in _STEP.finditer(path):
        if step["name"] is not None:
            schema = typing.get_type_hints(_table(schema)).get(step["name"], Any)
        else:
            members = typing.get_args(_list(schema))
            schema = members[-1] if members else Any
    return schema


def _member(annotation: Any) -> Any:
    """What a list has; None: it is none."""
    return typing.get_args(annotation)[0] if typing.get_origin(annotation) is list else None


def _is_table(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)


def _alternatives(annotation: Any) -> list[Any]:
    union = typing.get_origin(annotation) in (typing.Union, UnionType)
    return list(typing.get_args(annotation)) if union else [annotation]


def _table(annotation: Any) -> Any:
    """The structure among the alternatives of a type."""
    found = [one for one in _alternatives(annotation) if _is_table(one)]
    return found[0] if found else annotation


def _list(annotation: Any) -> Any:
    """The list, tuple or mapping among them."""
    found = [one for one in _alternatives(annotation) if typing.get_origin(one) in (list, tuple, dict)]
    return found[0] if found else annotation


def _literals(annotation: Any) -> list[str]:
    return [
        str(value)
        for one in _alternatives(annotation)
        if typing.get_origin(one) is Literal
        for value in typing.get_args(one)
    ]
