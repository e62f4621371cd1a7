"""Questions about the past, planned as SQL and answered by a database engine in a process of its own."""
