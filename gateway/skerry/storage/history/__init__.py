"""The past of the streams: Parquet by stream and day beside the log, and queries over both."""
