"""What the words of a query mean: names, calls and clauses → typed expressions."""
