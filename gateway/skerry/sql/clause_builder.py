"""Clauses of Lark's parse tree → those of :mod:`skerry.sql.ast`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lark import Token, Tree

from skerry.sql import ast
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.expression_builder import expression_of, value_of
from skerry.sql.nodes import name_of, span_of, token_of, tree_of
from skerry.sql.units import TIME_NAMES, TIMES, time_of

#: What FOR counts, where it is no unit of time.
_ROUNDS = ("round", "rounds", "epoch", "epochs")


def item_of(tree: Tree[Token]) -> ast.SelectItem:
    if tree.data == "star":
        table = str(tree.children[0]) if tree.children[0] is not None else None
        return ast.SelectItem(ast.Star(span_of(tree), table), None, span_of(tree))
    expression, _, alias = tree.children
    return ast.SelectItem(expression_of(expression), str(alias) if alias is not None else None, span_of(tree))


def sampling_of(tree: Tree[Token]) -> ast.SamplePeriod | ast.Once | ast.Lifetime:
    if tree.data == "once":
        return ast.Once(span_of(tree))
    if tree.data == "lifetime":
        *_, duration, _, least = tree.children
        return ast.Lifetime(
            duration_of(tree_of(duration), "LIFETIME"),
            duration_of(tree_of(least), "MIN SAMPLE RATE") if least is not None else None,
            span_of(tree),
        )
    # Without FOR the place-holders of its word and its length are None.
    written = next(child for child in tree.children if isinstance(child, Tree))
    length = tree.children[-1]
    # TinyDB 2005, appendix B: SAMPLE PERIOD seconds; the language that TinyDB shipped counted ms.
    clause, unit = ("EPOCH DURATION", "ms") if tree.data == "epoch_duration" else ("SAMPLE PERIOD", "s")
    period = duration_of(written, clause, unit)
    return ast.SamplePeriod(period, _length(tree_of(length)) if length is not None else None, span_of(tree))


def history_of(tree: Tree[Token]) -> ast.History:
    only = tree.children[2]
    return ast.History(duration_of(tree_of(tree.children[1]), "HISTORY"), only is not None, span_of(tree))


def ordered_of(tree: Tree[Token]) -> ast.Ordered:
    expression, direction = tree.children
    descending = direction is not None and token_of(direction).type == "DESC"
    return ast.Ordered(expression_of(expression), descending, span_of(tree))


def limit_of(token: Token) -> ast.Number:
    return ast.Number(value_of(token), None, span_of(token))


def queue_of(tree: Tree[Token]) -> ast.Queue:
    _, policy, _, number, *_, send = tree.children
    size = ast.Number(value_of(token_of(number)), None, span_of(number)) if number is not None else None
    return ast.Queue(
        name_of(token_of(policy)),
        size,
        duration_of(tree_of(send), "SEND PERIOD") if send is not None else None,
        span_of(tree),
    )


def approximate_of(tree: Tree[Token]) -> ast.Approximate:
    _, _, number, unit = tree.children
    span = span_of(number).to(span_of(unit)) if unit is not None else span_of(number)
    within = ast.Number(value_of(token_of(number)), str(unit) if unit is not None else None, span)
    return ast.Approximate(within, span_of(tree))


def _event_name(node: Any) -> ast.Name:
    return ast.Name("".join(map(str, tree_of(node).children)), span_of(tree_of(node)))


def output_of(tree: Tree[Token]) -> ast.Output:
    *_, name, argument = tree.children
    return ast.Output(
        _event_name(name), expression_of(argument) if argument is not None else None, span_of(tree)
    )


def signal_of(tree: Tree[Token]) -> ast.Signal:
    trees = [tree_of(child) for child in tree.children if isinstance(child, Tree)]
    name, *parameters = trees
    return ast.Signal(_event_name(name), tuple(map(expression_of, parameters)), span_of(tree))


def event_of(tree: Tree[Token]) -> ast.OnEvent:
    trees = [tree_of(child) for child in tree.children if isinstance(child, Tree)]
    words = {child.type for child in tree.children if isinstance(child, Token)}
    alternatives = tuple(
        tuple(_one_event(tree_of(child)) for child in of.children if isinstance(child, Tree)) for of in trees
    )
    return ast.OnEvent(alternatives, "ALIGNED" in words, "NO_OVERLAP" in words, span_of(tree))


def _one_event(tree: Tree[Token]) -> ast.Event:
    name, *rest = tree.children
    event = _event_name(name)
    parameters = [tree_of(child) for child in rest if child is not None]
    times = [duration_of(tree_of(p.children[0]), "every") for p in parameters if p.data == "parameter_time"]
    names = _named(parameters)
    if event.name.lower() != "every":
        if times:
            hint = "write ON EVENT every(10 min) for a timer"
            raise QueryError("a time is no parameter of an event", hint, times[0].span)
        return ast.Event(event, names, None, span_of(tree))
    if len(times) != 1 or names:
        raise QueryError("a timer needs one time", "write ON EVENT every(10 min)", span_of(tree))
    return ast.Event(event, (), times[0], span_of(tree))


def _named(parameters: Sequence[Tree[Token]]) -> tuple[ast.Name, ...]:
    return tuple(name_of(token_of(p.children[0])) for p in parameters if p.data == "parameter_name")


def stop_of(tree: Tree[Token]) -> ast.StopOn:
    *_, one, _, where = tree.children
    name, *rest = tree_of(one).children
    parameters = [tree_of(child) for child in rest if child is not None]
    for parameter in parameters:
        if parameter.data == "parameter_time":
            hint = "name an attribute of the mote that raises it, as in STOP ON EVENT hot(temp)"
            raise QueryError("a time is no parameter of an event", hint, span_of(parameter))
    condition = expression_of(where) if where is not None else None
    return ast.StopOn(_event_name(name), _named(parameters), condition, span_of(tree))


def _length(tree: Tree[Token]) -> ast.Duration | ast.Rounds:
    number, unit = tree.children
    if unit is None or token_of(unit).lower() in _ROUNDS:
        return ast.Rounds(value_of(token_of(number)), span_of(tree))
    return duration_of(tree)


def duration_of(tree: Tree[Token], clause: str = "", unstated: str = "s") -> ast.Duration:
    """``clause``: the words before it, for what is said where no unit is written, which then is ``unstated``."""
    number, unit = tree.children
    if unit is None:
        milliseconds = value_of(token_of(number)) * TIMES[unstated]
        return ast.Duration(milliseconds, span_of(tree), f"{clause} {number} is {number} {unstated}")
    number, unit = token_of(number), token_of(unit)
    size = time_of(unit)
    if size is None:
        # m is metres elsewhere, and minutes to many.
        guess = did_you_mean("minutes" if unit == "m" else str(unit), list(TIMES))
        hint = f"{guess}times are in {', '.join(TIME_NAMES)}"
        raise QueryError(f"unknown unit of time '{unit}'", hint, span_of(unit))
    return ast.Duration(value_of(number) * size, span_of(tree))
