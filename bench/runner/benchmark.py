"""How a file says that it is a benchmark: it defines ``BENCHMARK``, with options that have usual values and a small form.

::

    @dataclass(frozen=True)
    class Options(SeedOptions):
        epochs: int = option(1000, "epochs of 30 s")

    def measure(options: Options, recorder: Recorder) -> None: ...

    BENCHMARK = Benchmark(measure, quick=Options(epochs=3), minutes=15)
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeVar, get_args, get_origin

from bench.runner.recorder import Recorder
from bench.runner.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

#: What takes longer than so many minutes is run when it is named, or when ``--long`` is given.
LONG_MINUTES = 10


def option(default: Any, text: str) -> Any:
    """A field of a benchmark's options: its usual value, and what ``--help`` says. A field ``Literal`` takes only these words; one of
    ``tuple[...]`` takes several."""
    return dataclasses.field(default=default, metadata={"help": text})


class OptionError(ValueError):
    """Options that do not go together; the message says which and what would be right."""


@dataclass(frozen=True)
class Options:
    """Of a benchmark that has none."""


@dataclass(frozen=True)
class SeedOptions(Options):
    """Of a benchmark that draws from one seed."""

    seed: int = option(1, "what is random is drawn from it")


OptionsT = TypeVar("OptionsT", bound=Options)


@dataclass(frozen=True)
class Benchmark(Generic[OptionsT]):
    """What to measure, and how much of it."""

    #: Measures, and tells the recorder.
    measure: Callable[[OptionsT, Recorder], None]
    #: The small form: as many runs of everything as show that it works, within a minute or so.
    quick: OptionsT
    #: About so long the usual form takes.
    minutes: float = 1.0
    #: Draws a result; into a file of the result's name among the figures.
    chart: Callable[[Result], Chart] | None = None

    @property
    def usual(self) -> OptionsT:
        """Its options where nothing is said."""
        return type(self.quick)()

    @property
    def long(self) -> bool:
        """Whether it has to be asked for."""
        return self.minutes > LONG_MINUTES


class Parser(argparse.ArgumentParser):
    """As argparse's; who misspells an option is told what may have been meant."""

    def error(self, message: str) -> NoReturn:
        """End with status 2."""
        unknown = message.partition("unrecognized arguments: ")[2].split(" ")[0].partition("=")[0]
        known = [text for action in self._actions for text in action.option_strings]
        if unknown.startswith("-"):
            message = f"option {unknown} is unknown{hint(unknown, known)}"
        elif unknown:
            message = f"{unknown!r} is one word too many"
        super().error(message)


def hint(word: str, known: Iterable[str]) -> str:
    """What a misspelt word may have been, or all that it could be, to go behind a message."""
    close = difflib.get_close_matches(word, known := list(known), 1)
    return f": did you mean {close[0]}?" if close else f": known are {', '.join(known)}"


def add_options(parser: argparse.ArgumentParser, defaults: Options) -> None:
    """An option for each field; what is not given is as in ``defaults``."""
    types = typing.get_type_hints(type(defaults))
    for field in dataclasses.fields(defaults):
        kind, usual = types[field.name], getattr(defaults, field.name)
        arguments: dict[str, Any] = {"default": usual, "dest": field.name}
        text = field.metadata["help"]
        if kind is bool:
            arguments |= {"action": "store_true"}
        elif get_origin(kind) is tuple:
            arguments |= {"nargs": "+", **_values(get_args(kind)[0])}
            text += f" ({' '.join(map(str, usual))})"
        else:
            arguments |= _values(kind)
            text += f" ({usual})"
        parser.add_argument(_flag(field.name), help=text.replace("%", "%%"), **arguments)


def options_of(kind: type[OptionsT], found: argparse.Namespace) -> OptionsT:
    """What was parsed."""
    values = {field.name: getattr(found, field.name) for field in dataclasses.fields(kind)}
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})


def arguments_of(options: Options, usual: Options) -> list[str]:
    """The words of a command line that give these options: those that are not the usual ones."""
    words: list[str] = []
    for name, value in _unusual(options, usual).items():
        words.append(_flag(name))
        if not isinstance(value, bool):
            words += map(_word, value if isinstance(value, tuple) else [value])
    return words


def variant_of(options: Options, usual: Options) -> str:
    """The same as part of a file's name; empty where all is as usual."""
    parts = []
    for name, value in _unusual(options, usual).items():
        values = () if isinstance(value, bool) else value if isinstance(value, tuple) else (value,)
        parts.append("-".join([name.replace("_", "-"), *map(_word, values)]))
    return ".".join(parts)


def seeds_of(options: Options) -> list[int]:
    """From ``seed`` on as many as ``seeds`` says; none where nothing is drawn."""
    first, count = getattr(options, "seed", None), getattr(options, "seeds", 1)
    return [] if first is None else list(range(first, first + count))


def _unusual(options: Options, usual: Options) -> dict[str, Any]:
    return {
        field.name: getattr(options, field.name)
        for field in dataclasses.fields(options)
        if getattr(options, field.name) != getattr(usual, field.name)
    }


def _word(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _values(kind: Any) -> dict[str, Any]:
    if get_origin(kind) is Literal:
        choices: Sequence[Any] = get_args(kind)
        return {"choices": choices, "type": type(choices[0])}
    return {"type": kind, "metavar": {int: "N", float: "X"}.get(kind, "TEXT")}
