"""What is stored and what pages say of it."""

from __future__ import annotations

import pytest

from bench.runner import catalog
from bench.runner.benchmark import options_of, seeds_of, variant_of
from bench.runner.command import FIRST_WORDS, main, parser_of
from bench.runner.pages import filled, is_same
from bench.runner.result import Result, ResultError, stored
from bench.tests.test_result import made

RESULTS = stored(catalog.RESULTS)


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.key)
def test_a_stored_result_can_be_measured_again(result: Result) -> None:
    """Its command is one that there is, with the options it tells, and its file is called by them."""
    entry = catalog.find(result.area, result.name)
    benchmark = entry.load()
    words = result.command.removeprefix(f"{FIRST_WORDS} run {entry.area} {entry.name}")
    assert words != result.command
    found = parser_of(entry, benchmark, benchmark.usual).parse_args(words.split())
    options = options_of(type(benchmark.quick), found)
    told = {key: tuple(value) if isinstance(value, list) else value for key, value in result.options.items()}
    assert options == type(benchmark.quick)(**told)
    assert result.variant == variant_of(options, benchmark.usual)
    assert result.seeds == seeds_of(options)
    assert result.path(catalog.RESULTS).exists()
    assert not result.quick
    assert result.commit
    assert result.figures


def test_every_benchmark_has_been_measured_and_has_its_place_on_the_first_page() -> None:
    told = {(result.area, result.name) for result in RESULTS if any(figure.main for figure in result.figures)}
    assert {(entry.area, entry.name) for entry in catalog.entries()} == told


def test_pages_and_charts_are_what_the_results_say(capsys: pytest.CaptureFixture[str]) -> None:
    """``bench report`` makes them so."""
    assert main(["report", "--check"]) == 0, capsys.readouterr().err


def test_markers_are_filled_and_all_else_stays() -> None:
    results = {one.key: one for one in (made(), made(name="slots", variant=""))}
    text = "Before.\n<!-- result query/slots -->\nold\n<!-- end -->\nAfter.\n"
    new = filled(text, results, "page")
    assert new.startswith("Before.\n<!-- result query/slots -->\n\n`python -m bench run query pushdown")
    assert new.endswith(
        "Did not hold" if "Did not hold" in new else "Rows are the same.\n\n<!-- end -->\nAfter.\n"
    )
    assert filled(new, results, "page") == new
    with pytest.raises(ResultError, match="page: there is no result query/none"):
        filled(text.replace("slots", "none"), results, "page")


def test_the_first_page_has_main_figures_with_when_and_how() -> None:
    text = "<!-- figures -->\n<!-- end -->\n"
    page = filled(text, {one.key: one for one in (made(),)}, "page")
    assert (
        "| saved | **40 % (35 to 44)** | at least 50 % | 2026-11-27, 44cc297 | `bench run query pushdown --epochs 3` |"
        in page
    )
    assert "same rows" not in page


def test_charts_are_the_same_whatever_processor_draws_them() -> None:
    """Names are made of numbers whose last digits differ."""
    svg = (
        b'<?xml version="1.0"?><g id="m0123456789"/><path d="M 1.500000 2.0" clip-path="url(#p0123456789)"/>'
    )
    assert is_same(svg, svg.replace(b"1.500000", b"1.500001").replace(b"p0123456789", b"pabcdef6789"))
    assert not is_same(svg, svg.replace(b"1.500000", b"1.600000"))
    assert not is_same(svg, svg.replace(b"path", b"line"))
    assert not is_same(svg, svg.replace(b"p0123456789", b"m0123456789"))
    assert not is_same(b"a page 1.5", b"a page 1.500001")
