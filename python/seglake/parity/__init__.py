"""What parity sidecars say of files: `protect`, `repair` and `scrub`, which write and use them, are in `seglake`."""

from seglake._native import coverage
from seglake._native import verify_parity as verify
from seglake._results import Protected, Repaired
from seglake._types import Coverage, ParityReport

from .scrub import Scrubbed

__all__ = ["Coverage", "ParityReport", "Protected", "Repaired", "Scrubbed", "coverage", "verify"]
