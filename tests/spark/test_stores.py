"""The options for stores, without Spark and without a store: which are secret, and when an object is another one."""

import json
import pickle
import re
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from pyarrow import fs
from pyarrow.fs import LocalFileSystem

from seglake.spark import stores as stores_module
from seglake.spark.stores import Stores
from seglake.stores import Entry, RemoteFile, SegmentFile, Store
from seglake.stores.arrow_store import ArrowStore

URIS = {
    "s3": "s3://logs/a",
    "gcs": "gs://logs/a",
    "abfs": "abfs://c@account.dfs.core.windows.net/a",
    "hdfs": "hdfs://h/a",
}
# Each option with a value, and the argument of the file system's constructor that it becomes.
PLAIN: dict[str, dict[str, tuple[str, Any]]] = {
    "s3": {
        "anonymous": ("true", True),
        "region": ("eu-central-1", "eu-central-1"),
        "endpoint_override": ("host.example:9000", "host.example:9000"),
        "scheme": ("http", "http"),
        "request_timeout": ("2.5", 2.5),
        "connect_timeout": ("3", 3.0),
        "retry_max_attempts": ("4", 4),
        "role_arn": ("arn:aws:iam::1:role/r", "arn:aws:iam::1:role/r"),
        "session_name": ("somebody", "somebody"),
        "load_frequency": ("900", 900),
        "force_virtual_addressing": ("false", False),
        "tls_ca_file_path": ("/etc/ca.pem", "/etc/ca.pem"),
    },
    "gcs": {
        "anonymous": ("false", False),
        "credential_token_expiration": ("2030-01-02T03:04:05Z", datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)),
        "target_service_account": ("robot@example", "robot@example"),
        "endpoint_override": ("host.example:9000", "host.example:9000"),
        "scheme": ("https", "https"),
        "retry_time_limit": ("90", timedelta(seconds=90)),
        "project_id": ("project-5", "project-5"),
    },
    "abfs": {
        "account_name": ("account5", "account5"),
        "tenant_id": ("tenant-5", "tenant-5"),
        "client_id": ("client-5", "client-5"),
        "blob_storage_authority": ("host.example:10000", "host.example:10000"),
        "blob_storage_scheme": ("http", "http"),
        "dfs_storage_authority": ("host.example:10001", "host.example:10001"),
        "dfs_storage_scheme": ("https", "https"),
    },
    "hdfs": {
        "user": ("somebody", "somebody"),
        "kerb_ticket": ("/tmp/krb5cc_5", "/tmp/krb5cc_5"),
        "buffer_size": ("64k", 65536),
        "extra_conf": ('{"dfs.replication": "2"}', {"dfs.replication": "2"}),
    },
}
SECRET: dict[str, tuple[str, ...]] = {
    "s3": ("access_key", "secret_key", "session_token", "external_id", "proxy_options"),
    "gcs": ("access_token",),
    "abfs": ("account_key", "sas_token", "client_secret"),
    "hdfs": (),
}
HUSH = "not-to-be-shown/5"
# Without one S3 is asked for it.
REGION = {"s3://logs/a": {"fs.region": "r"}}
EACH_SECRET = [(library, name) for library, names in SECRET.items() for name in names]


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """The settings of each store that is connected to; none is reached."""
    settings: list[Mapping[str, Any]] = []

    def connect(uri: str, arguments: Mapping[str, Any], secrets: tuple[str, ...]) -> Store:
        settings.append(arguments)
        return ArrowStore(LocalFileSystem(), secrets)

    monkeypatch.setattr(stores_module, "connect", connect)
    return settings


def stores(library: str, **options: str) -> Stores:
    return Stores.parse({f"fs.{name}": value for name, value in options.items()}, [URIS[library]])


def said(store: Store, text: str) -> str:
    return str(store.failure("a", RuntimeError(text)))


@pytest.mark.parametrize(
    ("library", "made"),
    [
        ("s3", fs.S3FileSystem),
        ("gcs", fs.GcsFileSystem),
        ("abfs", fs.AzureFileSystem),
        ("hdfs", fs.HadoopFileSystem),
    ],
)
def test_every_option_is_an_argument_of_the_file_system(library: str, made: type[fs.FileSystem]) -> None:
    signature = (made.__doc__ or "").partition("(")[2].partition("\n")[0]
    arguments = set(re.findall(r"(\w+)(?::[^,=]*)?(?=\s*=[^=]|,|$)", signature))
    names = (*PLAIN[library], *SECRET[library])
    options = {"retry_strategy" if name == "retry_max_attempts" else name for name in names}
    assert options <= arguments
    named_so = {name for name in arguments if re.search("key|token|secret|password|proxy|external", name)}
    assert named_so - {"credential_token_expiration"} == set(SECRET[library])


