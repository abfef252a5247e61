"""The options for stores, without Spark and without a store: how they are given, and when an object is another one."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from seglake.spark.stores import SparkStores
from seglake.stores import Entry, RemoteFile, SegmentFile, Store

HUSH = "not-to-be-shown/5"
SECRETS = {
    "s3://logs": ("access_key_id", "secret_access_key", "session_token", "sse_customer_encryption_key_base64"),
    "az://logs": ("account_key", "sas_token", "client_secret"),
    "gs://logs": ("service_account_key",),
}


@pytest.mark.parametrize("uri", SECRETS)
@pytest.mark.parametrize("prefix", ["fs.", "fs.secret."])
def test_a_secret_is_not_shown(uri: str, prefix: str, caplog: pytest.LogCaptureFixture) -> None:
    others = {"fs.access_key_id": "other7", "fs.secret_access_key": "other8"} if uri.startswith("s3") else {}
    options = {"fs.account_name": "account"} if uri.startswith("az") else {}
    for name in SECRETS[uri]:
        needed = {each: value for each, value in others.items() if each != f"fs.{name}"}
        try:
            made = SparkStores.parse({**options, **needed, f"{prefix}{name}": HUSH}, [uri])
        except ValueError as error:
            said = str(error)
        else:
            assert HUSH not in repr(pickle.loads(pickle.dumps(made)))
            store, _ = made.connect(uri)
            said = str(store.failure("a", RuntimeError(f"the client says {HUSH}, twice {HUSH}")))
            assert said.count("(hidden)") == 2
        assert HUSH not in said
        with pytest.raises(ValueError, match=rf"options fs\.{name} and fs\.secret\.{name} are both given") as caught:
            SparkStores.parse({f"fs.{name}": HUSH, f"fs.secret.{name}": HUSH}, [uri])
        assert HUSH not in str(caught.value)
        with pytest.raises(ValueError, match=rf"options that begin with fs\.: .*'{name}s' is not valid") as caught:
            SparkStores.parse({**options, f"{prefix}{name}s": HUSH}, [uri])
        assert HUSH not in str(caught.value)
    assert HUSH not in caplog.text


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

    def _opened(self, path: str, name: str) -> RemoteFile:
        return Opened(self, path, name, self._entry.size, self._entry.modified)

    def _found(self, path: str) -> Entry | None:
        return self._entry

    def _listed(self, folder: str, *, recursive: bool) -> Any:
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
    monkeypatch.setattr(SparkStores, "_made", lambda *_: Remembered(*now))
    planned = SegmentFile("s3://logs/a", "s3://logs/a", 10, 1000.0)
    made = SparkStores.parse({}, ["s3://logs"])
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
    assert SparkStores.parse({}, [path]).source(SegmentFile(path, path, 1, None)) == path


def test_options_concern_a_path_elsewhere() -> None:
    with pytest.raises(ValueError, match=r"option fs\.region concerns no path"):
        SparkStores.parse({"fs.region": "r"}, ["/logs", "file:///logs"])
    SparkStores.parse({"fs.region": "r"}, ["/logs", "s3://logs"])
