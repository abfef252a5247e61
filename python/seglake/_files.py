"""What the extension imports to read files elsewhere."""

from .stores import RemoteFile, open_remote

__all__ = ["RemoteFile", "open_remote"]
