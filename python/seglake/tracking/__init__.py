"""What was read of which file: for the ingest and for streams."""
