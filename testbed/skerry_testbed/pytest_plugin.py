"""What pytest has wherever skerry is installed: the fixture ``network``, and ``--skerry-skip``. What tests import is in
:mod:`skerry_testbed.pytest`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    parser.getgroup("skerry").addoption(
        "--skerry-skip",
        action="store_true",
        help="skip tests over emulated motes where libraries or images are missing, in place of an error",
    )


@pytest.fixture(scope="session")
def skerry_built(request: pytest.FixtureRequest) -> None:
    """For tests that run motes by other means than ``network``: an error, or with ``--skerry-skip`` a skipped test, where the emulator
    or an image is missing or of another version; the message names it."""
    # Only where it is used: whoever tests something else does not wait for it.
    from skerry_testbed import built
    from skerry_testbed.core import BACKENDS, library
    from skerry_testbed.errors import TestbedError

    try:
        library()
        for board, backend in BACKENDS.items():
            built.library(backend)
            built.check_image(built.image(board))
    except TestbedError as error:
        if request.config.getoption("--skerry-skip"):
            pytest.skip(str(error))
        raise


@pytest.fixture
def network(skerry_built: None) -> Callable[..., Any]:
    """``network(motes, radio=…, environment=…, seed=…, firmware=…)`` or ``network(path)`` makes a network whose root is connected.
    ``network(path, seed=…)`` draws another run of the same description."""
    del skerry_built
    from skerry_testbed.pytest import make_network

    return make_network
