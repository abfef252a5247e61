"""Errors of the data source name its options, and not the arguments of the library. Without Spark."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from segments import write_segment

import seglake
from seglake.spark.option_names import naming_options
from seglake.spark.source import SegmentDataSource


def read(path: Path, **options: str) -> int:
    source = SegmentDataSource({"path": str(path), **options})
    reader = source.reader(source.schema())
    return sum(batch.num_rows for partition in reader.partitions() for batch in reader.read(partition))  # pyright: ignore


@pytest.fixture
def segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.active"
    write_segment(path, 3)
    return path


def test_a_sidecar_that_cannot_be_opened(segment: Path) -> None:
    Path(f"{segment}.par").mkdir()
    with pytest.raises(IsADirectoryError, match=r"found a folder\. Move it, or read the file without it \(") as raised:
        read(segment)
    assert raised.value.strerror is not None
    assert raised.value.strerror.endswith("without it (option sidecar none)")
    assert read(segment, sidecar="none") == 3


def test_sidecars_that_are_none(segment: Path) -> None:
    Path("text.par").write_bytes(b"text" * 99)
    with pytest.raises(seglake.FormatError, match=r"name another with option sidecar$") as raised:
        read(segment, sidecar="text.par")
    assert raised.value.next == "it is none, or nothing of it is left: name another with option sidecar"
    with pytest.raises(FileNotFoundError, match=r"^option sidecar: gone\.par: there is no such file on "):
        read(segment, sidecar="gone.par")
    with pytest.raises(FileNotFoundError, match=r"^option keyFile: gone\.key: there is no such file on "):
        read(segment, keyFile="gone.key")


def test_the_checkpoint_of_a_query_is_no_option_of_reading(segment: Path) -> None:
    with pytest.raises(NotImplementedError, match=r"for readStream there is stateLocation\. .*foreachBatch"):
        read(segment, checkpointLocation="checkpoint")


def test_limits(segment: Path) -> None:
    expected = r"more than recordBytes = 20 allows: raise option recordBytes and read again$"
    with pytest.raises(seglake.exceptions.LimitError, match=expected) as raised:
        read(segment, recordBytes="20")
    assert raised.value.option == "recordBytes"
    assert "record_bytes" not in raised.value.reason


ERRORS: dict[str, Callable[[], Exception]] = {
    "text": lambda: ValueError("name it with `format`"),
    "system": lambda: OSError(5, "name it with `format`", "a.active"),
    "next": lambda: seglake.FormatError("found none", path="a", next="name it with `format`"),
    "reason": lambda: seglake.FormatError("name it with `format`"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_every_field_of_an_error_names_options(name: str) -> None:
    error = ERRORS[name]()
    with pytest.raises(type(error)) as raised, naming_options(), naming_options():
        raise error
    copy: Any = pickle.loads(pickle.dumps(raised.value))
    for found in (raised.value, copy):
        texts = [str(found), *(getattr(found, name, None) or "" for name in ("reason", "next", "strerror"))]
        assert "name it with option segmentFormat" in texts[0]
        assert "`" not in "".join(texts)


def test_names_of_other_things_stay() -> None:
    with pytest.raises(ValueError, match=r"^`seglake verify` and `unknown`$"), naming_options():
        raise ValueError("`seglake verify` and `unknown`")
