"""What a gateway remembers between runs: an SQLite database that it alone opens, and beside it files that other processes read."""

from skerry.storage.state.directory import RESERVE, DataDirectory
from skerry.storage.state.errors import DataError, StorageError

__all__ = ["RESERVE", "DataDirectory", "DataError", "StorageError"]
