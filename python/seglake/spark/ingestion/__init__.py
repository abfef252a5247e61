"""The ingest: segments in, three Parquet tables out, in one pass over each file.

`run` leads through it on the driver; `task` runs on the executors and writes staged files with `tables`; `commit` makes
them visible, or clears away what a dead run has left; `layout` names the folders.
"""

from .result import IngestError, IngestProgress, IngestResult
from .run import ingest

__all__ = ["IngestError", "IngestProgress", "IngestResult", "ingest"]
