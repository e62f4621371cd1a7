"""A virtual testbed: the real firmware images on emulated chips, with radio, energy and faults."""
