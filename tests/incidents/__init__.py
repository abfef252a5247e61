"""Broken files as they happen, and whether `seglake verify` names what happened and what to do next.

`python -m tests.incidents` stages each case, asks `verify`, does what it advises on a copy, and prints a table. Causes
are compared by their identifier, advice by the form of its command, and nothing by the words around them.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "python"))
