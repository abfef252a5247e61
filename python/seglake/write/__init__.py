"""Files that appear when they are complete: one of this machine, and what records are exported to."""
