"""Parts of Lark's parse tree, by kind, with their places in the text."""

from __future__ import annotations

from typing import Any

from lark import Token, Tree

from skerry.sql import ast
from skerry.sql.ast import Span

Node = Tree[Token] | Token


def tree_of(node: Any) -> Tree[Token]:
    assert isinstance(node, Tree)
    return node


def token_of(node: Any) -> Token:
    assert isinstance(node, Token)
    return node


def span_of(node: Node) -> Span:
    place = node if isinstance(node, Token) else node.meta
    return Span(place.start_pos or 0, place.end_pos or 0)


def name_of(token: Token) -> ast.Name:
    return ast.Name(str(token), span_of(token), quoted=is_quoted(token))


def is_quoted(token: Token) -> bool:
    """Whether quotation marks stood around it, which its place in the text still has."""
    span = span_of(token)
    return span.end - span.start != len(token)


def type_of(node: Any) -> str | None:
    return node.type if isinstance(node, Token) else None
