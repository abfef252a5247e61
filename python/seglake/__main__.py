"""`python -m seglake`: the command line, where the `seglake` script is not on the path."""

import sys

from seglake.cli import main

if __name__ == "__main__":
    sys.exit(main())
