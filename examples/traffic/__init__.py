"""Traffic as it spreads between the stations of a road."""
