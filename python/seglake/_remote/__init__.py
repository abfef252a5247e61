"""Files elsewhere: whatever `pyarrow.fs` opens, and `fsspec` where that does not, read in ranges."""

from .file import Entry, RemoteFile, Store
from .opening import connect, has_password, library_of, open_remote, scheme_of
from .stream import stream

__all__ = [
    "Entry",
    "RemoteFile",
    "Store",
    "connect",
    "has_password",
    "library_of",
    "open_remote",
    "scheme_of",
    "stream",
]