@pytest.mark.parametrize("library", URIS)
def test_what_may_be_seen_is_passed_on_and_shown(library: str, connected: list[Mapping[str, Any]]) -> None:
    options = {name: text for name, (text, _) in PLAIN[library].items()}
    store, _ = stores(library, **options).connect(URIS[library])
    assert connected == [{name: value for name, (_, value) in PLAIN[library].items()}]
    for text in options.values():
        assert text in said(store, f"it was {text}")
    with pytest.raises(ValueError, match=r"unknown option 'fs\.nonsense'") as caught:
        stores(library, nonsense="x")
    # All options there are: none is missing here.
    assert set(re.findall(r"fs\.(\w+)(?:,|$)", str(caught.value))) == {*PLAIN[library], *SECRET[library]}


@pytest.mark.parametrize(("library", "name"), EACH_SECRET)
@pytest.mark.parametrize("prefix", ["", "secret."])
def test_a_secret_is_passed_on_and_not_shown(
    library: str, name: str, prefix: str, connected: list[Mapping[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    made = stores(library, **{prefix + name: HUSH})
    again = pickle.loads(pickle.dumps(made))
    for each in (made, again):
        assert HUSH not in repr(each)
        store, _ = each.connect(URIS[library])
        assert connected.pop() == {name: HUSH}
        assert said(store, f"the client says {HUSH}, twice {HUSH}").count("(hidden)") == 2
        assert HUSH not in said(store, f"the client says {HUSH}")
    with pytest.raises(ValueError, match="is empty") as caught:
        stores(library, **{name: "  "})
    assert "fs." + name in str(caught.value)
    with pytest.raises(ValueError, match="are both given") as caught:
        stores(library, **{name: HUSH, f"secret.{name}": HUSH})
    assert HUSH not in str(caught.value)
    with pytest.raises(ValueError, match="unknown option") as caught:
        stores(library, **{f"{name}s": HUSH})
    assert HUSH not in str(caught.value)
    assert HUSH not in caplog.text


def test_of_other_libraries_all_but_addresses_are_secret(connected: list[Mapping[str, Any]]) -> None:
    uri = "sftp://host/a"
    options = {
        "fs.password": HUSH,
        "fs.client_kwargs": '{"headers": ["abcd-5", {"deep": "efgh-5"}], "endpoint_url": "http://host.example"}',
        "fs.port": "2022",
        "fs.ok": "yes",
    }
    store, _ = Stores.parse(options, [uri]).connect(uri)
    assert connected[0]["port"] == 2022
    assert connected[0]["client_kwargs"]["headers"] == ["abcd-5", {"deep": "efgh-5"}]
    text = said(store, f"{HUSH} abcd-5 efgh-5 http://host.example 2022 yes")
    assert text.endswith("(hidden) (hidden) (hidden) http://host.example 2022 yes: 'a'")


def test_a_longer_secret_is_hidden_whole(connected: list[Mapping[str, Any]]) -> None:
    for options in ({"access_key": "abcd", "secret_key": "abcdefgh"}, {"secret_key": "abcdefgh", "access_key": "abcd"}):
        store, _ = stores("s3", **options).connect(URIS["s3"])
        assert "efgh" not in said(store, "refused abcdefgh")


def test_a_store_that_cannot_be_made_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**arguments: object) -> None:
        raise ValueError(f"these are wrong: {arguments}")

    monkeypatch.setattr(fs, "S3FileSystem", refuse)
    with pytest.raises(ValueError, match=r"s3://logs/: these are wrong: .*\(hidden\)") as caught:
        stores("s3", secret_key=HUSH, region="r").connect(URIS["s3"])
    assert HUSH not in str(caught.value)
    monkeypatch.setattr("fsspec.core.url_to_fs", lambda uri, **arguments: refuse(**arguments))
    with pytest.raises(ValueError, match=r"sftp://host/: these are wrong: .*\(hidden\)") as caught:
        Stores.parse({"fs.password": HUSH}, ["sftp://host/a"]).connect("sftp://host/a")
    assert HUSH not in str(caught.value)


@pytest.mark.parametrize(
    "error", [OSError, FileNotFoundError, RuntimeError, KeyError, AttributeError, NotImplementedError], ids=str
)
def test_no_error_of_a_client_shows_a_secret(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **arguments: object) -> None:
        raise error(f"these are wrong: {arguments}")

    for name in ("S3FileSystem", "GcsFileSystem", "AzureFileSystem"):
        monkeypatch.setattr(fs, name, refuse)
    monkeypatch.setattr("fsspec.core.url_to_fs", refuse)
    for uri, name in (
        ("s3://logs/a", "secret_key"),
        ("gs://logs/a", "access_token"),
        ("abfs://c@account/a", "account_key"),
        ("sftp://host/a", "password"),
    ):
        with pytest.raises(OSError, match=rf"these are wrong: .*\(hidden\).*{uri[:-1]}") as caught:
            Stores.parse({f"fs.{name}": HUSH, **REGION.get(uri, {})}, [uri]).connect(uri)
        assert HUSH not in "".join(traceback.format_exception(caught.value))


def test_a_package_that_is_missing_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **arguments: object) -> None:
        raise ImportError(f"not for {arguments}")

    monkeypatch.setattr("fsspec.core.url_to_fs", refuse)
    with pytest.raises(ImportError, match=r"takes another package: not for .*\(hidden\)") as caught:
        Stores.parse({"fs.password": HUSH}, ["sftp://host/a"]).connect("sftp://host/a")
    assert HUSH not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("written", [str, repr, json.dumps, quote, quote_plus, lambda text: quote(text, safe="")])
@pytest.mark.parametrize("secret", ["a/b c+d==", "back\\slash", "both'\"quotes", "ümläut", "hid", "d"])
def test_a_secret_is_hidden_however_it_is_written(
    secret: str, written: Callable[[str], str], connected: list[Mapping[str, Any]]
) -> None:
    store, _ = stores("s3", secret_key=secret, access_key="(").connect(URIS["s3"])
    assert re.fullmatch(r"\[Errno 5\] 5: ['\"]?\(hidden\)['\"]?: 'a'", said(store, f"5: {written(secret)}"))


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("password", "12345678", "12345678"),
        ("password", "1e5", "100000.0"),
        ("password", "1e5", "1e5"),
        ("passphrase", "abc", "abc"),
        ("token", '"abc"', "abc"),
        ("secret_url", "http://5", "http://5"),
        ("client_kwargs", '{"auth": ["user5", 4711]}', "4711"),
        ("client_kwargs", '{"api_key": {"value": 4711}}', "4711"),
        ("proxy", "http://u:pw@host.example", "http://u:pw@host.example"),
    ],
)
def test_of_other_libraries_what_is_named_like_a_secret_is_one(
    name: str, value: str, shown: str, connected: list[Mapping[str, Any]]
) -> None:
    store, _ = Stores.parse({f"fs.{name.lower()}": value}, ["sftp://host/a"]).connect("sftp://host/a")
    assert said(store, f"it was {shown}, refused") == "[Errno 5] it was (hidden), refused: 'a'"


