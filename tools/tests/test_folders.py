"""A newcomer who opens a folder is told what it owns."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTS = ["bench", "docs", "firmware", "gateway/skerry", "hil_tests", "protocol", "testbed", "tools"]


def folders(part: Path) -> list[Path]:
    """A part and the folders below it that hold files: none of what is built, and none below tests, which are named as what they test."""
    below = [part, *(path for path in part.rglob("*") if path.is_dir())]
    named = [(path, path.relative_to(part).parts) for path in below]
    return [
        path
        for path, names in named
        if not any(name.startswith((".", "__")) or name.endswith(".egg-info") for name in names)
        and "tests" not in names
        and names[:-1] != ("results",)  # of one kind of files that their parent explains
        and names != ("vectors",)
        and any(child.is_file() for child in path.iterdir())
    ]


def test_every_folder_has_its_readme() -> None:
    bare = [
        str(path.relative_to(ROOT))
        for part in PARTS
        for path in folders(ROOT / part)
        if not (path / "README.md").exists()
    ]
    assert not bare, f"folders without a README.md: {', '.join(bare)}"
