"""`seglake.recover` and `seglake.undo_recover`."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from damaged_files import damaged
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import seglake

VECTORS = Path(__file__).parents[1] / "vectors"
FLIPPED = VECTORS / "active" / "flip_message.bin"
MIB = 1 << 20

SAMPLES: dict[str, dict[str, Any]] = {
    "active/typical": {"format": "active"},
    "sealed/typical": {"format": "sealed"},
    "sealed/typical_no_trailer": {"format": "sealed"},
    "tenant/typical": {"format": "tenant"},
    "tenant/typical_v1": {"format": "tenant"},
    "chunked/typical": {"format": "chunked"},
    "oplog/typical": {"format": "oplog"},
    "oplog/typical_11": {"format": "oplog", "options": {"dialect": "draft-1.1"}},
}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def values(path: Path, how: dict[str, Any]) -> list[bytes | None]:
    with seglake.open(path, on_damage="skip", **how) as reader:
        return [record.value for record in reader]


def test_what_is_good_is_kept_and_the_rest_put_aside(tmp_path: Path) -> None:
    recovered = seglake.recover(FLIPPED, tmp_path / "new.active", format="active")
    assert (recovered.records, recovered.nbytes, recovered.lost) == (9, 770, True)
    assert (recovered.carried_bytes, recovered.quarantined_bytes) == (770, 103)
    assert recovered.report.records == 9
    assert [tuple(span) for span in recovered.report.damage] == [(308, 411, "corrupt", "checksum_mismatch")]
    assert recovered.path == str(tmp_path / "new.active")
    assert recovered.quarantine == str(tmp_path / "new.active.quarantine")
    assert recovered.manifest == str(tmp_path / "new.active.quarantine.manifest.jsonl")
    assert recovered.index is None
    assert "quarantined_bytes=103" in repr(recovered)
    assert json.loads(json.dumps(recovered.to_dict()))["report"]["damage"][0]["cause"] == "checksum_mismatch"
    data = FLIPPED.read_bytes()
    assert (tmp_path / "new.active").read_bytes() == data[:308] + data[411:]
    assert Path(recovered.quarantine).read_bytes() == data[308:411]
    assert seglake.verify(tmp_path / "new.active").ok


def test_the_manifest_says_where_each_byte_is(tmp_path: Path) -> None:
    recovered = seglake.recover(FLIPPED, tmp_path / "new.active", format="active")
    assert recovered.manifest is not None
    header, *pieces = [json.loads(line) for line in Path(recovered.manifest).read_text().splitlines()]
    assert header["manifest"] == "seglake recover"
    assert header["version"] == 1
    assert header["options"] == {"format": "active", "dialect": None, "renumber": False, "force": False}
    assert {name: header[name]["nbytes"] for name in ("original", "recovered", "quarantine")} == {
        "original": 873,
        "recovered": 770,
        "quarantine": 103,
    }
    assert header["original"]["name"] == "flip_message.bin"
    assert pieces == [
        {"start": 0, "end": 308, "in": "recovered", "at": 0},
        {"start": 308, "end": 411, "in": "quarantine", "at": 0, "kind": "corrupt", "cause": "checksum_mismatch"},
        {"start": 411, "end": 873, "in": "recovered", "at": 308},
    ]


def test_undoing_gives_the_file_back(tmp_path: Path) -> None:
    new, undone, told = tmp_path / "new", tmp_path / "undone", []
    seglake.recover(FLIPPED, new, format="active", quarantine=tmp_path / "q")
    with pytest.raises(FileNotFoundError):
        seglake.undo_recover(new, undone)
    size = seglake.undo_recover(new, undone, quarantine=tmp_path / "q", progress=lambda *bytes: told.append(bytes))
    assert size == 873
    assert undone.read_bytes() == FLIPPED.read_bytes()
    assert told[-1] == (2 * 873, 2 * 873)
    with pytest.raises(FileExistsError):
        seglake.undo_recover(new, undone, quarantine=tmp_path / "q")
    (tmp_path / "q").write_bytes(bytes(103))
    with pytest.raises(seglake.FormatError, match="not its quarantine"):
        seglake.undo_recover(new, undone, quarantine=tmp_path / "q", if_exists="overwrite")
    assert undone.read_bytes() == FLIPPED.read_bytes()


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sound_file_is_copied_and_nothing_else_written(sample: str, tmp_path: Path) -> None:
    path = VECTORS / f"{sample}.bin"
    told: list[tuple[int, int]] = []
    how = SAMPLES[sample]
    recovered = seglake.recover(path, tmp_path / "new", progress=lambda *bytes: told.append(bytes), **how)
    assert not recovered.lost
    assert (tmp_path / "new").read_bytes() == path.read_bytes()
    assert set(names(tmp_path)) - {"new.index"} == {"new"}
    assert told[-1] == (path.stat().st_size, path.stat().st_size)


@pytest.mark.filterwarnings("ignore::seglake.exceptions.DamageWarning")
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), sample=st.sampled_from(sorted(SAMPLES)))
def test_whatever_is_damaged_can_be_put_back(
    data: st.DataObject, sample: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, how = tmp_path_factory.mktemp("random"), SAMPLES[sample]
    old, new, undone = folder / "old", folder / "new", folder / "undone"
    old.write_bytes(data.draw(damaged((VECTORS / f"{sample}.bin").read_bytes())))
    try:
        recovered = seglake.recover(old, new, force=True, renumber=True, **how)
    except ValueError as refusal:
        assert how["format"] == "oplog"
        assert "renumbered" in str(refusal)
        assert names(folder) == ["old"]
        return
    assert values(new, how) == values(old, how)
    assert all(total.cause in (None, "dangling_reference") for total in seglake.verify(new, **how).totals)
    if recovered.quarantine is None:
        assert new.read_bytes() == old.read_bytes()
    else:
        seglake.undo_recover(new, undone)
        assert undone.read_bytes() == old.read_bytes()


def test_wrong_use(tmp_path: Path) -> None:
    new = tmp_path / "new"
    with pytest.raises(ValueError, match="dialect does not concern"):
        seglake.recover(FLIPPED, new, format="active", options={"dialect": "draft"})
    with pytest.raises(seglake.FormatError):
        seglake.recover(b"what is this", new)
    with pytest.raises(FileNotFoundError):
        seglake.recover(tmp_path / "none", new, format="active")
    with pytest.raises(FileNotFoundError):
        seglake.recover(FLIPPED, tmp_path / "no folder" / "new", format="active")
    with pytest.raises(ValueError, match="wrong key"):
        seglake.recover(VECTORS / "active" / "wrong_key.bin", new, format="active")
    with pytest.raises(ValueError, match=r"message 5 at offset 297 .*renumber"):
        seglake.recover(VECTORS / "oplog" / "checkpointer_changed.bin", new, format="oplog")
    with pytest.raises(ValueError, match="no name"):
        seglake.undo_recover(b"", new)
    assert names(tmp_path) == []


def test_a_buffer_is_recovered_like_a_file(tmp_path: Path) -> None:
    new = tmp_path / "new"
    recovered = seglake.recover(bytearray(FLIPPED.read_bytes()), new, format="active")
    assert recovered.report.path is None
    assert seglake.undo_recover(new.read_bytes(), tmp_path / "undone", quarantine=tmp_path / "new.quarantine") == 873
    assert (tmp_path / "undone").read_bytes() == FLIPPED.read_bytes()


def test_a_segment_under_a_key_stays_under_it(tmp_path: Path) -> None:
    data = (VECTORS / "active" / "custom_key.bin").read_bytes()
    key = bytes.fromhex(json.loads((VECTORS / "active" / "custom_key.json").read_text())["options"]["key"])
    recovered = seglake.recover(data[:-1], tmp_path / "new", key=[bytes(32), key])
    assert recovered.records == seglake.verify(tmp_path / "new", key=key).records > 0
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert key not in written
    assert key.hex().encode() not in written


def test_what_progress_raises_ends_the_work_and_leaves_nothing(tmp_path: Path) -> None:
    def stop(_done: int, _total: int) -> None:
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        seglake.recover(FLIPPED, tmp_path / "new", format="active", progress=stop)
    assert names(tmp_path) == []


FULL = """
import resource, sys, seglake
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    seglake.recover(sys.argv[1], sys.argv[2], format="active")
except OSError as error:
    print(error.errno, error.filename)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such limits there")