def test_a_connection_is_made_once_for_each_place(connected: list[Mapping[str, Any]]) -> None:
    made = stores("s3", region="r")
    for uri in ("s3://logs/a", "s3://logs/b/c", "s3://other/a", "s3a://logs/a", "s3://logs/a"):
        made.connect(uri)
    assert len(connected) == 3


class Opened(RemoteFile):
    def _read(self, offset: int, size: int) -> bytes:
        return b""

    def _is_unchanged(self) -> bool:
        return True


class Remembered(Store):
    """A store with one object."""

    def __init__(self, size: int, modified: float | None) -> None:
        super().__init__()
        self._entry = Entry("a", True, size, modified)

    def path_of(self, source: str) -> str:
        return source

    def open(self, path: str, name: str) -> RemoteFile:
        return Opened(self, path, name, self._entry.size, self._entry.modified)

    def find(self, path: str, name: str) -> Entry | None:
        return self._entry

    def entries(self, folder: str, name: str, *, recursive: bool) -> Any:
        return iter([self._entry])


@pytest.mark.parametrize(
    ("now", "is_same"),
    [
        ((10, 1000.0), True),
        ((10, 1001.0), True),  # one request gives whole seconds, another one more
        ((10, 999.0), True),
        ((10, 1001.1), False),
        ((10, 998.9), False),
        ((10, None), True),
        ((11, 1000.0), False),
        ((9, None), False),
    ],
)
def test_an_object_is_known_by_its_size_and_time(
    now: tuple[int, float | None], is_same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores_module, "connect", lambda *_: Remembered(*now))
    planned = SegmentFile("s3://logs/a", "s3://logs/a", 10, 1000.0)
    made = stores("s3")
    if is_same:
        opened = made.source(planned)
        assert isinstance(opened, RemoteFile)
        assert opened.size == 10
        return
    then = r"it had 10 bytes of 1970-01-01T00:16:40\+00:00 then and has"
    with pytest.raises(OSError, match=f"s3://logs/a: changed since the read was planned: {then} {now[0]} of"):
        made.source(planned)


def test_a_file_of_a_disk_is_left_to_the_library(tmp_path: Path) -> None:
    path = str(tmp_path / "a.active")
    assert Stores.parse({}, [path]).source(SegmentFile(path, path, 1, None)) == path


def test_options_concern_a_path_elsewhere() -> None:
    with pytest.raises(ValueError, match=r"option fs\.region concerns no path"):
        Stores.parse({"fs.region": "r"}, ["/logs", "file:///logs"])
    Stores.parse({"fs.region": "r"}, ["/logs", "s3://logs"])


@pytest.mark.parametrize("value", ["0", "0.0", "-1", "1e3", "1234567", "x", ""])
def test_seconds(value: str) -> None:
    with pytest.raises(ValueError, match=r"option fs\.request_timeout .*expected seconds"):
        stores("s3", request_timeout=value)


@pytest.mark.parametrize(
    ("library", "name", "value"),
    [
        ("s3", "scheme", "ftp"),
        ("hdfs", "extra_conf", "no json"),
        ("hdfs", "extra_conf", "[]"),
        ("hdfs", "extra_conf", '{"a": 1}'),
    ],
)
def test_wrong_values_are_named(library: str, name: str, value: str) -> None:
    with pytest.raises(ValueError, match=rf"option fs\.{name} .*expected"):
        stores(library, **{name: value})
