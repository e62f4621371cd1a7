"""Further cases of a test that `make soak` runs and `make test` leaves out, such as seeds: each new image draws other frames from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def soaked(cases: Iterable[Any]) -> list[Any]:
    """For `parametrize`; a case of several parameters is a tuple."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.soak)
        for case in cases
    ]
