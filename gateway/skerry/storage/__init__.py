"""What is on disk: the stream log, the past, and what the gateway remembers."""
