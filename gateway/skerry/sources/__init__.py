"""Streams of sensors that are no motes: types of them, and the process that reads them."""
