"""Reads every input of the fuzz corpus with the library and with the rules as plain Python, and compares the results.

The functions that compare are those of each format's test module.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import chunked_reference
import pytest
import test_active_reference
import test_chunked_reference
import test_oplog_reference
import test_sealed_reference
import test_tenant_reference
from sealed_reference import DEFAULT_KEY

import seglake

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "fuzz" / "corpus"
# The segments of the indexes in the corpus, as in fuzz/src/properties/index.rs.
SEGMENTS = [ROOT / "tests" / "vectors" / "chunked" / name for name in ("index_flip.bin", "flip_length.bin")]

COMPARE: dict[str, Callable[[bytes], None]] = {
    "active": test_active_reference.compare,
    "sealed": lambda data: test_sealed_reference.compare(data, DEFAULT_KEY),
    "tenant": test_tenant_reference.compare,
    "chunked": test_chunked_reference.compare,
}


def inputs(name: str) -> Iterator[tuple[str, bytes]]:
    paths = sorted((CORPUS / name).iterdir())
    assert len(paths) > 10, "the corpus is missing"
    return ((path.name, path.read_bytes()) for path in paths)


@pytest.mark.parametrize("form", COMPARE)
def test_the_library_and_the_rules_agree(form: str, subtests: pytest.Subtests) -> None:
    for name, data in inputs(form):
        with subtests.test(name):
            COMPARE[form](data)


@pytest.mark.parametrize("dialect", test_oplog_reference.DIALECTS)
def test_the_library_and_the_rules_agree_on_oplogs(dialect: str, subtests: pytest.Subtests) -> None:
    for name, data in inputs("oplog"):
        with subtests.test(name):
            test_oplog_reference.compare(data, dialect)


@pytest.mark.parametrize("segment", SEGMENTS, ids=lambda path: path.stem)
def test_the_library_and_the_rules_agree_on_indexes(segment: Path, tmp_path: Path, subtests: pytest.Subtests) -> None:
    log, path = segment.read_bytes(), tmp_path / "segment.chunks"
    path.write_bytes(log)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
        records = list(seglake.open(path, format="chunked", on_damage="skip"))
    for name, data in inputs("chunked_index"):
        with subtests.test(name):
            path.with_suffix(".index").write_bytes(data)
            reader = seglake.open(path, format="chunked", on_damage="skip")
            index = reader.index()
            assert index is not None
            items, ledger = chunked_reference.read_index(log, data)
            assert [{"offset": offset, "file_offset": at} for offset, at in index.items] == items
            assert [tuple(span) for span in index.ledger()] == [tuple(span) for span in ledger]
            # Even a wrong index must not change what a look-up returns.
            assert reader.get_many([record.offset for record in records]) == records
