"""Joins of streams within windows of time or of rows."""
