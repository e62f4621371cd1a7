"""Ask a network of sensor motes a question in SQL; the answer streams back."""

from skerry.client import Client, connect
from skerry.errors import GatewayError
from skerry.rows import Dropped, Rows, RowsDroppedWarning

__all__ = ["Client", "Dropped", "GatewayError", "Rows", "RowsDroppedWarning", "connect"]
