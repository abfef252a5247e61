"""The pieces of the demo: the flights that left New York City in 2013, as messages in segments.

`source` reads the public table, `messages` turns its rows into messages, `layout` knows where each lies in its file,
`segments` writes them to disk, `damage` breaks four of the files in known places, `lake` reads what was ingested,
`checks` holds that against all of the above, `delays` asks a question, and `screen` prints.
"""
