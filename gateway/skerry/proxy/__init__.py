"""Sensor proxies: one mote stream serves many users."""
