"""Every packet of skerry, once: packets, framing, bytecode, attributes, settings.

Both ends compile from these definitions: Python uses them as they are, the firmware through
``firmware/include/wire.h``, which :mod:`skerry_protocol.wire_header` generates.
"""

from skerry_protocol.packets import PROTOCOL_VERSION, VersionMismatchError

__all__ = ["PROTOCOL_VERSION", "VersionMismatchError"]
