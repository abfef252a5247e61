"""Files by URI: whatever `pyarrow.fs` opens, read in ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow import NativeFile


def open_uri(uri: str) -> NativeFile:
    """Open the file at a URI (`s3://`, `gs://`, `hdfs://`, `file://`) for reading at any offset.

    Raises ImportError where pyarrow is not installed, ValueError where `pyarrow.fs` knows no such URI, and OSError
    where the file cannot be opened.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.fs import FileSystem
    except ImportError as error:
        message = f"reading {uri} takes pyarrow: pip install pyarrow"
        raise ImportError(message) from error
    try:
        filesystem, path = FileSystem.from_uri(uri)
        return filesystem.open_input_file(path)
    except ArrowException as error:
        message = f"{uri}: {error}"
        raise ValueError(message) from error
