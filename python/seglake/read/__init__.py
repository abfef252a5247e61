"""Reading many files as one: scans, their filters, and what formats have."""
