"""The golden files of the example format are what its rules in plain Python say."""

from __future__ import annotations

import json

from tests.python import sharded_reference


def test_the_rules_make_the_golden_files() -> None:
    made = sharded_reference.vectors()
    stored = {path.stem for path in sharded_reference.VECTORS.glob("*.json")}
    assert stored == set(made)
    assert len(made) > 50
    for name, (file, expected) in made.items():
        path = sharded_reference.VECTORS / name
        assert path.with_suffix(".bin").read_bytes() == file
        assert json.loads(path.with_suffix(".json").read_text()) == expected
