"""Files wherever they lie: on mounted file systems, in stores, and in file systems that users hand over."""

from .find import find_files
from .listing import FileFilter, FileListing, FoundLog, SegmentFile
from .local import log_names
from .opening import Stores, check_writable, has_password, open_remote, scheme_of, within
from .store import Entry, RemoteFile, Store

__all__ = [
    "Entry",
    "FileFilter",
    "FileListing",
    "FoundLog",
    "RemoteFile",
    "SegmentFile",
    "Store",
    "Stores",
    "check_writable",
    "find_files",
    "has_password",
    "log_names",
    "open_remote",
    "scheme_of",
    "within",
]
