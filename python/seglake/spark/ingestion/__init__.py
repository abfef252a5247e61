"""The ingest as a job of Spark."""

from .run import ingest

__all__ = ["ingest"]
