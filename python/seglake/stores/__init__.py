"""Files wherever they lie: found on mounted file systems, and elsewhere through `pyarrow.fs` or `fsspec`."""

from .find import find_files
from .listing import FileFilter, FileListing, FoundLog, SegmentFile
from .local import log_names
from .opening import Stores, connect, has_password, library_of, open_remote, scheme_of
from .store import Entry, RemoteFile, Store
from .stream import stream

__all__ = [
    "Entry",
    "FileFilter",
    "FileListing",
    "FoundLog",
    "RemoteFile",
    "SegmentFile",
    "Store",
    "Stores",
    "connect",
    "find_files",
    "has_password",
    "library_of",
    "log_names",
    "open_remote",
    "scheme_of",
    "stream",
]
