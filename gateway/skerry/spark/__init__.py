"""Spark: one session, one streaming query over the log, whatever the number of users."""
