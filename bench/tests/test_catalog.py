"""All benchmarks: they are found by their files, can be imported, and say what they take."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from bench.runner import catalog
from bench.runner.benchmark import Benchmark, Options, arguments_of, options_of, variant_of
from bench.runner.catalog import Entry, UnknownError
from bench.runner.command import parser_of

ENTRIES = catalog.entries()


def parsed(entry: Entry, benchmark: Benchmark[Options], defaults: Options, words: list[str]) -> Options:
    """What these words come to."""
    return options_of(type(defaults), parser_of(entry, benchmark, defaults).parse_args(words))


def test_no_name_is_in_two_areas() -> None:
    """So that a name alone tells which is meant."""
    assert ENTRIES
    assert [name for name, count in Counter(entry.name for entry in ENTRIES).items() if count > 1] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.key)
def test_a_benchmark_says_what_it_measures_and_takes(
    entry: Entry, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its options can be given on the command line, and come out of it as they were."""
    assert entry.summary.endswith(".")
    benchmark = entry.load()
    usual = benchmark.usual
    assert parsed(entry, benchmark, usual, []) == usual
    quick = arguments_of(benchmark.quick, usual)
    assert parsed(entry, benchmark, usual, quick) == benchmark.quick
    assert bool(quick) == bool(variant_of(benchmark.quick, usual))
    assert arguments_of(usual, usual) == []
    assert benchmark.minutes > 0
    with pytest.raises(SystemExit) as ended:
        parser_of(entry, benchmark, usual).parse_args(["--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    for name in ("quick", "out", *(field.name for field in dataclasses.fields(usual))):
        assert f"--{name.replace('_', '-')}" in told


def test_what_is_misspelt_gets_a_hint() -> None:
    for area, name, hint in (
        ("netwrk", "slots", "area 'netwrk' is unknown: did you mean network?"),
        (
            "physics",
            "slots",
            "area 'physics' is unknown: known are network, gateway, testbed, query, energy, storage, joins",
        ),
        ("lab-yield", "", "area 'lab-yield' is unknown: did you mean bench run network lab_yield?"),
        ("network", "lab_yeld", "network has no benchmark 'lab_yeld': did you mean lab_yield?"),
        ("network", "fanout", "network has no benchmark 'fanout': did you mean bench run gateway fanout?"),
        ("testbed", "xyz", "testbed has no benchmark 'xyz': known are firmware_size, speed"),
    ):
        with pytest.raises(UnknownError) as error:
            catalog.find(area, name)
        assert str(error.value) == hint
    assert catalog.find("network", "lab-yield").key == "network/lab_yield"
