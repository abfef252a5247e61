"""How files elsewhere are opened, named, read and known again, with file systems that need no network."""

from __future__ import annotations

import errno
import json
import os
import pickle
import re
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from object_store import ObjectStore as S3
from pyarrow import fs

import seglake
from seglake.stores import Entry, RemoteFile, Stores, has_password, object_store, open_remote, scheme_of
from seglake.stores.arrow_store import ArrowStore
from seglake.stores.fsspec_store import FsspecStore, is_fsspec
from seglake.stores.object_store import ObjectStore

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
        "Permission denied (os error 13)",
        "status code: 401 Unauthorized",
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


@pytest.mark.parametrize("name", ["ETag", "Last_Modified", "Content_Length"])
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
    store.now = WithMetadata(Last_Modified=b"2024-01-31T12:30:00Z")
    assert ArrowStore(store).open("logs/a", "s3://logs/a").modified == MOMENT.timestamp()


@pytest.mark.parametrize(
    ("kind", "uri", "expected"),
    [
        ("s3", "s3://bucket/a/b", "bucket/a/b"),
        ("s3", "bucket/a/b", "bucket/a/b"),
        ("s3", "s3://bucket", "bucket"),
        ("s3", "s3://bucket/a/", "bucket/a"),
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
    bucket = ", or no such bucket" if kind in ("s3", "abfs") else ""
    assert caught.value.strerror == f"No such file or directory{bucket}"


# URIs.


@pytest.mark.parametrize(
    ("uri", "scheme"),
    [
        ("s3://a", "s3"),
        ("S3A://a", "s3a"),
        ("git+ssh.x-1://a", "git+ssh.x-1"),
        ("zip://a.b::s3://a/b.zip", "zip"),
        ("zip::s3://a", "zip"),
        ("/a/s3://b", None),
        ("c:/a", None),
        ("1a://b", None),
        ("a", None),
    ],
)
def test_schemes(uri: str, scheme: str | None) -> None:
    assert scheme_of(uri) == scheme


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


# Stores of `obstore`.

OPTIONS = {"access_key_id": "AKIA5", "secret_access_key": "not-to-be-shown/5", "region": "eu-central-1"}


def connected(uri: str, **options: Any) -> tuple[ObjectStore, str]:
    store, path = Stores(storage_options=options).connect(uri)
    assert isinstance(store, ObjectStore)
    return store, path


@pytest.mark.parametrize(
    ("uri", "options", "kind", "path"),
    [
        ("s3://bucket/a//b/", OPTIONS, "S3Store", "a//b"),
        ("S3A://bucket/a b%20c?d#e", OPTIONS, "S3Store", "a b%20c?d#e"),
        ("s3n://bucket", OPTIONS, "S3Store", ""),
        ("gs://bucket/a", {"skip_signature": "true"}, "GCSStore", "a"),
        ("gcs://bucket/a", {"skip_signature": True}, "GCSStore", "a"),
        ("abfss://container@account.dfs.core.windows.net/a", {"sas_token": "sv=1&sig=s"}, "AzureStore", "a"),
        ("az://container/a/b", {"account_name": "account", "skip_signature": "true"}, "AzureStore", "a/b"),
        ("https://host.example:8000/a/b", {"timeout": "5s"}, "HTTPStore", "a/b"),
        ("https://s3.eu-central-1.amazonaws.com/bucket/a", {}, "HTTPStore", "bucket/a"),
        ("file:///a/b", {}, "LocalStore", "a/b"),
    ],
)
def test_a_uri_is_opened_by_the_store_of_its_scheme(uri: str, options: dict[str, Any], kind: str, path: str) -> None:
    store, found = connected(uri, **options)
    assert type(store._client).__name__ == kind  # pyright: ignore[reportPrivateUsage]
    assert found == path


@pytest.mark.parametrize("uri", ["sftp://host/a", "memory://a", "zip::s3://bucket/a", "s3:/bucket", "a/b", "C:/a"])
def test_other_uris_are_refused(uri: str) -> None:
    with pytest.raises(ValueError, match=rf"{uri}: expected a path, or a URI .* can be given as filesystem="):
        Stores().connect(uri)


def test_options_of_stores_clients_and_retries_are_told_apart() -> None:
    store, _ = connected(
        "s3://bucket",
        AWS_ACCESS_KEY_ID="AKIA5",
        aws_secret_access_key="s",
        aws_allow_http="true",
        timeout="5s",
        connect_timeout="1s",
        max_retries="3",
        retry_timeout="10s",
    )
    client: Any = store._client  # pyright: ignore[reportPrivateUsage]
    assert client.config == {"access_key_id": "AKIA5", "secret_access_key": "s", "bucket": "bucket"}
    assert set(client.client_options) == {"allow_http", "timeout", "connect_timeout"}
    assert (client.retry_config["max_retries"], client.retry_config["retry_timeout"]) == (3, timedelta(seconds=10))


@pytest.mark.parametrize("name", sorted(object_store._CLIENT))  # pyright: ignore[reportPrivateUsage]
def test_every_option_of_a_client_is_known_to_it(name: str) -> None:
    try:
        connected("https://host.example", **{name: {} if name == "default_headers" else "1"})
    except ValueError as error:
        assert "not valid" not in str(error)


@pytest.mark.parametrize(
    ("uri", "options", "said"),
    [
        ("s3://bucket/a", {"nonsense": "x"}, "s3://bucket: .*'nonsense' is not valid for store 'S3'"),
        ("s3://bucket/a", {"skip_signature": "maybe"}, 's3://bucket: .*"maybe" as boolean'),
        ("s3://bucket/a", {"max_retries": "1.5"}, r"s3://bucket: max_retries is '1\.5': expected a whole number"),
        ("s3://bucket/a", {"retry_timeout": "soon"}, "retry_timeout is 'soon': expected seconds, such as 10 or 10s"),
        ("az://container/a", {"skip_signature": "true"}, "az://container: .*Account must be specified"),
        ("https://host/a", {"region": "x"}, "https://host: a server of HTTP takes no option region"),
        ("hdfs://host/a", {"user": "x"}, "hdfs://host: takes no storage_options"),
    ],
)
def test_what_is_wrong_with_options_is_said(
    uri: str, options: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(ValueError, match=said):
        Stores(storage_options=options).connect(uri)


def test_options_are_for_uris() -> None:
    with pytest.raises(ValueError, match="storage_options= are for URIs"):
        Stores(fs.LocalFileSystem(), OPTIONS)
    with pytest.raises(ValueError, match=r"GcsFileSystem lists only folders .* name URIs \(gs://"):
        Stores(fs.GcsFileSystem(anonymous=True))


def test_stores_travel_with_their_options_and_show_no_values() -> None:
    stores = pickle.loads(pickle.dumps(Stores(storage_options=OPTIONS)))
    assert repr(stores) == "Stores(access_key_id, region, secret_access_key)"
    assert stores.connect("s3://bucket/a")[0] is stores.connect("s3://bucket/b")[0]
    assert stores.connect("s3://bucket/a")[0] is not stores.connect("s3://other/a")[0]
    given = pickle.loads(pickle.dumps(Stores(fs.LocalFileSystem())))
    assert given.hold_all


@pytest.mark.parametrize("written", [str, repr, json.dumps, quote, quote_plus, lambda text: quote(text, safe="")])
@pytest.mark.parametrize("secret", ["a/b c+d==", "back\\slash", "both'\"quotes", "ümläut", "hidd"])
@pytest.mark.parametrize("name", ["secret_access_key", "AWS_SESSION_TOKEN", "access_key_id"])
def test_a_secret_is_hidden_however_it_is_written(name: str, secret: str, written: Callable[[str], str]) -> None:
    store, _ = connected("s3://bucket", **OPTIONS | {name: secret})
    said = store.failure("x", RuntimeError(f"5: {written(secret)}"))
    assert re.fullmatch(r"5: ['\"]?\(hidden\)['\"]?", str(said.strerror))


@pytest.mark.parametrize("written", [str, repr, json.dumps, quote, quote_plus])
@pytest.mark.parametrize("secret", ["hid", "x", "4"])
def test_a_short_secret_leaves_no_gaps_in_words(secret: str, written: Callable[[str], str]) -> None:
    store, _ = connected("s3://bucket", **OPTIONS | {"secret_access_key": secret})
    said = store.failure("x", RuntimeError(f"Forbidden: after {written(secret)} 403"))
    assert isinstance(said, PermissionError)
    assert said.strerror == "(hidden, because it may contain the key); check the credentials, and what they allow"
    assert store.failure("x", RuntimeError("5: odd")).strerror == "5: odd"


def test_a_secret_of_another_kind_is_hidden() -> None:
    for uri, options in (
        ("az://c", {"account_name": "a", "sas_token": "sv=1&sig=hush5"}),
        ("az://c", {"account_name": "a", "account_key": "aHVzaDU="}),
        ("https://host", {"default_headers": {"Authorization": "hush5"}}),
        ("https://host", {"proxy_url": "http://user:hush5@proxy"}),
    ):
        store, _ = connected(uri, **options)
        [secret] = [value for name, value in options.items() if name != "account_name"]
        for text in secret.values() if isinstance(secret, dict) else [secret]:
            assert text not in str(store.failure("x", RuntimeError(f"refused {text}")))
    with pytest.raises(ValueError, match="az://c: ") as caught:
        connected("az://c", account_name="a", account_key="no base64, hush5")
    assert "hush5" not in str(caught.value)


def test_a_region_that_is_wrong_and_an_address_without_a_server_are_named() -> None:
    store, _ = connected("s3://bucket", **OPTIONS)
    redirected = RuntimeError("Received redirect without LOCATION, this normally indicates an incorrect region")
    assert "name the region of the bucket (AWS_REGION" in str(store.failure("x", redirected))
    for options, said in (({"allow_http": "true"}, "check that the store runs"), ({}, "option allow_http=true")):
        store, path = connected("s3://bucket/a", **OPTIONS, **options, endpoint="http://127.0.0.1:9", max_retries=0)
        with pytest.raises(OSError, match=said) as caught:
            store.open(path, "s3://bucket/a")
        assert caught.value.filename == "s3://bucket/a"


@pytest.mark.skipif(os.name == "nt", reason="URIs of drives")
def test_a_file_of_a_disk_is_opened_by_its_uri(path: Path) -> None:
    path = path.rename(path.with_name("a b%20c?d#e"))
    file = open_remote(path.as_uri())
    assert (file.read_at(2, 3), file.read_at(10, 0), file.size, file.modified) == (b"234", b"", 10, 1.0)
    file.confirm()
    with pytest.raises(OSError, match="4 bytes came instead of 5"):
        file.read_at(6, 5)
    os.utime(path, ns=(1_000_000_000, 2_000_000_000))
    with pytest.raises(OSError, match="was replaced or deleted"):
        file.confirm()
    with pytest.raises(FileNotFoundError) as caught:
        open_remote(f"{path.as_uri()}.none")
    assert caught.value.filename == f"{path.as_uri()}.none"


def test_a_server_of_http(tmp_path: Path) -> None:
    (tmp_path / "a.active").write_bytes(b"0123456789")

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            start, end = map(int, self.headers["Range"][6:].split("-"))
            content = (tmp_path / "a.active").read_bytes()
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{end}/{len(content)}")
            self.send_header("Content-Length", str(end + 1 - start))
            self.end_headers()
            self.wfile.write(content[start : end + 1])

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        uri = f"http://127.0.0.1:{server.server_port}/a.active"
        file = open_remote(uri)
        assert (file.read_at(2, 3), file.size) == (b"234", 10)
        file.confirm()
        (tmp_path / "a.active").write_bytes(b"01234567890")
        with pytest.raises(OSError, match="was replaced or deleted"):
            file.confirm()
        with pytest.raises(FileNotFoundError):
            seglake.scan(uri.replace("/a.", "/b."))
        server.shutdown()


def test_folders_of_an_object_store(store: S3) -> None:
    for key in ("wood/a", "wood/2026/b", "wood/2026/c", "wood2/e"):
        store.put(key, b"x")
    for key in ("wood/empty", "wood/marked/", "wood/"):
        store.put(key, b"")
    own, path = connected("s3://logs/wood", **store.storage_options())

    def listed(folder: str, *, recursive: bool) -> list[tuple[str, bool]]:
        return sorted((entry.path, entry.is_file) for entry in own.entries(folder, "name", recursive=recursive))

    top = [("wood/2026", False), ("wood/a", True), ("wood/empty", True), ("wood/marked", False)]
    assert listed(path, recursive=False) == top
    below = [(f"wood/{name}", True) for name in ("2026/b", "2026/c", "a", "empty")]
    assert listed(path, recursive=True) == below
    assert own.find(path, "name") == Entry("wood", False, 0, None)
    assert own.find("", "name") == Entry("", False, 0, None)
    assert own.find("wood/x", "name") is None
    for recursive in (False, True):
        with pytest.raises(FileNotFoundError):
            listed("woo", recursive=recursive)
        assert ("wood", False) in listed("", recursive=False)
    store.put("doubled//name", b"x")
    with pytest.raises(OSError, match="rename that object: its name has // in it"):
        listed("doubled", recursive=True)
    none, _ = connected("s3://none/a", **store.storage_options())
    assert none.find("a", "name") is None
