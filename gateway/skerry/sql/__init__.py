"""The query language: text to syntax tree, with errors that point at the column."""
