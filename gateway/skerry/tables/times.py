"""Times that files hold as texts, in ISO 8601: of a day or of a moment, without a zone in UTC."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
_LOCAL = rf"^{_DAY}({_CLOCK})?$"
_ZONED = rf"^{_DAY}{_CLOCK}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)$"
#: Either, for who looks for what is none.
PATTERN = f"{_LOCAL}|{_ZONED}"


def times_of(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray | None:
    """A column of texts as one of timestamps, to the millisecond; None: not all are times."""
    for pattern, kind in ((_LOCAL, pa.timestamp("ns")), (_ZONED, pa.timestamp("ns", "UTC"))):
        if pc.all(pc.match_substring_regex(texts, pattern)).as_py():
            try:
                return texts.cast(kind)
            except pa.ArrowInvalid:
                # A thirteenth month.
                return None
    return None
