"""Rows as JSON: what has no form there is null, wherever it stands, and everything else stays as it is."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.sql.row_text import json_text

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_a_reader_that_goes_by_the_standard_reads_it(value: Any) -> None:
    # msgspec refuses NaN and Infinity.
    assert msgspec.json.decode(json_text(value)) == finite(value)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_row_without_a_finite_number_keeps_its_others(number: float) -> None:
    row = {"at": datetime(2026, 11, 29, 1, 2, 3, tzinfo=UTC), "x": number, "near": [1.5, number]}
    assert json_text(row) == '{"at": "2026-11-29T01:02:03.000Z", "x": null, "near": [1.5, null]}'


def finite(value: Any) -> Any:
    match value:
        case dict():
            return {name: finite(part) for name, part in value.items()}
        case list():
            return [finite(part) for part in value]
        case float() if math.isnan(value) or math.isinf(value):
            return None
    return value
