"""Every packet of skerry, once: packets, framing, bytecode, attributes, settings.

Both ends compile from these definitions: Python uses them as they are, the firmware through
``firmware/include/wire.h``, which :mod:`skerry_protocol.wire_header` generates.
"""

from skerry_protocol.errors import VersionMismatchError
from skerry_protocol.limits import PROTOCOL_VERSION

__all__ = ["PROTOCOL_VERSION", "VersionMismatchError"]
