"""The stream log: append-only, durable, replayable."""
