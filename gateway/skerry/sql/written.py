"""Expressions as text again, each operator in parentheses: for queries that the gateway asks by itself."""

from __future__ import annotations

from skerry.sql import ast
from skerry.sql.quoting import as_name, as_text


def written(node: ast.Expression) -> str:
    """An expression over one table, whose name is left out."""
    match node:
        case ast.Number():
            found = f"{node.value:f}" if node.unit is None else f"{node.value:f} {node.unit}"
        case ast.Text():
            found = as_text(node.text)
        case ast.Null():
            found = "NULL"
        case ast.Name():
            found = as_name(node.name)
        case ast.Call():
            arguments = [*(["*"] if node.star else []), *map(written, node.arguments)]
            found = f"{node.function}({'DISTINCT ' if node.distinct else ''}{', '.join(arguments)})"
        case ast.Unary():
            found = f"({node.operator} {written(node.operand)})"
        case ast.Binary():
            found = f"({written(node.left)} {node.operator} {written(node.right)})"
        case _:
            found = f"({_test(node)})"
    return found


def _test(node: ast.IsNull | ast.Between | ast.InList | ast.Like) -> str:
    operand, negated = written(node.operand), "NOT " if node.negated else ""
    match node:
        case ast.IsNull():
            return f"{operand} IS {negated}NULL"
        case ast.Between():
            return f"{operand} {negated}BETWEEN {written(node.low)} AND {written(node.high)}"
        case ast.InList():
            return f"{operand} {negated}IN ({', '.join(map(written, node.items))})"
        case ast.Like():
            return f"{operand} {negated}LIKE {written(node.pattern)}"
