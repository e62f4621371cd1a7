"""The serial line to the root mote: bytes → packets, packets → bytes, both ways reliable."""
