"""How files elsewhere are opened, named, read and known again, with file systems that need no network."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast

import pytest
from pyarrow import fs

from seglake._publish.elsewhere import target_of
from seglake.stores import Entry, RemoteFile, connect, has_password, library_of, open_remote, scheme_of, stream
from seglake.stores.arrow_store import ArrowStore
from seglake.stores.fsspec_store import FsspecStore, is_fsspec

MOMENT = datetime(2024, 1, 31, 12, 30, tzinfo=UTC)
INFO: dict[str, Any] = {"name": "folder/a.chunks", "type": "file", "size": 100}
# What file systems of fsspec tell of a file, by the names that they have for it.
TOLD = (
    "ETag",
    "etag",
    "e_tag",
    "Content-MD5",
    "md5Hash",
    "checksum",
    "generation",
    "version",
    "version_id",
    "VersionId",
    "ino",
    "fileId",
    "modificationTime",
)
TIMES = ("mtime", "LastModified", "last_modified", "Last-Modified", "modified", "updated", "created")


class Memory:
    """As much of a file system of fsspec as is asked for, with one file."""

    def __init__(self, info: dict[str, Any] | None = None) -> None:
        self.now: dict[str, Any] | Exception = dict(info or INFO)
        self.content = bytes(range(100))
        self.listed: list[dict[str, Any]] = []
        self.forgotten = 0

    def _strip_protocol(self, path: str) -> str:
        return path.partition("://")[2] or path

    def invalidate_cache(self) -> None:
        self.forgotten += 1

    def info(self, path: str) -> dict[str, Any]:
        self.forgotten -= 1  # each answer is asked for anew
        if isinstance(self.now, Exception):
            raise self.now
        return self.now

    def cat_file(self, path: str, start: int, end: int) -> bytes:
        return self.content[start:end]

    def ls(self, folder: str, detail: bool) -> list[dict[str, Any]]:
        assert detail
        return self.listed[:1]

    def find(self, folder: str, detail: bool) -> dict[str, dict[str, Any]]:
        assert detail
        return {each["name"]: each for each in self.listed}


def opened(memory: Memory) -> RemoteFile:
    return FsspecStore(memory).open("folder/a.chunks", "memory://folder/a.chunks")


@pytest.mark.parametrize("name", ["size", *TOLD, *TIMES])
def test_whatever_changes_of_a_file_it_is_another_one(name: str) -> None:
    memory = Memory({**INFO, name: 5 if name != "size" else 100})
    file = opened(memory)
    file.confirm()
    assert memory.forgotten == 0
    memory.now = {**INFO, name: 6 if name != "size" else 101}
    with pytest.raises(OSError, match="was replaced or deleted while it was read") as caught:
        file.confirm()
    assert caught.value.errno == errno.ESTALE
    assert caught.value.filename == "memory://folder/a.chunks"


def test_a_file_that_is_gone_or_cannot_be_asked_for() -> None:
    memory = Memory()
    file = opened(memory)
    memory.now = FileNotFoundError("gone")
    with pytest.raises(OSError, match="was replaced or deleted") as caught:
        file.confirm()
    assert caught.value.errno == errno.ESTALE
    memory.now = TimeoutError("slow")
    with pytest.raises(OSError, match="slow; the store's client tried again as often as it may") as caught:
        file.confirm()
    assert caught.value.errno == errno.EIO
    memory.now = OSError(errno.ENETDOWN, "down")
    with pytest.raises(OSError, match="down") as caught:
        file.confirm()
    assert caught.value.errno == errno.ENETDOWN


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize(
    "value",
    [
        MOMENT.timestamp(),
        int(MOMENT.timestamp()),
        MOMENT,
        MOMENT.replace(tzinfo=None),  # which is UTC
        MOMENT.astimezone(timezone(timedelta(hours=5))),
        "2024-01-31T12:30:00Z",
        "2024-01-31T13:30:00+01:00",
        "2024-01-31T12:30:00",
    ],
    ids=repr,
)
def test_times_are_understood(name: str, value: object) -> None:
    assert opened(Memory({**INFO, name: value})).modified == MOMENT.timestamp()


def test_a_time_that_is_none_is_passed_over() -> None:
    assert opened(Memory()).modified is None
    assert opened(Memory({**INFO, "mtime": "yesterday"})).modified is None
    assert opened(Memory({**INFO, "mtime": "yesterday", "created": 7})).modified == 7.0
    assert opened(Memory({**INFO, "mtime": 8, "created": 7})).modified == 8.0
    assert opened(Memory({**INFO, "modificationTime": 1500})).modified == 1.5


def test_what_is_no_file_is_refused() -> None:
    with pytest.raises(IsADirectoryError):
        opened(Memory({**INFO, "type": "directory"}))
    for size in (None, "100"):
        with pytest.raises(OSError, match="does not tell how long it is"):
            opened(Memory({**INFO, "size": size}))
    store = FsspecStore(Memory({**INFO, "size": None}))
    assert store.find("folder/a.chunks", "x") == Entry("folder/a.chunks", True, 0, None)


def test_a_folder_is_listed_without_itself() -> None:
    memory = Memory()
    memory.listed = [
        {"name": "folder/a", "size": 7, "type": "file", "mtime": 5},
        {"name": "folder/", "size": 0, "type": "directory"},
        {"name": "folder/below/", "size": 0, "type": "directory"},
    ]
    store = FsspecStore(memory)
    file, below = Entry("folder/a", True, 7, 5.0), Entry("folder/below", False, 0, None)
    assert list(store.entries("folder/", "x", recursive=True)) == [file, below]
    assert list(store.entries("folder", "x", recursive=False)) == [file]
    assert memory.forgotten == 2


@pytest.mark.parametrize("missing", ["cat_file", "info", "ls", "find"])
def test_a_file_system_of_fsspec_has_four_functions(missing: str) -> None:
    assert is_fsspec(Memory())
    incomplete = Memory()
    setattr(incomplete, missing, None)
    assert not is_fsspec(incomplete)


def test_exactly_what_is_asked_for_is_read() -> None:
    memory = Memory()
    file = opened(memory)
    assert file.read_at(3, 5) == bytes(range(3, 8))
    memory.content = memory.content[:50]
    assert file.read_at(45, 5) == bytes(range(45, 50))
    with pytest.raises(OSError, match="4 bytes came instead of 5, though the file had 100 when it was opened"):
        file.read_at(46, 5)
    memory.cat_file = lambda *_, **__: bytes(6)
    with pytest.raises(OSError, match="6 bytes came instead of 5"):
        file.read_at(0, 5)


def test_a_stream_reads_to_the_end_and_no_further() -> None:
    with stream(opened(Memory())) as content:
        assert content.read() == bytes(range(100))
        assert content.read() == b""
        assert content.seek(-3, os.SEEK_END) == 97
        assert content.read(10) == bytes(range(97, 100))
        content.seek(10)
        assert content.seek(5, os.SEEK_CUR) == 15
        assert content.read(1) == b"\x0f"
        assert content.tell() == 16
        assert content.seek(200) == 200
        assert content.read() == b""
        assert content.seek(0) == 0
        with pytest.raises(ValueError, match="negative position -1"):
            content.seek(-1)
        assert (content.readable(), content.seekable()) == (True, True)


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ("folder/a.chunks", "folder/a.index"),
        ("a.b.chunks", "a.b.index"),
        ("a", "a.index"),
        ("folder.x/a", "folder.x/a.index"),
        ("a.index", None),
        ("folder/", None),
        ("", None),
        ("a.chunks?versionId=5", None),
        ("a.chunks#part", None),
    ],
)
def test_the_file_beside(path: str, other: str | None) -> None:
    asked: list[tuple[str, str]] = []

    class Beside(FsspecStore):
        def open(self, path: str, name: str) -> RemoteFile:
            asked.append((path, name))
            return super().open(path, name)

    file = FsspecStore(Memory()).open("x", "x")
    file.store, file.path, file.name = Beside(Memory()), path, f"memory://{path}"
    found = file.beside("index")
    assert (found is None) == (other is None)
    assert asked == ([] if other is None else [(other, f"memory://{other}")])


@pytest.mark.parametrize("error", [FileNotFoundError("x"), PermissionError("x")])
def test_there_may_be_none_beside(error: Exception) -> None:
    memory = Memory()
    file = opened(memory)
    memory.now = error
    assert file.beside("index") is None
    memory.now = TimeoutError("slow")
    with pytest.raises(OSError, match="slow"):
        file.beside("index")


@pytest.mark.parametrize(
    "said",
    [
        "AWS Error ACCESS_DENIED during",
        "Access Denied",
        "INVALID_ACCESS_KEY_ID",
        "signature_does_not_match",
        "Forbidden",
        "HTTP 403",
    ],
)
def test_a_refusal_is_one_whatever_the_store_calls_it(said: str) -> None:
    failed = FsspecStore(Memory()).failure("x", RuntimeError(said), advice="and try")
    assert isinstance(failed, PermissionError)
    assert (failed.errno, failed.filename) == (errno.EACCES, "x")
    assert failed.strerror == f"{said}; check the credentials, and what they allow"
    broke = RuntimeError('it broke\n\n\nDebug source:\nGeneric {\n    store: "S3",\n}')
    other = FsspecStore(Memory()).failure("x", broke, advice="try later")
    assert (type(other), other.errno, other.strerror) == (OSError, errno.EIO, "it broke; try later")


def test_a_name_with_403_in_it_is_no_refusal() -> None:
    failed = FsspecStore(Memory()).failure("x", OSError("not renamed to lake/20240315-9f403ae.parquet: try again"))
    assert type(failed) is OSError
    assert failed.strerror == "not renamed to lake/20240315-9f403ae.parquet: try again"


# Files of a disk, by pyarrow.


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.active"
    path.write_bytes(b"0123456789")
    os.utime(path, ns=(1_000_000_000, 1_000_000_000))
    return path


def test_a_file_of_the_same_size_and_another_time_is_another_one(path: Path) -> None:
    store = ArrowStore(fs.LocalFileSystem())
    file = store.open(str(path), "name")
    assert (file.size, file.modified) == (10, 1.0)
    file.confirm()
    os.utime(path, ns=(1_000_000_000, 1_000_000_001))
    with pytest.raises(OSError, match="was replaced or deleted"):
        file.confirm()
    file = store.open(str(path), "name")
    path.write_bytes(b"01234567890")
    os.utime(path, ns=(1_000_000_000, 1_000_000_001))
    with pytest.raises(OSError, match="was replaced or deleted"):
        file.confirm()
    path.unlink()
    with pytest.raises(OSError, match="was replaced or deleted"):
        file.confirm()


class WithMetadata:
    """An open file of a store that tells of it."""

    closed = False

    def __init__(self, **metadata: bytes) -> None:
        self._metadata = {name.replace("_", "-"): value for name, value in metadata.items()}

    def __enter__(self) -> WithMetadata:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def metadata(self) -> Mapping[str, bytes]:
        return self._metadata

    def size(self) -> int:
        return 10


@pytest.mark.parametrize("name", ["ETag", "Last_Modified", "Content_Length", "etag", "generation", "size"])
def test_an_object_is_known_by_what_the_store_tells(name: str) -> None:
    class Store:
        type_name = "s3"
        now = WithMetadata(**{name: b"5"})

        def open_input_file(self, _: str) -> WithMetadata:
            return self.now

    store: Any = Store()
    file = ArrowStore(store).open("logs/a", "s3://logs/a")
    file.confirm()
    store.now = WithMetadata(**{name: b"6"})
    with pytest.raises(OSError, match="was replaced or deleted"):
        file.confirm()
    for modified in ("Last_Modified", "updated"):
        store.now = WithMetadata(**{modified: b"2024-01-31T12:30:00Z"})
        assert ArrowStore(store).open("logs/a", "s3://logs/a").modified == MOMENT.timestamp()


def test_an_object_that_is_replaced_while_it_is_opened_is_opened_again() -> None:
    """`pyarrow` then gives a file of Google Cloud Storage that is closed."""

    class Store:
        type_name = "gcs"
        replaced = 0

        def open_input_file(self, _: str) -> WithMetadata:
            file = WithMetadata(generation=b"5")
            file.closed, self.replaced = self.replaced > 0, self.replaced - 1
            return file

    store: Any = Store()
    store.replaced = 2
    file = ArrowStore(store).open("logs/a", "gs://logs/a")
    store.replaced = 2
    file.confirm()
    store.replaced = 1000
    for opened in (file.confirm, lambda: ArrowStore(store).open("logs/a", "gs://logs/a")):
        with pytest.raises(OSError, match="replaced each time it was opened") as raised:
            opened()
        assert (raised.value.errno, raised.value.filename) == (errno.ESTALE, "gs://logs/a")


@pytest.mark.parametrize(
    ("kind", "uri", "expected"),
    [
        ("s3", "s3://bucket/a/b", "bucket/a/b"),
        ("s3", "bucket/a/b", "bucket/a/b"),
        ("s3", "s3://bucket", "bucket"),
        ("s3", "s3://bucket/a/", "bucket/a"),
        ("s3", "s3://key:secret@bucket/a", "bucket/a"),
        ("gcs", "gs://anonymous@bucket/a", "bucket/a"),
        ("gcs", "gs://bucket/a", "bucket/a"),
        ("abfs", "abfs://container/a", "container/a"),
        ("abfs", "abfs://container@account.dfs.core.windows.net/a", "container/a"),
        ("hdfs", "hdfs://host:8020/a/b", "/a/b"),
        ("local", "file:///a/b", "/a/b"),
    ],
)
def test_the_path_within_a_store(kind: str, uri: str, expected: str) -> None:
    class Kind:
        type_name = kind

    store: Any = Kind()
    assert ArrowStore(store).path_of(uri) == expected
    with pytest.raises(FileNotFoundError) as caught:
        raise ArrowStore(store).failure("x", FileNotFoundError("y"))
    bucket = ", or no such bucket" if kind in ("s3", "gcs", "abfs") else ""
    assert caught.value.strerror == f"No such file or directory{bucket}"


class GoogleCloudStorage:
    """What `pyarrow` answers for Google Cloud Storage: folders without an object of their own are not listed."""

    type_name = "gcs"
    files = ("bucket/a", "bucket/logs/2026/b", "bucket/logs/2026/c", "bucket/logs/d", "bucket/logs2/e")
    markers = ("bucket/empty",)

    def get_file_info(self, asked: str | fs.FileSelector) -> Any:
        if isinstance(asked, str):
            if asked in self.files:
                return fs.FileInfo(asked, fs.FileType.File, size=1)
            is_there = any(f"{each}/".startswith(f"{asked}/") for each in self.files + self.markers)
            return fs.FileInfo(asked, fs.FileType.Directory if is_there else fs.FileType.NotFound)
        folder = asked.base_dir.rstrip("/")
        below = [
            fs.FileInfo(each, fs.FileType.File if each in self.files else fs.FileType.Directory)
            for each in self.files + self.markers
            if each.startswith(f"{folder}/") and (asked.recursive or "/" not in each.removeprefix(f"{folder}/"))
        ]
        if not below and not asked.allow_not_found:
            raise OSError(f"No such file or directory '{folder}'")
        return below


def test_folders_of_google_cloud_storage_are_listed() -> None:
    store = ArrowStore(cast("Any", GoogleCloudStorage()))

    def listed(folder: str, *, recursive: bool) -> list[tuple[str, bool]]:
        return sorted((entry.path, entry.is_file) for entry in store.entries(folder, "name", recursive=recursive))

    assert listed("bucket", recursive=False) == [
        ("bucket/a", True),
        ("bucket/empty", False),
        ("bucket/logs", False),
        ("bucket/logs2", False),
    ]
    assert listed("bucket/logs/", recursive=False) == [("bucket/logs/2026", False), ("bucket/logs/d", True)]
    assert listed("bucket/logs", recursive=True) == [
        ("bucket/logs/2026", False),
        ("bucket/logs/2026/b", True),
        ("bucket/logs/2026/c", True),
        ("bucket/logs/d", True),
    ]
    assert listed("bucket/empty", recursive=False) == []
    for recursive in (False, True):
        with pytest.raises(FileNotFoundError):
            listed("bucket/nothing", recursive=recursive)


def test_removing_a_folder_that_google_cloud_storage_does_not_have() -> None:
    class Store(GoogleCloudStorage):
        def delete_dir(self, path: str) -> None:
            raise OSError(f"No such directory: {path}")

    target = target_of(ArrowStore(cast("Any", Store())))
    target.remove_tree("bucket/nothing", "name")
    with pytest.raises(OSError, match="No such directory"):
        target.remove_tree("bucket/logs", "name")


# URIs.


@pytest.mark.parametrize(
    ("uri", "scheme", "library"),
    [
        ("s3://a", "s3", "s3"),
        ("S3A://a", "s3a", "s3"),
        ("s3n://a", "s3n", "s3"),
        ("gs://a", "gs", "gcs"),
        ("gcs://a", "gcs", "gcs"),
        ("abfs://a", "abfs", "abfs"),
        ("abfss://a", "abfss", "abfs"),
        ("hdfs://a", "hdfs", "hdfs"),
        ("viewfs://a", "viewfs", "hdfs"),
        ("file:///a", "file", "file"),
        ("sftp://a", "sftp", "fsspec"),
        ("git+ssh.x-1://a", "git+ssh.x-1", "fsspec"),
        ("zip::s3://a", "zip", "fsspec"),
        ("zip://a.b::s3://a/b.zip", "zip", "fsspec"),
        ("/a/s3://b", None, "fsspec"),
        ("c:/a", None, "fsspec"),
        ("1a://b", None, "fsspec"),
        ("a", None, "fsspec"),
    ],
)
def test_schemes(uri: str, scheme: str | None, library: str) -> None:
    assert scheme_of(uri) == scheme
    assert library_of(uri) == library


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://key:secret@bucket/a", True),
        ("s3://key:se/cr/et@bucket/a", True),
        ("s3://:secret@bucket", True),
        ("s3://key:123x@bucket", True),
        ("s3://key:123@bucket", True),
        ("s3://key@bucket/a", False),
        ("hdfs://host:8020/a@b", False),
        ("hdfs://host:8020", False),
        ("s3://bucket/a:b@c", False),
        ("hdfs://[::1]:8020/a@b", False),
        ("a:b@c", False),
    ],
)
def test_passwords(uri: str, expected: bool) -> None:
    assert has_password(uri) is expected


# What file systems are made with.


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[object, ...], dict[str, Any]]]:
    """The file systems of pyarrow that are made: the name of the class, and its arguments."""
    calls: list[tuple[str, tuple[object, ...], dict[str, Any]]] = []

    def note(name: str) -> Any:
        def make(*given: object, **named: Any) -> fs.FileSystem:
            calls.append((name, given, named))
            return fs.LocalFileSystem()

        return make

    for name in ("S3FileSystem", "GcsFileSystem", "AzureFileSystem", "HadoopFileSystem"):
        monkeypatch.setattr(fs, name, note(name))
    monkeypatch.setattr(fs, "resolve_s3_region", lambda bucket: f"region-of-{bucket}")

    class Given:
        @staticmethod
        def from_uri(uri: str) -> tuple[fs.FileSystem, str]:
            calls.append(("from_uri", (uri,), {}))
            return fs.LocalFileSystem(), "path"

    monkeypatch.setattr(fs, "FileSystem", Given)
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    return calls


@pytest.mark.parametrize(
    ("uri", "settings", "expected"),
    [
        ("s3://bucket/a", {}, ("S3FileSystem", (), {"region": "region-of-bucket"})),
        (
            "s3a://bucket/a",
            {"access_key": "k"},
            ("S3FileSystem", (), {"access_key": "k", "region": "region-of-bucket"}),
        ),
        ("s3://bucket/a", {"region": "r"}, ("S3FileSystem", (), {"region": "r"})),
        ("s3://bucket/a", {"endpoint_override": "e"}, ("S3FileSystem", (), {"endpoint_override": "e"})),
        ("gs://bucket/a", {"anonymous": True}, ("GcsFileSystem", (), {"anonymous": True})),
        ("gs://bucket/a", {}, ("GcsFileSystem", (), {})),
        (
            "abfs://container@account.dfs.core.windows.net/a",
            {"sas_token": "t"},
            ("AzureFileSystem", (), {"sas_token": "t", "account_name": "account"}),
        ),
        (
            "abfs://container@account.dfs.core.windows.net/a",
            {"account_name": "other"},
            ("AzureFileSystem", (), {"account_name": "other"}),
        ),
        ("abfs://c@account.x/a/b", {}, ("from_uri", ("abfs://c@account.x/",), {})),
        ("hdfs://host:8020/a", {"user": "u"}, ("HadoopFileSystem", ("host", 8020), {"user": "u"})),
        ("hdfs://host/a", {"user": "u"}, ("HadoopFileSystem", ("host", 0), {"user": "u"})),
        ("hdfs:///a", {"user": "u"}, ("HadoopFileSystem", ("default", 0), {"user": "u"})),
        ("hdfs://host:8020/a/b", {}, ("from_uri", ("hdfs://host:8020/",), {})),
    ],
)
def test_settings_become_arguments(
    uri: str,
    settings: dict[str, Any],
    expected: tuple[str, tuple[object, ...], dict[str, Any]],
    made: list[tuple[str, tuple[object, ...], dict[str, Any]]],
) -> None:
    before = dict(settings)
    assert isinstance(connect(uri, settings, ()), ArrowStore)
    assert made == [expected]
    assert settings == before


def test_attempts_become_a_strategy(made: list[tuple[str, tuple[object, ...], dict[str, Any]]]) -> None:
    connect("s3://bucket", {"retry_max_attempts": 7, "region": "r"}, ())
    [(_, _, arguments)] = made
    assert set(arguments) == {"retry_strategy", "region"}
    assert isinstance(arguments["retry_strategy"], fs.AwsStandardS3RetryStrategy)
    assert arguments["retry_strategy"].max_attempts == 7


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION"])
def test_the_environment_says_where_to_go(
    name: str, made: list[tuple[str, tuple[object, ...], dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "there")
    connect("s3://bucket", {}, ())
    assert made == [("S3FileSystem", (), {})]


def test_a_region_that_is_not_told_is_none(
    made: list[tuple[str, tuple[object, ...], dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> str:
        raise OSError("no network")

    monkeypatch.setattr(fs, "resolve_s3_region", refuse)
    connect("s3://bucket", {}, ())
    assert made == [("S3FileSystem", (), {})]


def test_a_pyarrow_without_a_library_leaves_it_to_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(**_: object) -> None:
        raise NotImplementedError("built without it")

    asked: list[tuple[str, dict[str, Any]]] = []

    def url_to_fs(uri: str, **settings: Any) -> tuple[Memory, str]:
        asked.append((uri, settings))
        return Memory(), "path"

    monkeypatch.setattr(fs, "GcsFileSystem", missing)
    monkeypatch.setattr("fsspec.core.url_to_fs", url_to_fs)
    store = connect("gs://bucket/a", {"token": "t"}, ("t-secret",))
    assert isinstance(store, FsspecStore)
    assert asked == [("gs://bucket/a", {"token": "t"})]
    assert "t-secret" not in str(store.failure("x", RuntimeError("t-secret")))


def test_a_store_that_is_not_found_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unknown:
        @staticmethod
        def from_uri(uri: str) -> tuple[fs.FileSystem, str]:
            raise OSError("When resolving region for bucket 'b': Could not resolve hostname")

    monkeypatch.setattr(fs, "FileSystem", Unknown)
    with pytest.raises(OSError, match="Could not resolve hostname; check that the store runs, and its") as raised:
        open_remote("s3://b/a")
    assert raised.value.filename == "s3://b/a"


def test_a_uri_is_opened_by_the_library_that_knows_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_remote(path.as_uri()).read_at(2, 3) == b"234"
    asked: list[str] = []

    class Given:
        @staticmethod
        def from_uri(uri: str) -> tuple[fs.FileSystem, str]:
            asked.append(uri)
            return local, str(path)

    local = fs.LocalFileSystem()
    monkeypatch.setattr(fs, "FileSystem", Given)
    for uri, expected in (
        ("s3a://bucket/a", "s3://bucket/a"),
        ("S3N://bucket/a", "s3://bucket/a"),
        ("gs://b/a", "gs://b/a"),
    ):
        file = open_remote(uri)
        assert (asked.pop(), file.name, file.path) == (expected, uri, str(path))
