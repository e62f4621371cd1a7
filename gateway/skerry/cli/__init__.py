"""The skerry command line."""
