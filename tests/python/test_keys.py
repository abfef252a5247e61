"""`seglake.lake.keys`: which records of a source the lake has, beside a dictionary."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seglake.lake.keys import SourceKeys

# Few, so that keys come again, and with halves that several share.
UUIDS = [uuid.UUID(int=high << 64 | low) for high in (0, 1, 2**63, 2**64 - 1) for low in (0, 1, 2**64 - 1)]
INTEGERS = [0, 1, 2, 3, 5, 2**62, 2**63 - 1]


KINDS: dict[str, tuple[list[Any], Callable[[list[Any]], pa.Array]]] = {
    "uuid": (UUIDS, lambda keys: pa.array([str(key) for key in keys], pa.string())),
    "upper case": (UUIDS, lambda keys: pa.array([str(key).upper() for key in keys], pa.string())),
    "int64": ([-(2**63), -1, *INTEGERS], lambda keys: pa.array(keys, pa.int64())),
    "uint64": ([*INTEGERS, 2**63, 2**64 - 1], lambda keys: pa.array(keys, pa.uint64())),
}


def hashed(hashes: list[int]) -> pa.Array:
    return pa.array(hashes, pa.uint64())


def sliced(array: pa.Array) -> pa.Array:
    return pa.concat_arrays([array[:1], array, array[-1:]]).slice(len(array[:1]), len(array))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=150)
def test_as_a_dictionary(kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    universe, make = KINDS[kind]
    rows = st.lists(st.tuples(st.sampled_from(universe), st.sampled_from([0, 1, 2**64 - 1])), max_size=12)
    steps = data.draw(st.lists(st.tuples(st.booleans(), st.booleans(), rows), max_size=12))
    model: dict[Any, set[int]] = {}
    folder = tmp_path_factory.mktemp("keys")
    with SourceKeys(folder, run_rows=data.draw(st.sampled_from([1, 2, 3, 7, 1000]))) as keys:
        for is_add, is_ascending, pairs in steps:
            own = sorted(pairs) if is_ascending else pairs
            arrays = sliced(make([key for key, _ in own])), sliced(hashed([each for _, each in own]))
            if is_add:
                keys.add(*arrays)
                for key, each in own:
                    model.setdefault(key, set()).add(each)
                continue
            is_there, conflicts = keys.look(*arrays)
            assert is_there.tolist() == [key in model for key, _ in own]
            assert conflicts.tolist() == [key in model and each not in model[key] for key, each in own]
    assert list(folder.iterdir()) == []


def test_many_equal_keys_are_looked_at_by_halves(tmp_path: Path) -> None:
    # One at a time this would take 10^10 comparisons.
    many = 100_000
    with SourceKeys(tmp_path, run_rows=many) as keys:
        keys.add(pa.array(np.zeros(many, np.int64)), pa.array(np.arange(many, dtype=np.uint64)))
        is_there, conflicts = keys.look(
            pa.array(np.zeros(many, np.int64)), pa.array(np.arange(1, many + 1, dtype=np.uint64))
        )
        assert is_there.all() and conflicts.tolist() == [False] * (many - 1) + [True]


def test_files_are_in_a_folder_of_their_own_until_closed(tmp_path: Path) -> None:
    first, second = SourceKeys(tmp_path, run_rows=2), SourceKeys(tmp_path, run_rows=2)
    assert list(tmp_path.iterdir()) == []
    for keys in (first, second):
        keys.add(pa.array([1, 2, 3]), hashed([1, 2, 3]))
    assert len(list(tmp_path.iterdir())) == 2
    first.close()
    first.close()
    assert second.look(pa.array([2, 3, 4]), hashed([2, 4, 4]))[1].tolist() == [False, True, False]
    second.close()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="closed"):
        first.look(pa.array([1]), hashed([1]))


def test_memory_of_batches_is_not_kept(tmp_path: Path) -> None:
    numbers = np.arange(3)
    with SourceKeys(tmp_path) as keys:
        keys.add(pa.array(numbers), hashed([0, 1, 2]))
        numbers += 10
        assert keys.look(pa.array([0, 1, 2]), hashed([0, 1, 2]))[0].all()


GOOD = str(UUIDS[4])


@pytest.mark.parametrize(
    ("keys", "hashes", "error", "message"),
    [
        (pa.array([1, None]), hashed([1, 2]), ValueError, r"2 keys \(1 of them null\)"),
        (pa.array([1, 2]), pa.array([1, None], pa.uint64()), ValueError, r"2 hashes \(1 of them null\)"),
        (pa.array([1, 2]), hashed([1]), ValueError, "found 2 keys .* and 1 hashes"),
        (pa.array([1]), pa.array([1]), TypeError, "hashes of type uint64, found int64"),
        (pa.array([1.5]), hashed([1]), TypeError, "found double"),
        (pa.array([b"0" * 16]), hashed([1]), TypeError, "found binary"),
        (pa.array([GOOD, GOOD[:-1]]), hashed([1, 2]), ValueError, f"row 1: .*{GOOD[:-1]}"),
        (pa.array([GOOD, GOOD[:-1] + "g"]), hashed([1, 2]), ValueError, "row 1: "),
        (pa.array([GOOD, GOOD[:-1] + " "]), hashed([1, 2]), ValueError, "row 1: "),
        (pa.array([GOOD.replace("-", "0"), GOOD]), hashed([1, 2]), ValueError, "row 0: "),
        (pa.array(["é" * 18]), hashed([1]), ValueError, "row 0: "),
    ],
)
def test_what_has_no_keys_is_refused(
    keys: pa.Array, hashes: pa.Array, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with SourceKeys(tmp_path) as own:
        for call in (own.add, own.look):
            with pytest.raises(error, match=message):
                call(keys, hashes)
        own.add(pa.array([1]), hashed([1]))  # what was refused has left nothing
        with pytest.raises(TypeError, match="expected keys of type int64, as before, found string"):
            own.look(pa.array([GOOD]), hashed([1]))
