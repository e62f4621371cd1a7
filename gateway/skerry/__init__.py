"""Ask a network of sensor motes a question in SQL; the answer streams back."""

from skerry.client import Client, GatewayError, Rows, connect

__all__ = ["Client", "GatewayError", "Rows", "connect"]
