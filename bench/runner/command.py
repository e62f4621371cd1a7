"""``python -m bench``: list benchmarks, run them, compare results, and fill pages with them."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.runner import catalog, comparison, pages
from bench.runner.benchmark import (
    LONG_MINUTES,
    Benchmark,
    OptionError,
    Options,
    Parser,
    add_options,
    arguments_of,
    options_of,
    seeds_of,
    variant_of,
)
from bench.runner.catalog import Entry, UnknownError
from bench.runner.children import ended_with_it
from bench.runner.markdown import result_text
from bench.runner.provenance import PROJECT, commit, machine
from bench.runner.recorder import Recorder
from bench.runner.result import Result, ResultError, stored, write
from skerry_testbed.errors import TestbedError

#: Where small forms and runs that were cut short leave their results: they are no record.
SCRATCH = PROJECT / "build" / "bench"
INTERRUPTED = 130
FIRST_WORDS = ".venv/bin/python -m bench"


def main(words: Sequence[str]) -> int:
    """The command line; returns the exit status: 1 when something failed, 2 for a command that is wrong, 130 when interrupted."""
    try:
        return _run(list(words[1:])) if words and words[0] == "run" else _other(words)
    except (UnknownError, ResultError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return 1


def _other(words: Sequence[str]) -> int:
    """All commands but ``run``, whose options depend on what is run."""
    parser = Parser(prog="bench", description=(__doc__ or "").partition(": ")[2])
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    commands.add_parser("run", help="measure: bench run [AREA [NAME]] [--quick]", add_help=False)
    listing = commands.add_parser("list", help="which benchmarks there are, and when each was last measured")
    listing.add_argument("area", nargs="?", help=f"of {', '.join(catalog.AREAS)}; all if none is named")
    report = commands.add_parser("report", help="fill pages and draw charts from the results")
    report.add_argument(
        "--check", action="store_true", help="change nothing; fail when a page or chart is not what the results say"
    )  # fmt: skip
    compare = commands.add_parser(
        "compare", help="two results, or two folders of them: what became better or worse"
    )
    comparison.add_arguments(compare)
    found = parser.parse_args(words)
    if found.command == "list":
        return _list(found.area)
    if found.command == "report":
        return pages.report(check=found.check)
    return comparison.compare(found)


def _list(area: str | None) -> int:
    areas = [catalog.find_area(area)] if area else list(catalog.AREAS)
    last: dict[str, Result] = {}
    for result in stored(catalog.RESULTS):
        key = f"{result.area}/{result.name}"
        last[key] = max(last.get(key, result), result, key=lambda one: one.date)
    cut = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for name in areas:
        print(f"\n{name}: {catalog.AREAS[name]}")
        own = catalog.entries([name])
        width = max((len(entry.name) for entry in own), default=0)
        for entry in own:
            when = last.get(entry.key)
            measured = f"{when.date} {when.commit}" if when else "never measured    "
            line = f"  {entry.name:{width}}  {measured}  {entry.summary}"
            print(line if cut is None else line[:cut])
    print("\nbench run AREA NAME --help tells its options.")
    return 0


def _run(words: list[str]) -> int:
    # Flags before the names mean the same behind them.
    flags = list(itertools.takewhile(("--quick", "--long").__contains__, words))
    words = [*words[len(flags) :], *flags]
    names: list[str] = []
    while words and not words[0].startswith("-") and len(names) < 2:
        names.append(words.pop(0))
    if len(names) == 2:
        return _run_one(catalog.find(*names), words)
    areas = [catalog.find_area(names[0])] if names else list(catalog.AREAS)
    return _run_all(areas, words, "one of them" if names else "one benchmark")


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quick", action="store_true", help="a small form that shows that it works, within a minute or so"
    )
    parser.add_argument(
        "--note", default="", metavar="TEXT", help="kept with the result, such as what else ran meanwhile"
    )


def _run_all(areas: list[str], words: list[str], whose: str) -> int:
    """One process each, so that none measures what another has left behind; goes on where one fails."""
    own = catalog.entries(areas)
    names = "\n".join(f"  {entry.area} {entry.name:20} {entry.summary}" for entry in own)
    parser = Parser(
        prog=f"bench run{f' {areas[0]}' if len(areas) == 1 else ''}", formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="bench run [AREA [NAME]] [--quick] [--long] [--note TEXT] [options of NAME]",
        description="Measure: all benchmarks, those of an area, or one, which may have options of its own (--help behind its name).\n"
        "A result goes to bench/results; that of a small form to build/bench.",
        epilog=f"{names}",
    )  # fmt: skip
    _common(parser)
    parser.add_argument(
        "--long", action="store_true", help=f"those that take longer than {LONG_MINUTES} minutes, too"
    )
    found, unknown = parser.parse_known_args(words)
    if unknown:
        parser.error(f"{unknown[0]} may be an option of {whose}: name it behind the area")
    left_out, failed = [], []
    for entry in own:
        benchmark = entry.load()
        if benchmark.long and not (found.long or found.quick):
            left_out.append(f"{entry.area} {entry.name} (some {benchmark.minutes:g} min)")
            continue
        print(f"\n## {entry.area} {entry.name}: {entry.summary}", flush=True)
        command = [sys.executable, "-m", "bench", "run", entry.area, entry.name]
        command += ["--quick"] * found.quick + (["--note", found.note] if found.note else [])
        status = _in_process(command)
        if status == INTERRUPTED:
            return INTERRUPTED
        if status:
            failed.append(f"{entry.area} {entry.name}")
    if left_out:
        print(f"\nleft out without --long: {', '.join(left_out)}")
    if failed:
        print(f"\nbench: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _in_process(command: list[str]) -> int:
    """Run it; Ctrl-C reaches it by itself, and it is waited for while it cleans up."""
    with subprocess.Popen(command, cwd=PROJECT) as child:
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:
                continue


def parser_of(entry: Entry, benchmark: Benchmark[Any], defaults: Options) -> Parser:
    """Of one benchmark's command line."""
    parser = Parser(
        prog=f"bench run {entry.area} {entry.name}", description=f"{entry.summary} Takes some {benchmark.minutes:g} minutes.",
        allow_abbrev=False,
    )  # fmt: skip
    _common(parser)
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="where the result goes, in place of its own place"
    )
    own = parser.add_argument_group("what is measured")
    add_options(own, defaults)  # type: ignore[arg-type]
    return parser


