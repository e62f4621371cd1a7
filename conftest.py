"""Settings of all tests: none depends on the machine's speed, nor, in `make test`, on the day's luck."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from gateway.tests import java
from skerry.cli.checkout import complaint

java.use()
# Hundreds of processes import our sources: each would compile them anew where the shell forbids Python to keep what it has compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell's background jobs ignore the one, what nohup starts the other, and so would whatever tests interrupt or hang up on.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

#: What tests draw by that draw: one seed in each `make test`, another in each `make explore`.
SEED = int(os.environ.get("SKERRY_SEED", "20040527"))
EXPLORES = "SKERRY_SEED" in os.environ
#: Tests over networks of emulated motes.
SCENARIOS = Path(__file__).resolve().parent / "hil_tests"

settings.register_profile(
    "skerry",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    derandomize=not EXPLORES,
)
settings.load_profile("skerry")
if not EXPLORES:
    # Hypothesis draws also numbers and texts that it finds in the modules loaded so far: with another one of them, all examples differ.
    pytest.MonkeyPatch().setattr(providers, "is_local_module_file", lambda _: False)


def pytest_configure() -> None:
    """Tests of one checkout do not pass on the code and images of another."""
    other = complaint(Path(__file__).resolve().parent)
    if other is not None:
        raise pytest.UsageError(other)


def pytest_report_header() -> str:
    return f"drawn by: SKERRY_SEED={SEED}"


@pytest.fixture(scope="session")
def drawn_seed() -> int:
    """Of whatever a test draws by itself; `make explore` runs the tests that take it, and Hypothesis'."""
    return SEED


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and item.get_closest_marker("drawn"):
        report.sections.append(("drawn by", f"SKERRY_SEED={SEED}"))
    return report


def pytest_collection_finish() -> None:
    """Thousands of tests and their modules stay until the end: the collector had gone over them all each time."""
    gc.collect()
    gc.freeze()


def takes_long(item: pytest.Item) -> bool:
    """By what the test says of itself, or as it runs a network of motes: else those, which are collected last, would be the last to run."""
    marked = any(item.get_closest_marker(mark) for mark in ("slow", "spark"))
    return marked or item.path.is_relative_to(SCENARIOS)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes long first, for each of several processes its share: those who are done take over what others have left, but not their
    last two tests, which had better be short. Tests of one file stay together."""
    for item in items:
        if "drawn_seed" in getattr(item, "fixturenames", ()):
            item.add_marker("drawn")
    processes: int = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    long = sorted(filter(takes_long, items), key=lambda item: item.path)
    short = [item for item in items if not takes_long(item)]
    files = [list(tests) for _, tests in groupby(long, key=lambda item: item.path)]
    dealt: list[list[list[pytest.Item]]] = [[] for _ in range(processes)]
    for tests in sorted(files, key=len, reverse=True):
        min(dealt, key=lambda share: sum(map(len, share))).append(tests)
    # The longest of all, such as a fuzzer, are alone in their files.
    shares = [[item for tests in reversed(share) for item in tests] for share in dealt]
    # Each process begins with as many tests as any other.
    for number, share in enumerate(shares):
        end = len(items) * (number + 1) // processes - len(items) * number // processes
        share += [short.pop(0) for _ in range(min(len(short), end - len(share)))]
    items[:] = [item for share in shares for item in share] + short