@pytest.mark.parametrize("limit", [0, 50, 400])
def test_a_full_disk_leaves_nothing(limit: int, tmp_path: Path) -> None:
    new = tmp_path / "new"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(FLIPPED), str(new), str(limit)], capture_output=True, text=True, check=True
    )
    number, _, filename = done.stdout.strip().partition(" ")
    assert int(number) == errno.EFBIG, done.stderr
    assert Path(filename).name.startswith("new")
    assert names(tmp_path) == []


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sparse, of 96 MiB: good records, then damage, then good ones, then unused space."""
    path = tmp_path_factory.mktemp("large") / "large.active"
    value = Random(7).randbytes(100_000)
    with seglake.create(path, format="active") as writer:
        for _ in range(100):
            writer.write(type="large", value=value)
    with path.open("r+b") as file:
        file.seek(3_000_000)
        file.write(bytes(1_000_000))
        file.truncate(96 * MIB)
    return path


MEMORY = """
import resource, sys, seglake
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
recovered = seglake.recover(sys.argv[1], sys.argv[2])
seglake.undo_recover(sys.argv[2], sys.argv[2] + ".undone")
assert recovered.lost
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak sizes are told in other units there")
def test_memory_stays_flat(large: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(large), str(tmp_path / "new")], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 64 * MIB


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
def test_ctrl_c_leaves_nothing(large: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "seglake", "recover", str(large), str(tmp_path / "new")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        # Its temporary files are the first that it makes.
        while process.poll() is None and not any(os.scandir(tmp_path)):
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert (process.returncode, err.strip()) == (130, "seglake: interrupted")
    assert names(tmp_path) == []
