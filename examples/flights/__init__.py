"""The pieces of the demo: the flights that left New York City in 2013, as messages in files of five formats.

`source` reads the public table, `messages` turns its rows into messages, `formats` has a module for each format that
knows how they are written and where each lies in its file (`layout`), `damage` says how files are broken in known
places, `files` does both on disk, `lake` reads what was ingested, `checks` holds that against all of the above,
`delays` asks a question, and `screen` prints.
"""
