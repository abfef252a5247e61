"""Hands files and folders to the disk: by the calls with which the library's own writers do it."""

from seglake._native import rename, rename_new, sync_file, sync_folder

# Callers use them as `durable.rename`, so that tests can follow them in one place.
__all__ = ["rename", "rename_new", "sync_file", "sync_folder"]
