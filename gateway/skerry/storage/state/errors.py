"""What can be wrong with a data directory."""

from __future__ import annotations


class DataError(RuntimeError):
    """The data directory cannot be used; one line."""


class StorageError(RuntimeError):
    """The data directory cannot be written now: the disk is full or broken; one line. Not an OSError, which a line may raise."""
