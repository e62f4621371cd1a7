"""The skerry command line: one short file a group of commands."""
