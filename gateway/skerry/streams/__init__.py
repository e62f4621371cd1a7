"""What a stream is, and whose rows count when."""
