"""Lets Spark's daemons import once what each process that they fork would import again.

Python runs a module of this name at its start. A process is forked for each task that fails. It takes longer to import
pandas, pyarrow and what Spark needs than to run the task. `seglake` itself is imported after the fork, as elsewhere.
"""

import gc
import importlib
import sys
import warnings

if sys.orig_argv[1:3] == ["-m", "pyspark.daemon"]:
    for name in ("pandas", "pyarrow.compute", "pyarrow.dataset", "pyarrow.fs", "pyarrow.parquet", sys.orig_argv[3]):
        importlib.import_module(name)
    # Spark's processes look for garbage after each task; among all of this there is none.
    gc.freeze()
    # Python 3.12 and newer warn of a fork beside the thread that pyarrow starts when it is imported.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
