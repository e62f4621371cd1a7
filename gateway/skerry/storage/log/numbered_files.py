"""Files of a directory that are named for the first record which they have something of."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class NumberedFiles:
    """``path``: the directory; ``suffix``: tells them apart from others in it."""

    path: Path
    suffix: str

    def begins(self) -> list[int]:
        """Their names, ascending; [] where there are none."""
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return []
        found = [name.removesuffix(self.suffix) for name in names if name.endswith(self.suffix)]
        # A copy that somebody has put beside it is none.
        return sorted(int(name) for name in found if name.isdecimal())

    def file(self, begin: int) -> Path:
        """One by its name."""
        return self.path / f"{begin:020d}{self.suffix}"
