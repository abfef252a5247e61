"""`seglake.export` into stores: one object, whole or not at all, and the bytes of a local export."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest
from cli_process import here
from object_store import ACCESS_KEY, SECRET_KEY, ObjectStore, Request, object_store

import seglake

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


@pytest.mark.parametrize("kind", KINDS)
def test_the_bytes_are_those_of_a_local_export(
    scan: seglake.Scan, store: ObjectStore, tmp_path: Path, kind: Any
) -> None:
    local = tmp_path / f"x.{kind}"
    exported = seglake.export(scan, local)
    uri = f"s3://logs/deep/x.{kind}"
    assert seglake.export(scan, uri, storage_options=store.storage_options()) == exported
    assert content(store, f"logs/deep/x.{kind}") == local.read_bytes()
    with store.filesystem().open_output_stream(f"logs/y.{kind}") as file:  # any other file system, too
        assert seglake.export(scan, file, to=kind) == exported
    if kind != "arrow":  # which is a stream there
        assert content(store, f"logs/y.{kind}") == local.read_bytes()


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


def test_what_is_there_is_replaced_only_if_asked(scan: seglake.Scan, store: ObjectStore) -> None:
    options: dict[str, Any] = {"storage_options": store.storage_options()}
    seglake.export(scan, "s3://logs/deep/x.csv", **options)
    with store.counting() as made, pytest.raises(FileExistsError, match=r"s3://logs/deep/x\.csv"):
        seglake.export(scan, "s3://logs/deep/x.csv", **options)
    assert not [request for request in made if request.method in ("PUT", "POST")]
    few = scan.filter([("type", "==", "nothing")])
    assert seglake.export(few, "s3://logs/deep/x.csv", if_exists="overwrite", **options).records == 0
    for path, said in (("s3://logs/deep", "Is a folder"), ("s3://logs", "names no file")):
        with pytest.raises((OSError, ValueError), match=said):
            seglake.export(scan, path, to="csv", if_exists="overwrite", **options)


@pytest.mark.parametrize("uri", ["hdfs://name/x.csv", "viewfs://name/x.csv", "sftp://user:hidden@name/x.csv"])
def test_other_stores_are_only_read_from(scan: seglake.Scan, uri: str) -> None:
    said = r"^\w+://: expected a path, or the URI of an object store .*Write to a path where that .*is mounted"
    with pytest.raises(ValueError, match=said):
        seglake.export(scan, uri)


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
            large,
            "s3://logs/x.arrow",
            storage_options=storage_options,
            compression="none",
            if_exists="error" if create else "overwrite",
        )
    store.fault = None
    assert SECRET_KEY not in str(caught.value)
    assert keys(store) == ([] if create else ["logs/x.arrow"])
    assert create or content(store, "logs/x.arrow") == b"old"
    seglake.export(
        large,
        "s3://logs/x.arrow",
        storage_options=storage_options,
        compression="none",
        if_exists="error" if create else "overwrite",
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
    with pytest.warns(seglake.exceptions.DamageWarning):
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
            seglake.export(remote, path, to="csv", storage_options=storage_options, if_exists="overwrite")
    with pytest.raises(FileNotFoundError, match="no such bucket"):
        seglake.export(remote, "s3://other/a.active", to="csv", storage_options=storage_options)
    with pytest.raises(ValueError, match="is to be written twice"):
        skipping = seglake.scan(uri, storage_options=storage_options, on_damage="skip")
        seglake.export(skipping, "s3a://logs/x.csv", damage="s3://logs/x.csv", storage_options=storage_options)


def test_secrets_are_refused(scan: seglake.Scan) -> None:
    with pytest.raises(ValueError, match="a password in it") as caught:
        seglake.export(scan, f"s3://{ACCESS_KEY}:not-to-be-shown@logs/x.csv")
    assert "not-to-be-shown" not in str(caught.value)


def during_the_upload(store: ObjectStore, act: Callable[[], str | None]) -> None:
    """Does something once, as the first bytes come to the store, and says what happens to that request."""

    def fault(request: Request) -> str | None:
        if request.method != "PUT" or "x.csv" not in request.path:
            return None
        store.fault = None
        return act()

    store.fault = fault


def test_the_store_decides_which_of_two_writers_is_first(scan: seglake.Scan, store: ObjectStore) -> None:
    options: dict[str, Any] = {"storage_options": store.storage_options()}
    during_the_upload(store, lambda: store.put("x.csv", b"of another") and None)
    with pytest.raises(FileExistsError, match=r"s3://logs/x\.csv"):
        seglake.export(scan, "s3://logs/x.csv", **options)
    assert content(store, "logs/x.csv") == b"of another"
    seglake.export(scan, "s3://logs/x.csv", if_exists="overwrite", **options)
    assert content(store, "logs/x.csv") != b"of another"


def test_an_answer_that_was_lost_is_no_other_writer(scan: seglake.Scan, store: ObjectStore, tmp_path: Path) -> None:
    during_the_upload(store, lambda: "lost")
    seglake.export(scan, "s3://logs/x.csv", storage_options=store.storage_options())
    seglake.export(scan, tmp_path / "x.csv")
    assert content(store, "logs/x.csv") == (tmp_path / "x.csv").read_bytes()


def test_command(scan: seglake.Scan, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_ENDPOINT_URL": f"http://{store.endpoint}",
        "AWS_REGION": "eu-central-1",
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    done = here("export", tmp_path / "logs", "s3://logs/x.parquet")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("s3://logs/x.parquet: 100 records of 2 files, ")
    again = here("export", tmp_path / "logs", "s3://logs/x.parquet")
    assert again.status == 2
    assert "s3://logs/x.parquet" in again.err
    assert "--overwrite replaces it" in again.err
