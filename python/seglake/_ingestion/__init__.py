"""The ingest: segments in, three Parquet tables out, in one pass over each file. It needs pyarrow, and no Spark.

`driver` leads through it; an `engine` has it run the tasks; `task` reads files and stages what they hold with `tables`;
`commit` makes that visible, or clears away what a dead run has left; `layout` names the folders.
"""
