"""Processes that end together. As a command does it: ``testbed/tests/test_up.py``."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pytest

from skerry_testbed.children import Children

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_who_asks_interrupts_once_and_only_where_that_may_be() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Children() as children:
        children.start(SLEEP)
        os.kill(os.getpid(), signal.SIGTERM)
        assert children.asked
        with pytest.raises(KeyboardInterrupt), children.interruptible():
            pytest.fail("somebody had asked before")
        children.start(SLEEP)
        os.kill(os.getpid(), signal.SIGINT)
    assert len(children.codes) == 2
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_long_step_is_interrupted_and_what_was_started_ends() -> None:
    began = time.monotonic()
    with Children() as children:
        children.start(SLEEP)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGHUP)).start()
        with pytest.raises(KeyboardInterrupt), children.interruptible():
            time.sleep(60)
    assert len(children.codes) == 1
    assert time.monotonic() - began < 30


def test_a_command_that_there_is_not_leaves_none_behind() -> None:
    started = []

    def start() -> None:
        with Children() as children:
            started.append(children.start(SLEEP))
            children.start(["/nonexistent/skerry"])

    with pytest.raises(FileNotFoundError):
        start()
    assert started[0].poll() is not None
