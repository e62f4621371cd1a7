"""What a result says of where it comes from: the machine, and the state of the project."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from bench.runner.result import Machine

PROJECT = Path(__file__).resolve().parent.parent.parent


def machine() -> Machine:
    """This one."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return Machine(os.cpu_count() or 1, round(memory, 1), platform.python_version(), _processor())


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def commit() -> tuple[str, bool]:
    """Short hash of the commit that is checked out, and whether files that it has were changed since; results and pages do not
    count. ("", True) where there is no repository."""
    head = _git("rev-parse", "--short=7", "HEAD")
    if head is None:
        return "", True
    changed = _git(
        "status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/results", ":!bench/figures", ":!bench/**/*.md"
    )  # fmt: skip
    return head, bool(changed)


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
