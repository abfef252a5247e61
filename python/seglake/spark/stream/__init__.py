"""Reading logs as a stream: `spark.readStream.format("seglake")`."""
