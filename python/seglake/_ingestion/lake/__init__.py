"""What keeps track of a table's files: folders alone, Delta Lake, or Apache Iceberg.

Each module but `table` needs a package that is not always there, so it is imported where it is used.
"""
