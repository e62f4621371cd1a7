"""Stores of a shop: which items sell in all of them within an hour."""
