"""A single, a joint and a decomposed index on emulated motes: tuples and questions of DIM 2004's figure 4, and the planner's figures.

A whole gateway asks. Each mote samples a tuple a period; questions are counts, least and greatest values in the panel's ranges, one after
the other. Bytes go from preamble to FCS with acknowledgements and repetitions, above the idle network's: of inserts what ways carry, and
apart what opens them; of questions floods and answers. Energy is of all motes, that of questions above the same network's while it inserts.
The planner reckons with chains of parts, which motes do not have: they are asked by floods, and answer up the tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, median
from typing import Literal

from bench.measuring.indexes_on_motes import FORMS, Form, Setting, run
from bench.measuring.parallel import on_all_cores
from bench.measuring.storage_load import PANELS
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from hil_tests.datasets import DATA


@dataclass(frozen=True)
class Options(SeedOptions):
    columns: int = option(4, "motes of the grid, from left to right")
    rows: int = option(3, "and from bottom to top")
    period: int = option(120, "the sample period, s")
    epochs: int = option(4, "sample periods that are measured, after 240 s of them")
    questions: int = option(8, "how many are asked, one after the other")
    panels: tuple[Literal["uniform", "gaussian", "redwood"], ...] = option(
        ("uniform", "gaussian", "redwood"), "tuples, with the questions that the paper has for them"
    )
    forms: tuple[Literal["single", "joint", "decomposed"], ...] = option(
        tuple(FORMS), "how tuples are stored"
    )


def measure(options: Options, recorder: Recorder) -> None:
    """A row for each panel and form."""
    panels = [panel for panel in PANELS if panel.data in options.panels]
    if not DATA.exists():
        panels = [panel for panel in panels if panel.data != "redwood"]
        recorder.remark(f"{DATA} is not here: without the redwood's tuples")
    jobs = [
        Setting(
            panel, form, options.epochs, options.questions, options.seed, options.columns, options.rows, options.period
        )
        for panel in panels
        for form in options.forms
    ]  # fmt: skip
    table = recorder.table(
        "indexes",
        [
            Column("panel"), Column("index"), Column("tuples stored", "%", ".1f"), Column("a tuple", "B", ".0f"),
            Column("a tuple ÷ planner's", form=".2f"), Column("opening ways, a tuple", "B", ".0f"),
            Column("opening ways ÷ planner's", form=".2f"),
            Column("frames a tuple", form=".2f"), Column("most loaded mote, a tuple", "B", ".0f"),
            Column("radio a tuple", "mJ", ".1f"), Column("a question", "B", ".0f"), Column("a question ÷ planner's", form=".2f"),
            Column("most loaded mote, a question", "B", ".0f"), Column("radio a question", "mJ", ".1f"),
            Column("answered after, median", "s", ".1f"), Column("answered after, 95 %", "s", ".1f"),
            Column("complete", "%", ".0f"), Column("DuckDB's", "%", ".0f"), Column("dropped by motes"),
        ],
        title=f"{options.columns} by {options.rows} motes, {options.epochs} tuples of each, one in {options.period} s; "
        f"{options.questions} questions",
        labels=2,
    )  # fmt: skip
    tuples = stored = right = asked = 0
    ratios: dict[Form, list[tuple[float, float, float]]] = {}
    for job, one in zip(
        jobs, recorder.steps(on_all_cores(run, jobs), "indexes", total=len(jobs)), strict=True
    ):
        late, count = sorted(one.seconds), len(one.seconds)
        each, question = one.inserts.total / one.tuples, one.questions.total / count
        opening = one.opening.total / one.tuples
        of = each / one.insert_model, opening / one.opening_model, question / fmean(one.question_model)
        ratios.setdefault(job.form, []).append(of)
        table.row(
            job.panel.name, job.form, 100 * one.stored / one.sampled, each, of[0], opening, of[1],
            one.inserts.frames / one.tuples, one.inserts.most / one.tuples, 1e3 * one.insert_radio_j / one.tuples, question, of[2],
            one.questions.most / count, 1e3 * one.question_radio_j / count, median(late), late[int(0.95 * (count - 1))],
            100 * one.complete / count, 100 * one.right / count, one.dropped,
        )  # fmt: skip
        tuples, stored, right, asked = (
            tuples + one.sampled,
            stored + one.stored,
            right + one.right,
            asked + count,
        )
    for form, both in ratios.items():
        for what, place in (("a tuple", 0), ("opening ways", 1), ("a question", 2)):
            recorder.figure(
                f"bytes of {what} ÷ the planner's, {form}", fmean(one[place] for one in both), "×", ".2f"
            )
    recorder.figure(
        "tuples that are stored, each once", 100 * stored / tuples, "%", ".2f", better="more", goal=99.5, main=True
    )  # fmt: skip
    recorder.figure(
        "answers that are DuckDB's over what is stored", 100 * right / asked, "%", ".1f", better="more", goal=100, main=True
    )  # fmt: skip


BENCHMARK = Benchmark(
    measure,
    quick=Options(epochs=3, questions=4, panels=("uniform",), forms=("single", "decomposed")),
    minutes=30,
)
