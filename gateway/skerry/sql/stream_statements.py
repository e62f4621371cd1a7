"""Statements about streams that are made of others: CREATE STREAM x AS SELECT …, DROP STREAM x, SHOW STREAMS."""

from __future__ import annotations

import re
from dataclasses import dataclass

from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError

_COMMENTS = r"(?:\s|--[^\n]*(?:\n|$))*"
_BEGINS = re.compile(rf"{_COMMENTS}(create|drop|show)\s+streams?\b", re.IGNORECASE)
_CREATE = re.compile(rf"{_COMMENTS}create\s+stream\s+([A-Za-z_]\w*)\s+as\b", re.IGNORECASE)
_DROP = re.compile(rf"{_COMMENTS}drop\s+stream\s+([A-Za-z_]\w*)\s*;?\s*", re.IGNORECASE)
_SHOW = re.compile(rf"{_COMMENTS}show\s+streams\s*;?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CreateStream:
    """``CREATE STREAM name AS select``. ``select``: its text, where it stands in the whole one."""

    name: ast.Name
    select: str


@dataclass(frozen=True, slots=True)
class DropStream:
    """``DROP STREAM name``."""

    name: ast.Name


@dataclass(frozen=True, slots=True)
class ShowStreams:
    """``SHOW STREAMS``."""


StreamStatement = CreateStream | DropStream | ShowStreams


def parse(text: str) -> StreamStatement | None:
    """The statement in a text; None: it begins as none of these. Raises QueryError."""
    begins = _BEGINS.match(text)
    if begins is None:
        return None
    if (found := _CREATE.match(text)) is not None:
        return CreateStream(_name(found), " " * found.end() + text[found.end() :])
    if (found := _DROP.fullmatch(text)) is not None:
        return DropStream(_name(found))
    if _SHOW.fullmatch(text) is not None:
        return ShowStreams()
    hint = "write CREATE STREAM name AS SELECT …, DROP STREAM name or SHOW STREAMS"
    raise QueryError("this says nothing of a stream", hint, Span(begins.start(1), begins.end()), text)


def _name(found: re.Match[str]) -> ast.Name:
    return ast.Name(found[1], Span(found.start(1), found.end(1)))
