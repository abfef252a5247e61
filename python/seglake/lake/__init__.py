"""Tables of the records of many files: each record once, and all damage listed."""
