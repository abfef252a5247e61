"""Tests of the format that docs/adding-a-format.md adds: `make example` builds an extension that has it."""

from __future__ import annotations

import seglake

collect_ignore_glob = [] if "sharded" in seglake.formats() else ["*"]
