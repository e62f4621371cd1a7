"""Rows on their way to their readers: the latest batches in memory, and who has rows in them."""
