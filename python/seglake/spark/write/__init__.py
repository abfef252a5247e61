"""Writing segments from Spark: tasks write files aside, and the driver makes them visible together."""
