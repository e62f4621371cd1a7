"""Processes that serve readers beside the gateway's own."""
