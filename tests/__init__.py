"""All that is tested in Python; a package so that `python -m tests.damage` finds its way."""
