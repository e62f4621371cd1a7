"""Packets of rows → records of the log, each once."""
