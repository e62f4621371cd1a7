"""Indexes in a network that stores its own readings: who stores what, whom a query asks, and what that costs."""
