"""`seglake.export` into stores: one object, whole or not at all, and the bytes of a local export."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.fs as pafs
import pytest
from cli_process import here
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from object_store import ACCESS_KEY, SECRET_KEY, ObjectStore, Request, object_store
from renaming import Hdfs, WebHdfs

import seglake
from seglake._publish import elsewhere

KINDS = ["parquet", "arrow", "csv", "jsonl"]


@pytest.fixture
def store() -> Generator[ObjectStore]:
    with object_store() as running:
        # All servers of a process have one memory.
        running.filesystem().delete_dir_contents("logs")
        yield running


@pytest.fixture
def scan(tmp_path: Path) -> seglake.Scan:
    folder = tmp_path / "logs"
    folder.mkdir()
    random.seed(3)
    for name in ("a", "b"):
        with seglake.create(folder / f"{name}.active", format="active") as writer:
            for _ in range(50):
                writer.write(type="t", value=random.randbytes(1000))
    return seglake.scan(folder)


@pytest.fixture
def large(tmp_path: Path) -> seglake.Scan:
    """More than fits into one part of an upload."""
    random.seed(4)
    with seglake.create(tmp_path / "large.active", format="active") as writer:
        for _ in range(24):
            writer.write(type="t", value=random.randbytes(1 << 20))
    return seglake.scan(tmp_path / "large.active")


def keys(store: ObjectStore) -> list[str]:
    found = store.filesystem().get_file_info(pafs.FileSelector("logs", recursive=True))
    return sorted(info.path for info in found if info.type == pafs.FileType.File)


def content(store: ObjectStore, path: str) -> bytes:
    with store.filesystem().open_input_file(path) as file:
        return file.read()


def memory() -> Any:
    filesystem: Any = fsspec.filesystem("memory")
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]
    return filesystem


@pytest.mark.parametrize("kind", KINDS)
def test_the_bytes_are_those_of_a_local_export(
    scan: seglake.Scan, store: ObjectStore, tmp_path: Path, kind: Any
) -> None:
    local = tmp_path / f"x.{kind}"
    exported = seglake.export(scan, local)
    uri = f"s3://logs/deep/x.{kind}"
    assert seglake.export(scan, uri, storage_options=store.storage_options()) == exported
    assert content(store, f"logs/deep/x.{kind}") == local.read_bytes()
    assert seglake.export(scan, f"logs/y.{kind}", filesystem=store.filesystem()) == exported
    assert content(store, f"logs/y.{kind}") == local.read_bytes()
    filesystem = memory()
    seglake.export(scan, f"memory://deep/x.{kind}", filesystem=filesystem)
    assert filesystem.cat_file(f"/deep/x.{kind}") == local.read_bytes()
    assert list(filesystem.store) == [f"/deep/x.{kind}"]


def test_no_records_are_an_object_too(scan: seglake.Scan, store: ObjectStore) -> None:
    none = scan.filter([("type", "==", "nothing")])
    for kind in KINDS:
        seglake.export(none, f"s3://logs/none.{kind}", storage_options=store.storage_options())
    assert content(store, "logs/none.jsonl") == b""
    assert keys(store) == sorted(f"logs/none.{kind}" for kind in KINDS)


def test_many_parts_are_one_object(large: seglake.Scan, store: ObjectStore, tmp_path: Path) -> None:
    seglake.export(large, tmp_path / "x.arrow", compression="none")
    with store.counting() as made:
        seglake.export(large, "s3://logs/x.arrow", storage_options=store.storage_options(), compression="none")
    assert sum("partNumber" in request.query for request in made) > 1
    assert content(store, "logs/x.arrow") == (tmp_path / "x.arrow").read_bytes()


@pytest.mark.parametrize("make", [lambda store: store.filesystem(), lambda store: memory()], ids=["s3", "memory"])
def test_what_is_there_is_replaced_only_if_asked(
    scan: seglake.Scan, store: ObjectStore, make: Callable[[ObjectStore], Any]
) -> None:
    filesystem = make(store)
    seglake.export(scan, "logs/x.csv", filesystem=filesystem)
    with store.counting() as made, pytest.raises(FileExistsError, match=r"logs/x\.csv"):
        seglake.export(scan, "logs/x.csv", filesystem=filesystem)
    assert not [request for request in made if request.method in ("PUT", "POST")]
    few = scan.filter([("type", "==", "nothing")])
    assert seglake.export(few, "logs/x.csv", filesystem=filesystem, overwrite=True).records == 0
    for path, said in (("logs", "Is a folder"), ("", "names no file")):
        with pytest.raises((OSError, ValueError), match=said):
            seglake.export(scan, path, to="csv", filesystem=filesystem, overwrite=True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("where", ["partNumber=1", "partNumber=2", "uploads", "uploadId="])
def test_an_upload_that_fails_shows_nothing(large: seglake.Scan, store: ObjectStore, where: str, create: bool) -> None:
    storage_options = store.storage_options()
    if not create:
        store.put("x.arrow", b"old")
    is_complete = where == "uploadId="

    def fault(request: Request) -> str | None:
        return "403" if where in request.query and (not is_complete or request.method == "POST") else None

    store.fault = fault
    with pytest.raises(OSError, match=r"s3://logs/x\.arrow") as caught:
        seglake.export(
            large, "s3://logs/x.arrow", storage_options=storage_options, compression="none", overwrite=not create
        )
    store.fault = None
    assert SECRET_KEY not in str(caught.value)
    assert keys(store) == ([] if create else ["logs/x.arrow"])
    assert create or content(store, "logs/x.arrow") == b"old"
    seglake.export(
        large, "s3://logs/x.arrow", storage_options=storage_options, compression="none", overwrite=not create
    )


@pytest.mark.parametrize("kind", ["503", "slow", "reset"])
def test_requests_that_are_made_again_store_it_once(
    scan: seglake.Scan, store: ObjectStore, tmp_path: Path, kind: str
) -> None:
    storage_options = store.storage_options()
    seglake.export(scan, tmp_path / "x.csv")
    met: set[tuple[str, str, str]] = set()

    def fault(request: Request) -> str | None:
        one = (request.method, request.path, request.query)
        if one in met:
            return None
        met.add(one)
        return kind

    store.fault = fault
    seglake.export(scan, "s3://logs/x.csv", storage_options=storage_options)
    store.fault = None
    assert content(store, "logs/x.csv") == (tmp_path / "x.csv").read_bytes()


def test_damage_sends_nothing(scan: seglake.Scan, store: ObjectStore) -> None:
    path = Path(scan.files()[1].path)
    changed = bytearray(path.read_bytes())
    changed[len(changed) // 2] ^= 1
    path.write_bytes(changed)
    with store.counting() as made, pytest.raises(seglake.DamageError):
        seglake.export(seglake.scan(path.parent), "s3://logs/x.parquet", storage_options=store.storage_options())
    assert {request.method for request in made} <= {"GET", "HEAD"}
    with pytest.warns(seglake.DamageWarning):
        skipping = seglake.scan(path.parent, on_damage="skip")
        done = seglake.export(
            skipping, "s3://logs/x.parquet", damage="s3://logs/d.csv", storage_options=store.storage_options()
        )
    assert done.damaged_ranges == 1
    assert keys(store) == ["logs/d.csv", "logs/x.parquet"]
    puts = [request.path for request in store.requests if request.method in ("PUT", "POST")]
    assert puts.index("/logs/d.csv") < puts.index("/logs/x.parquet")


def test_what_is_read_is_not_written_to(scan: seglake.Scan, store: ObjectStore) -> None:
    uri = store.put("a.active", Path(scan.files()[0].path).read_bytes())
    storage_options = store.storage_options()
    remote = seglake.scan(uri, storage_options=storage_options)
    for path in (uri, "s3a://logs/a.active"):
        with pytest.raises(ValueError, match="is among the files that are read"):
            seglake.export(remote, path, to="csv", storage_options=storage_options, overwrite=True)
    with pytest.raises(FileNotFoundError, match="no such bucket"):
        seglake.export(remote, "s3://other/a.active", to="csv", storage_options=storage_options)
    with pytest.raises(ValueError, match="is to be written twice"):
        skipping = seglake.scan(uri, storage_options=storage_options, on_damage="skip")
        seglake.export(skipping, "s3a://logs/x.csv", damage="s3://logs/x.csv", storage_options=storage_options)


def test_secrets_are_refused(scan: seglake.Scan) -> None:
    with pytest.raises(ValueError, match="a password in it") as caught:
        seglake.export(scan, f"s3://{ACCESS_KEY}:not-to-be-shown@logs/x.csv")
    assert "not-to-be-shown" not in str(caught.value)


class Objects(MemoryFileSystem):
    """An object store of fsspec: what is open shows when it is closed, and it creates in one step."""

    protocol = "s3"
    store: dict[str, Any] = {}  # noqa: RUF012 - as in the class above
    discarded: list[str] = []  # noqa: RUF012

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        return super()._open(path, mode, **options) if mode == "rb" else Upload(self, path, mode)


class Upload:
    answer: Callable[[Upload], None] | None = None
    before: Callable[[Upload], None] | None = None

    def __init__(self, filesystem: Objects, path: str, mode: str) -> None:
        self.filesystem, self.path, self.mode, self.parts, self.closed = filesystem, path, mode, [b""], False

    def write(self, part: bytes) -> int:
        self.parts.append(bytes(part))
        return len(part)

    def close(self) -> None:
        if self.before is not None:
            self.before()
        key = self.filesystem._strip_protocol(self.path)
        if "x" in self.mode and key in self.filesystem.store:
            raise FileExistsError(key)
        self._commit(key)
        if self.answer is not None:
            self.answer()

    def _commit(self, key: str) -> None:
        with MemoryFileSystem._open(self.filesystem, key, "wb") as file:
            file.write(b"".join(self.parts))

    def discard(self) -> None:
        self.filesystem.discarded.append(self.path)


@pytest.fixture
def objects() -> Objects:
    filesystem = Objects(skip_instance_cache=True)
    filesystem.store.clear()
    filesystem.discarded.clear()
    return filesystem


def other(upload: Upload) -> None:
    with MemoryFileSystem._open(upload.filesystem, "/x.csv", "wb") as file:
        file.write(b"of another")


def test_the_store_decides_which_of_two_writers_is_first(
    scan: seglake.Scan, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Upload, "before", other)
        with pytest.raises(FileExistsError):
            seglake.export(scan, "/x.csv", filesystem=objects)
    assert objects.cat_file("/x.csv") == b"of another"
    assert objects.discarded == ["/x.csv"]
    seglake.export(scan, "/x.csv", filesystem=objects, overwrite=True)
    assert objects.cat_file("/x.csv") != b"of another"


def test_an_answer_that_was_lost_is_no_other_writer(
    scan: seglake.Scan, objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def repeated(upload: Upload) -> None:
        raise FileExistsError(upload.path)

    monkeypatch.setattr(Upload, "answer", repeated)
    seglake.export(scan, "/x.csv", filesystem=objects)
    seglake.export(scan, tmp_path / "x.csv")
    assert objects.cat_file("/x.csv") == (tmp_path / "x.csv").read_bytes()


@pytest.mark.parametrize("error", [OSError(5, "refused"), KeyboardInterrupt()], ids=["refused", "interrupted"])
def test_an_upload_of_fsspec_is_aborted(
    scan: seglake.Scan, objects: Objects, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fails(upload: Upload) -> None:
        raise error

    monkeypatch.setattr(Upload, "before", fails)
    with pytest.raises(type(error)):
        seglake.export(scan, "/x.csv", filesystem=objects)
    assert objects.discarded == ["/x.csv"]
    assert not objects.store


def test_what_the_store_has_is_compared(scan: seglake.Scan, objects: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Upload, "answer", other)
    with pytest.raises(OSError, match=r"bytes that were sent, the store has 10 bytes.*x\.csv"):
        seglake.export(scan, "/x.csv", filesystem=objects)


@pytest.mark.parametrize("kind", [Hdfs, WebHdfs, pafs.LocalFileSystem])
def test_a_file_system_renames(
    scan: seglake.Scan, tmp_path: Path, kind: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    filesystem, path = kind(), tmp_path / "deep" / "x.csv"
    seglake.export(scan, str(path), filesystem=filesystem)
    whole = path.read_bytes()
    with pytest.raises(FileExistsError):
        seglake.export(scan, str(path), filesystem=filesystem)
    seglake.export(scan.filter([("type", "==", "nothing")]), str(path), filesystem=filesystem, overwrite=True)
    assert path.read_bytes() != whole
    path.unlink()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(elsewhere.shutil, "copyfileobj", full)
    with pytest.raises(OSError, match="No space left"):
        seglake.export(scan, str(path), filesystem=filesystem)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("kind", [Hdfs, WebHdfs])
@pytest.mark.parametrize("step", ["rm_file", "mv"])
def test_a_replacement_that_is_interrupted_leaves_a_copy(
    scan: seglake.Scan, tmp_path: Path, kind: Callable[[], Any], step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old file is removed, and then the new one gets its name: none of them may be lost in between."""
    filesystem, path = kind(), tmp_path / "x.csv"
    seglake.export(scan, str(path), filesystem=filesystem)
    old = path.read_bytes()
    done = getattr(filesystem, step)

    def lose(*arguments: Any, **options: Any) -> None:
        if step == "mv" and path.exists():
            done(*arguments, **options)
            return
        if step == "rm_file":
            done(*arguments, **options)
        raise ConnectionResetError(104, "Connection reset by peer")

    monkeypatch.setattr(filesystem, step, lose)
    few = scan.filter([("type", "==", "nothing")])
    with pytest.raises(OSError, match=r"reset by peer.*the new file is .*/\.x\.csv\..*\.tmp: rename it"):
        seglake.export(few, str(path), filesystem=filesystem, overwrite=True)
    (left,) = tmp_path.glob(".x.csv.*.tmp")
    monkeypatch.undo()
    seglake.export(few, str(path), filesystem=filesystem)
    assert left.read_bytes() == path.read_bytes() != old


def test_exports_to_one_name_share_no_temporary_file(scan: seglake.Scan, tmp_path: Path) -> None:
    """Also at the root of a store."""
    staged: set[str] = set()

    class Root(DirFileSystem):
        def mv(self, path1: str, path2: str, **options: Any) -> None:
            staged.add(path1)
            super().mv(path1, path2, **options)

    for _ in range(2):
        seglake.export(scan, "x.csv", filesystem=Root(str(tmp_path), Hdfs()), overwrite=True)
    assert len(staged) == 2


def test_command(scan: seglake.Scan, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_ENDPOINT_URL": f"http://{store.endpoint}",
        "AWS_REGION": "eu-central-1",
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    done = here("export", tmp_path / "logs", "--to", "s3://logs/x.parquet")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("s3://logs/x.parquet: 100 records of 2 files, ")
    again = here("export", tmp_path / "logs", "--to", "s3://logs/x.parquet")
    assert again.status == 2
    assert "s3://logs/x.parquet" in again.err
    assert "--overwrite replaces it" in again.err
