"""Typed expressions over scaled integers: built, bounded, evaluated over columns, and assembled for motes."""
