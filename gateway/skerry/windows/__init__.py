"""Aggregates over windows of time, computed from rows as they come."""
