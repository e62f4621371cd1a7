"""Results as Markdown: what a run prints, and what pages are filled with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.runner.result import Figure, Result, Table, shown


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def figures_table(figures: Sequence[Figure]) -> str:
    """What, measured, goal."""
    return markdown(
        ["what", "measured", "goal"],
        [[figure.what, _marked(figure), figure.goal_text] for figure in figures],
    )


def _marked(figure: Figure) -> str:
    return f"{figure.text} (missed)" if figure.missed else figure.text


def table_text(table: Table) -> str:
    """A table of cells."""
    head = [column.head for column in table.columns]
    rows = [
        [shown(cell, form=column.form) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    title = f"{table.title}\n\n" if table.title else ""
    return title + markdown(head, rows)


def origin(result: Result) -> str:
    """How, when and on what a result was measured, in a line."""
    parts = [f"`{result.command}`", result.date]
    parts.append(f"commit {result.commit or 'unknown'}{' and changes' if result.changed else ''}")
    if len(result.seeds) > 1:
        parts.append(f"seeds {result.seeds[0]} to {result.seeds[-1]}")
    elif result.seeds:
        parts.append(f"seed {result.seeds[0]}")
    parts.append(str(result.machine))
    if result.seconds is not None:
        parts.append(f"{result.seconds:,.0f} s")
    if result.note:
        parts.append(result.note)
    return ", ".join(parts)


def result_text(result: Result) -> str:
    """Everything of a result."""
    parts = [origin(result) + "."]
    if result.figures:
        parts.append(figures_table(result.figures))
    parts += [table_text(table) for table in result.tables]
    parts += result.remarks
    parts += [f"Did not hold: {problem}" for problem in result.problems]
    return "\n\n".join(parts)
