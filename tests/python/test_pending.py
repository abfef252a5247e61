"""What is unfinished at the end of a file is pending while a writer has it open, and damage afterwards."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_process import here as run

import seglake

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a writer's lock is not told there")

FIELDS: dict[str, dict[str, Any]] = {"active": {"type": "t"}, "chunked": {"offset": 0}}


def _kinds(path: Path) -> list[str]:
    return [total.kind for total in seglake.verify(path).totals]


@pytest.mark.parametrize("kind", FIELDS)
@pytest.mark.parametrize("threads", [1, 2])
def test_an_unfinished_record_is_pending_while_its_writer_is_there(tmp_path: Path, kind: str, threads: int) -> None:
    path = tmp_path / f"x.{kind}"
    with seglake.create(path, format=kind) as writer:
        for number in range(9):
            fields = FIELDS[kind] | ({"offset": number} if kind == "chunked" else {})
            writer.write(value=os.urandom(300), **fields)
            if number in (3, 8):
                writer.flush()  # of a chunked log each ends a chunk
        whole = path.stat().st_size
        content = path.read_bytes()
        with path.open("ab") as file:  # as much of the next one as the system has written
            file.write(content[:40])
        report = seglake.verify(path, threads=threads)
        assert report.ok
        assert [(total.kind, total.nbytes) for total in report.totals if total.kind == "pending"] == [("pending", 40)]
        assert (report.records, report.nbytes) == (9, whole + 40)
        assert (
            len(list(seglake.open(path)))
            == seglake.scan(path).count_rows()
            == seglake.scan(path, threads=threads).count_rows()
            == 9
        )
        assert list(seglake.open(path).ledger())[-1][:3] == (whole, whole + 40, "pending")
        assert list(seglake.scan(path).find_damage()) == []
        done = run("verify", path)
        assert (done.status, "40" in done.out) == (0, True)
        assert run("cat", path).status == 0
        if kind == "active":
            assert seglake.open(path).get("1eeafd69-9b8a-6cee-b9f1-1b8e6a30ade3") is None
        # Damage with something sound after it is damage.
        with path.open("r+b") as file:
            file.seek(whole // 4)
            file.write(b"\xff\x00\xff")
        assert not seglake.verify(path).ok
        path.write_bytes(content + content[:40])
    report = seglake.verify(path, threads=threads)
    assert not report.ok
    assert "torn_tail" in _kinds(path)
    assert "pending" not in _kinds(path)


def test_zeros_at_the_end_are_unused(tmp_path: Path) -> None:
    path = tmp_path / "x.active"
    with seglake.create(path, format="active") as writer:
        writer.write(type="t", value=b"x")
        writer.flush()
        os.truncate(path, path.stat().st_size + 100)
        assert _kinds(path) == ["record", "unused"]
    assert _kinds(path) == ["record", "unused"]


def test_a_wrong_key_is_told_also_beside_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "x.active"
    with seglake.create(path, format="active", key=bytes(range(32))) as writer:
        writer.write(type="t", value=b"x")
        writer.write(type="t", value=b"y")
        writer.flush()
        assert seglake.verify(path).wrong_key
        with pytest.raises(seglake.WrongKeyError):
            list(seglake.open(path))