def _run_one(entry: Entry, words: list[str]) -> int:
    benchmark = entry.load()
    quick = "--quick" in words
    usual = benchmark.quick if quick else benchmark.usual
    parser = parser_of(entry, benchmark, usual)
    found = parser.parse_args(words)
    options = options_of(type(benchmark.quick), found)
    recorder = Recorder()
    status = 0
    head, changed = commit()
    try:
        with _temporary_files(), _interruptible(), ended_with_it():
            benchmark.measure(options, recorder)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except (TestbedError, OptionError) as error:
        recorder.done()
        print(f"bench: {error}", file=sys.stderr)
        return 2 if isinstance(error, OptionError) else 1
    recorder.done()
    result = Result(
        area=entry.area, name=entry.name, variant=variant_of(options, usual), quick=quick,
        command=" ".join([FIRST_WORDS, "run", entry.area, entry.name, *["--quick"] * quick, *arguments_of(options, usual)]),
        options=dataclasses.asdict(options), date=datetime.date.today().isoformat(), commit=head, changed=changed,
        seeds=seeds_of(options), machine=machine(), seconds=round(recorder.seconds, 1), note=found.note,
        figures=recorder.figures, tables=recorder.tables, remarks=recorder.remarks, problems=recorder.problems,
    )  # fmt: skip
    print(result_text(result))
    if status:
        print("bench: interrupted: what was measured until then is not kept", file=sys.stderr)
        return status
    whole = not (quick or recorder.cut_short)
    path = found.out or result.path(catalog.RESULTS if whole else SCRATCH)
    write(result, path)
    print(f"\n{'kept' if whole else 'a result for now'}: {_short(path)}")
    for problem in result.problems:
        print(f"bench: {problem}", file=sys.stderr)
    return 1 if result.problems else 0


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM ends as Ctrl-C does, so that what was started is stopped; and Ctrl-C does so in a shell's background job, too."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _temporary_files() -> Iterator[None]:
    """What is made in the folder of temporary files is in one that goes: also what Spark leaves there when it is interrupted."""
    before, known = os.environ.get("TMPDIR"), tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="skerry-bench-", ignore_cleanup_errors=True) as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        try:
            yield
        finally:
            tempfile.tempdir = known
            if before is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = before


def _short(path: Path) -> str:
    path = path.resolve()
    return str(path.relative_to(PROJECT)) if path.is_relative_to(PROJECT) else str(path)
