"""How tests of all parts are run. A change here runs the oracle tests again; fixtures are in `fixtures.py`."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.oracles", "tests.fixtures"]

# A shell ignores SIGINT for what it starts in the background, and so would the processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Property tests draw the same cases in every run, so that a failure comes from the change that is tested. With
# SEGLAKE_HYPOTHESIS=new they draw new ones. Both profiles are set here, because hypothesis has another default if the
# variable CI is set.
_COMMON = settings(
    settings.get_profile("default"), deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("fixed", parent=_COMMON, derandomize=True)
settings.register_profile("new", parent=_COMMON)
settings.load_profile(os.environ.get("SEGLAKE_HYPOTHESIS", "fixed"))
