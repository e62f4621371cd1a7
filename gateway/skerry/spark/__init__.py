"""Spark: one driver, one streaming query over the log, whatever the number of users."""
