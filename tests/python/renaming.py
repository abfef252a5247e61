"""File systems that rename as HDFS does."""

from __future__ import annotations

from typing import Any

from fsspec.implementations.local import LocalFileSystem


class Hdfs(LocalFileSystem):
    """A file system whose renames replace nothing, as those of HDFS."""

    protocol = "hdfs"

    def mv(self, path1: str, path2: str, **options: Any) -> None:
        if self.exists(path2):
            raise FileExistsError(path2)
        super().mv(path1, path2, **options)


class WebHdfs(Hdfs):
    """The same, but that `fsspec` does not look at what WebHDFS answers: nothing is renamed, and nothing raised."""

    protocol = "webhdfs"

    def mv(self, path1: str, path2: str, **options: Any) -> None:
        if not self.exists(path2):
            super().mv(path1, path2, **options)
