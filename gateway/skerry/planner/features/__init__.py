"""The parts of a query, a file for each."""
