"""The gateway: users' queries, and the order in which everything changes."""
