"""The stream log: append-only, durable, replayable; and the Spark data source that reads it."""
