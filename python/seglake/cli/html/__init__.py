"""The report that `--html` writes: one file for a browser, that shows where the damage is and what is around it."""
