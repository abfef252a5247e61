"""The ingest: segments in, three Parquet tables out, in one pass over each file. It needs pyarrow, and no Spark.

`run` is what callers see, and `driver` leads through it. An `engine`, as the one of `threads`, has the tasks of the
`plan` run. A `task` reads files and stages their `output` with the writers of `tables`; its `outcome` tells what became
of them. `commit` makes that visible, or clears away what a dead run has left. `layout` names the folders.
"""
