"""A join of motes' rows that begins at the base and moves to where it costs least."""
