"""The ingest: what comes out, and what is refused. In threads of this process; tests/spark compares it with Spark."""

import importlib
import os
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from segments import DAY, OTHER_KEY, TYPE, Written, flip, tear, write_segment

import seglake
from seglake import IngestResult, ingest
from seglake.exceptions import IngestError
from seglake.lake import read
from seglake.lake.result import no_files
from seglake.types import IngestProgress

lake_ingest = importlib.import_module("seglake.lake.ingest")
BYTE_COLUMNS = ("record_bytes", "header_bytes", "padding_bytes", "unused_bytes", "torn_bytes", "corrupt_bytes")


def table(dst: Path, name: str, format: str = "active") -> pa.Table:
    files = sorted((dst / (format if name == "records" else name)).rglob("*"))
    partitioning = ds.partitioning(pa.schema([("date", pa.date32())]), flavor="hive") if name == "records" else None
    return ds.dataset([str(file) for file in files if file.is_file()], partitioning=partitioning).to_table()


def rows(dst: Path, name: str, format: str = "active") -> list[dict[str, Any]]:
    return table(dst, name, format).to_pylist()


def sql(query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(query).fetchall()


class Lake:
    """Segments of all kinds, ingested once for many tests."""

    def __init__(self, root: Path) -> None:
        self.src = root / "src"
        self.dst = root / "lake"
        self.written: dict[str, list[Written]] = {
            "sound": write_segment(self.src / "sound.active", 40),
            "preallocated": write_segment(self.src / "deep/er/preallocated.active", 10, preallocate=5000),
            "flipped": write_segment(self.src / "flipped.active", 10),
            "torn": write_segment(self.src / "torn.active", 10, first=DAY + timedelta(days=300)),
            "large": write_segment(self.src / "large.active", 3, value_bytes=20 << 20, every=timedelta(days=1)),
        }
        flip(self.src / "flipped.active", self.written["flipped"][4].end - 9)
        tear(self.src / "torn.active", self.written["torn"][9].end - 3)
        flip(self.src / "large.active", self.written["large"][1].end - 9)
        (self.src / "empty.active").write_bytes(b"")
        (self.src / "notes.txt").write_text("no segment, but text that is long enough to be taken for something\n")
        (self.src / "_skipped.active").write_bytes(b"x")
        linked = root / "linked"
        write_segment(linked / "not-this.active", 3)
        (self.src / "link").symlink_to(linked)
        self.bytes = {str(path): path.read_bytes() for path in self.src.rglob("*.active") if path.name[0] != "_"}
        self.seen: list[IngestProgress] = []
        self.result: IngestResult = ingest(self.src, self.dst, final=True, progress=self.seen.append)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(tmp_path_factory.mktemp("ingest"))


LOST = {("flipped", 4), ("torn", 9), ("large", 1)}


def test_every_sound_record_arrives_once_with_its_place(lake: Lake) -> None:
    expected = {
        (str(each.uuid), each.timestamp, TYPE, each.value, each.start, each.timestamp.date(), name)
        for name, written in lake.written.items()
        for number, each in enumerate(written)
        if (name, number) not in LOST
    }
    found = [
        (r["uuid"], r["timestamp"], r["type"], r["value"], r["position"], r["date"], Path(r["path"]).stem)
        for r in rows(lake.dst, "records")
    ]
    assert len(found) == len(expected)
    assert set(found) == expected
    assert {row["path"] for row in rows(lake.dst, "records")} < set(lake.bytes)


def test_types_are_those_of_the_data_source(lake: Lake) -> None:
    schema = table(lake.dst, "records").schema
    assert {field.name: str(field.type) for field in schema} == {
        "uuid": "string",
        "timestamp": "timestamp[us, tz=UTC]",
        "type": "string",
        "value": "binary",
        "source": "string",
        "path": "string",
        "position": "int64",
        "date": "date32[day]",
    }


def test_damage_has_the_bytes_themselves_in_parts(lake: Lake) -> None:
    damage = sorted(rows(lake.dst, "damage"), key=lambda row: (row["path"], row["part"]))
    ranges = {
        "flipped": (lake.written["flipped"][4].start, lake.written["flipped"][4].end, "corrupt", "checksum_mismatch"),
        "large": (lake.written["large"][1].start, lake.written["large"][1].end, "corrupt", "checksum_mismatch"),
        "torn": (lake.written["torn"][9].start, lake.written["torn"][9].end - 3, "torn_tail", "length_out_of_bounds"),
    }
    found: dict[str, bytes] = {}
    for row in damage:
        name = Path(row["path"]).stem
        assert (row["start"], row["end"], row["kind"], row["cause"]) == ranges[name]
        assert len(row["raw"]) <= 8 << 20
        found[name] = found.get(name, b"") + row["raw"]
    assert [row["part"] for row in damage if "large" in row["path"]] == [0, 1, 2]
    for name, (start, end, _, _) in ranges.items():
        assert found[name] == lake.bytes[str(lake.src / f"{name}.active")][start:end], name


def test_files_add_up(lake: Lake) -> None:
    files = {row["path"]: row for row in rows(lake.dst, "files")}
    assert set(files) == {*lake.bytes, str(lake.src / "notes.txt")}
    for path, content in lake.bytes.items():
        row = files[path]
        report = seglake.verify(path)
        assert row["nbytes"] == len(content) == sum(row[column] for column in BYTE_COLUMNS), path
        assert (row["format"], row["checked"], row["error"]) == ("active", "checksum", None)
        assert (row["records"], row["status"]) == (
            report.records,
            ("sound" if report.records else "pending") if report.ok else "damaged",
        )
        assert row["records"] == sum(record["path"] == path for record in rows(lake.dst, "records"))
    first, *_, last = lake.written["sound"]
    sound = files[str(lake.src / "sound.active")]
    assert (sound["first_timestamp"], sound["last_timestamp"]) == (first.timestamp, last.timestamp)
    assert sound["status"] == "sound"
    torn = files[str(lake.src / "torn.active")]
    assert (torn["torn_bytes"], torn["corrupt_bytes"], torn["status"]) == (80, 0, "damaged")
    assert files[str(lake.src / "deep/er/preallocated.active")]["unused_bytes"] == 5000 - 830
    assert files[str(lake.src / "empty.active")]["status"] == "pending"


def test_what_cannot_be_read_has_its_error_and_stops_nothing(lake: Lake) -> None:
    (row,) = [row for row in rows(lake.dst, "files") if row["error"] is not None]
    assert row["path"] == str(lake.src / "notes.txt")
    assert "cannot tell the format" in row["error"]
    assert (row["status"], row["records"], row["nbytes"], row["format"]) == ("not_a_segment", 0, None, None)


def test_the_result(lake: Lake) -> None:
    result = lake.result
    assert (result.files, result.records) == (7, 70)
    assert result.statuses == no_files() | {"sound": 2, "damaged": 3, "pending": 1, "not_a_segment": 1}
    assert result.nbytes == sum(len(content) for content in lake.bytes.values())
    assert {cause: (total.ranges, total.nbytes) for cause, total in result.damage.items()} == {
        "checksum_mismatch": (2, 83 + (20 << 20) + 43),
        "length_out_of_bounds": (1, 80),
    }
    assert [(Path(error.path).name, error.status) for error in result.errors] == [("notes.txt", "not_a_segment")]
    assert result.skipped == ((str(lake.src / "link"), "a linked folder"),)
    assert (result.ok, result.exit_status, result.formats) == (False, 1, ("active",))
    shown = result.to_dict()
    assert shown["damage"]["length_out_of_bounds"] == {"ranges": 1, "nbytes": 80}
    assert shown["errors"][0].keys() == {"path", "status", "error"}
    assert (shown["files"], shown["statuses"]["damaged"]) == (7, 3)
    assert (shown["exit_status"], shown["ok"]) == (1, False)
    assert shown["records_per_second"] > 0


def test_progress_ends_complete_and_never_exceeds(lake: Lake) -> None:
    last = lake.seen[-1]
    assert (last.files_done, last.files_total, last.records) == (7, 7, 70)
    assert last.damage == sum(total.ranges for total in lake.result.damage.values()) > 1
    # What could not be read is finished too.
    assert last.bytes_total == last.bytes_done > 60 << 20
    assert all(seen.bytes_done <= seen.bytes_total for seen in lake.seen)


def test_duckdb_and_polars_read_it_with_globs_over_everything(lake: Lake) -> None:
    records = lake.dst / "active"
    hive = f"read_parquet('{records}/**', hive_partitioning => true)"
    assert sql(f"SELECT count(*), min(date)::VARCHAR FROM {hive}") == [(70, "2024-01-31")]
    total = sum(table(lake.dst, name).num_rows for name in ("records", "damage", "files", "runs"))
    everything = f"read_parquet('{lake.dst}/**/*.parquet', union_by_name => true, hive_partitioning => false)"
    assert sql(f"SELECT count(*) FROM {everything}") == [(total,)]
    assert polars.scan_parquet(records, hive_partitioning=True).select(polars.len()).collect().item() == 70


def test_nothing_is_left_of_the_staging(lake: Lake) -> None:
    assert list((lake.dst / "_staging").iterdir()) == []
    names = ["_log", "_staging", "_views.sql", "active", "damage", "files", "runs"]
    assert sorted(path.name for path in lake.dst.iterdir()) == names


def test_a_second_batch_is_added_and_no_file_is_taken_twice(lake: Lake, tmp_path: Path) -> None:
    dst = tmp_path / "lake"
    write_segment(tmp_path / "src/a.active", 3)
    assert ingest(tmp_path / "src/a.active", dst).exit_status == 0
    write_segment(tmp_path / "src/b.active", 4)
    result = ingest([tmp_path / "src"], str(dst), format="active")
    assert (result.records, result.exit_status) == (4, 0)
    assert (table(dst, "records").num_rows, table(dst, "files").num_rows) == (7, 2)


def test_a_file_that_could_not_be_read_may_be_tried_again(tmp_path: Path) -> None:
    src, dst = tmp_path / "src", tmp_path / "lake"
    write_segment(src / "a.active", 3)
    write_segment(src / "b", 3)
    content = (src / "b").read_bytes()
    (src / "b").write_text("as yet it is none, and long enough to be looked at")
    assert ingest(src, dst).exit_status == 1
    (src / "b").write_bytes(content)
    assert ingest(src / "b", dst).exit_status == 0
    assert [row["error"] is None for row in rows(dst, "files") if row["path"].endswith("b")].count(True) == 1
    assert table(dst, "records").num_rows == 6


def test_output_files_are_of_the_size_asked_for(tmp_path: Path) -> None:
    # Values that zstd cannot make smaller, enough for several row groups of 32 MiB.
    with seglake.create(tmp_path / "r.active", format="active") as writer:
        for number in range(100):
            moment = datetime(2024, 5, 1, tzinfo=UTC) + timedelta(seconds=number)
            writer.write(uuid=seglake.uuid6(moment), type=TYPE, value=os.urandom(1 << 20))
    ingest(tmp_path / "r.active", tmp_path / "lake", target_file_size=40 << 20)
    sizes = [path.stat().st_size for path in (tmp_path / "lake/active").rglob("*.parquet")]
    assert len(sizes) == 2
    assert max(sizes) >= 40 << 20
    with pytest.raises(ValueError, match="target_file_size is 0"):
        ingest(tmp_path / "r.active", tmp_path / "lake2", target_file_size=0)


def test_many_inputs_become_few_outputs(tmp_path: Path) -> None:
    for number in range(60):
        first = DAY + timedelta(minutes=number)
        write_segment(tmp_path / f"src/{number:03d}.active", 5, first=first, every=timedelta(seconds=1))
    result = ingest(tmp_path / "src", tmp_path / "lake")
    assert (result.files, result.records) == (60, 300)
    assert len(list((tmp_path / "lake/active").rglob("*.parquet"))) <= 6


@pytest.mark.parametrize("format", ["active", "sealed"])
def test_a_wrong_key_stops_no_other_file(tmp_path: Path, format: Literal["active", "sealed"]) -> None:
    for name, key in (("a", None), ("k", OTHER_KEY), ("z", None)):
        write_segment(tmp_path / f"{name}.active", 5, key=key)
        path = tmp_path / f"src/{name}.{format}"
        path.parent.mkdir(exist_ok=True)
        seglake.seal(tmp_path / f"{name}.active", path, key=key) if format == "sealed" else os.link(
            tmp_path / f"{name}.active", path
        )
    result = ingest(tmp_path / "src", tmp_path / "lake", format=format, threads=1)
    assert (result.records, result.exit_status, result.damage) == (10, 1, {})
    assert result.statuses == no_files() | {"sound": 2, "wrong_key": 1}
    (error,) = result.errors
    assert (Path(error.path).stem, error.status) == ("k", "wrong_key")
    assert "no record checks although the structure is sound" in error.error
    found = {Path(row["path"]).stem: row for row in rows(tmp_path / "lake", "files", format)}
    assert {name: row["status"] for name, row in found.items()} == {"a": "sound", "k": "wrong_key", "z": "sound"}
    assert (found["k"]["format"], found["k"]["records"], found["k"]["nbytes"]) == (format, 0, None)
    assert found["k"]["error"] == error.error
    assert rows(tmp_path / "lake", "damage", format) == []
    # With the right key it is taken, beside those that are there.
    (tmp_path / "key").write_text(OTHER_KEY.hex())
    assert ingest(tmp_path / "src" / f"k.{format}", tmp_path / "lake", key=tmp_path / "key").records == 5
    (tmp_path / "usual").write_bytes(bytes(32))
    keys = [tmp_path / "usual", tmp_path / "key"]
    assert ingest(tmp_path / "src", tmp_path / "both", key=keys).statuses == no_files() | {"sound": 3}
    with pytest.raises(TypeError, match="key: expected the path of the file of a key, or a list of such paths"):
        ingest(tmp_path / "src", tmp_path / "both", key=[OTHER_KEY])  # pyright: ignore


@pytest.mark.parametrize("name", [None, "b.active"])
def test_a_file_that_is_renamed_while_the_run_begins_comes_with_the_next_one(
    tmp_path: Path, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in filter(None, ("a.active", name)):
        write_segment(tmp_path / "src" / each, 5)
    path = tmp_path / "src/a.active"
    plan_files = lake_ingest.plan_files

    def late(*listed: Any, **how: Any) -> Any:
        plan = plan_files(*listed, **how)
        if path.exists():
            path.rename(path.with_name("c.active"))
        return plan

    monkeypatch.setattr(lake_ingest, "plan_files", late)
    result = ingest(tmp_path / "src", tmp_path / "lake")
    assert (result.exit_status, result.records, result.errors) == (0, 5 if name else 0, ())
    assert [Path(gone).name for gone, why in result.skipped if "gone since it was listed" in why] == ["a.active"]
    monkeypatch.undo()
    result = ingest(tmp_path / "src", tmp_path / "lake")
    assert (result.exit_status, result.records, result.skipped) == (0, 5, ())
    assert {row["status"] for row in rows(tmp_path / "lake", "files")} == {"sound"}


def test_a_key_that_is_wrong_for_every_segment_writes_nothing(tmp_path: Path) -> None:
    for name in "ab":
        write_segment(tmp_path / f"src/{name}.active", 5, key=OTHER_KEY)
    (tmp_path / "src/notes.txt").write_text("no segment, but text that is long enough to be taken for something\n")
    with pytest.raises(
        IngestError, match=r"a\.active: no record .* \(and 1 more\).* every .* Nothing was ingested"
    ) as error:
        ingest(tmp_path / "src", tmp_path / "lake")
    assert error.value.exit_status == 2
    assert not any(path.is_file() for path in (tmp_path / "lake").rglob("*"))


def test_damage_in_front_of_the_first_record_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is held back until it is known that the key is right."""
    monkeypatch.setattr(read, "_HELD_SPANS", 1)
    lost = {"one": [0], "two": [0, 2], "last": [0, 2, 4]}
    expected: list[tuple[str, int, int]] = []
    for name, numbers in lost.items():
        written = write_segment(tmp_path / f"src/{name}.active", 6)
        for number in numbers:
            flip(tmp_path / f"src/{name}.active", written[number].end - 9)
            expected.append((name, written[number].start, written[number].end))
    ingest(tmp_path / "src", tmp_path / "lake")
    damage = rows(tmp_path / "lake", "damage")
    assert sorted((Path(row["path"]).stem, row["start"], row["end"]) for row in damage) == sorted(expected)


def test_a_file_without_a_record_has_its_damage(tmp_path: Path) -> None:
    (tmp_path / "noise.active").write_bytes(os.urandom(4999) + b"x")  # zeros at the end are unused space
    result = ingest(tmp_path / "noise.active", tmp_path / "lake", format="active", final=True)
    assert (result.records, result.statuses["damaged"]) == (0, 1)
    assert sum(len(row["raw"]) for row in rows(tmp_path / "lake", "damage")) == 5000


def test_a_key_that_cannot_be_used_stops_everything(tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 5)
    (tmp_path / "key").write_text("zz" * 32)
    for name in ("none", "key"):
        with pytest.raises(IngestError, match=f"the key cannot be used: .*{name}") as error:
            ingest(tmp_path / "a.active", tmp_path / "lake", key=tmp_path / name)
        assert "zzzz" not in str(error.value)


@pytest.mark.parametrize(
    ("sources", "dst", "format", "message"),
    [
        ([], "lake", None, "no sources are given"),
        (["none"], "lake", None, "none: there is no such file or folder"),
        (["src/*.none"], "lake", None, "no file or folder matches this pattern"),
        (["src"], "src/lake", None, "the destination is in .*src, which is to be ingested"),
        (["src"], "src", None, "the destination is in .*src, which is to be ingested"),
        (["src"], "link/lake", None, "the destination is in .*src, which is to be ingested"),
        (["sr*"], "src/lake", None, "the destination is in .*src, which is to be ingested"),
        (["src"], "file", None, "file: expected a folder"),
        (["src"], "", None, "expected a folder: a path"),
        (["src"], "s3://bucket/lake", None, "plain Parquet .* takes a mounted file system"),
        (["src"], "lake", "parquet", "parquet.*active"),
    ],
)
def test_refusals_before_anything_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sources: list[str],
    dst: str,
    format: str | None,
    message: str,
) -> None:
    write_segment(tmp_path / "src/a.active", 1)
    (tmp_path / "link").symlink_to(tmp_path / "src")
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(IngestError, match=message):
        ingest(sources, dst, format=format)
    assert sorted(tmp_path.rglob("*")) == before


def test_no_files_is_a_result(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/_only-this").write_bytes(b"x")
    result = ingest(tmp_path / "src", tmp_path / "lake")
    assert (result.files, result.run_id, result.exit_status) == (0, None, 0)
    assert not (tmp_path / "lake").exists()


def test_tables_without_rows_can_be_queried(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/empty.active").write_bytes(b"")
    ingest(tmp_path / "src", tmp_path / "lake")
    active = tmp_path / "lake" / "active"
    for folder in (active, tmp_path / "lake/damage"):
        assert sql(f"FROM read_parquet('{folder}/**', hive_partitioning => true)") == []
        assert polars.scan_parquet(folder).collect().height == 0
    # With rows to come the column is a date all the same.
    write_segment(tmp_path / "more.active", 3)
    ingest(tmp_path / "more.active", tmp_path / "lake")
    dates = sql(f"SELECT min(date) FROM read_parquet('{active}/**', hive_partitioning => true)")
    assert dates == [(DAY.date(),)]
    assert polars.scan_parquet(active, hive_partitioning=True).collect()["date"].dtype == polars.Date


def test_nothing_but_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no segment, but text that is long enough to be taken for something\n")
    result = ingest(tmp_path / "notes.txt", tmp_path / "lake")
    assert (result.statuses["not_a_segment"], result.exit_status) == (1, 1)
    assert [row["format"] for row in rows(tmp_path / "lake", "files")] == [None]
    result = ingest(tmp_path / "notes.txt", tmp_path / "lake", format="active", final=True)
    assert (result.files, result.records, result.statuses["damaged"]) == (1, 0, 1)


def test_an_interrupted_caller_stops_the_tasks(tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 5)

    def interrupt(_: IngestProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest(tmp_path / "a.active", tmp_path / "lake", progress=interrupt)
    assert not (tmp_path / "lake/active").exists()
    assert ingest(tmp_path / "a.active", tmp_path / "lake").records == 5


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_name_that_is_no_text_is_the_same_in_all_tables(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/src/\xff.active"))
    written = write_segment(path, 5)
    flip(path, written[2].end - 9)
    notes = path.with_suffix(".txt")
    notes.write_text("no segment, but text that is long enough to be taken for something\n")
    path.with_suffix(".link").symlink_to(tmp_path)
    result = ingest(tmp_path / "src", tmp_path / "lake")
    (error,) = result.errors
    assert error.path == f"{tmp_path}/src/\\xff.txt"
    assert error.path in error.error
    assert result.skipped == ((f"{tmp_path}/src/\\xff.link", "a linked folder"),)
    for name in ("records", "damage", "files"):
        sound = [row["path"] for row in rows(tmp_path / "lake", name) if row.get("error") is None]
        assert set(sound) == {f"{tmp_path}/src/\\xff.active"}
    notes.unlink()
    assert ingest(tmp_path / "src", tmp_path / "lake").run_id is None


def test_schema_metadata_is_plain(lake: Lake) -> None:
    """Readers other than Arrow's see the same as those that read Arrow's own note of the schema."""
    for file in (lake.dst / "active").rglob("*.parquet"):
        names = pq.read_schema(file).names
        assert names == ["uuid", "timestamp", "type", "value", "source", "path", "position"]
        assert re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{8}-(\d{5}-[0-9a-f]{8}|run)-\d{5}\.parquet", file.name)
