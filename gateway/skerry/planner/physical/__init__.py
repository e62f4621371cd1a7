"""What motes run: mote queries, the order of their conditions, programs."""
