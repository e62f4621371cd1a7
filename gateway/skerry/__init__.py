"""Ask a network of sensor motes a question in SQL; the answer streams back."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skerry.client.client import Client, connect
    from skerry.client.errors import GatewayError
    from skerry.client.rows import Dropped, Rows, RowsDroppedWarning

__all__ = ["Client", "Dropped", "GatewayError", "Rows", "RowsDroppedWarning", "connect"]

_MODULES = {
    "Client": "client", "connect": "client", "GatewayError": "errors",
    "Dropped": "rows", "Rows": "rows", "RowsDroppedWarning": "rows",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """What users import from here, when they do: the gateway and its workers begin without a client's libraries."""
    if name not in _MODULES:
        raise AttributeError(f"module 'skerry' has no attribute {name!r}: it has {', '.join(__all__)}")
    return getattr(import_module(f"skerry.client.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
