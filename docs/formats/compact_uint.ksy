meta:
  id: compact_uint
  title: Unsigned integer of compact-encoding
  license: Apache-2.0
  ks-version: "0.11"
  endian: le
doc: |
  The variable-length integer that every number of an oplog message is: one byte up to 0xfc, else a byte that says how
  wide the number after it is. Unlike everything in the other formats it is little-endian.

  Writers take the shortest form. Readers accept longer ones, and read all 64 bits.
doc-ref: oplog.md
seq:
  - id: first
    type: u1
    doc: The number itself, or the width of what follows.
  - id: wide
    type:
      switch-on: first
      cases:
        0xfd: u2
        0xfe: u4
        0xff: u8
    if: first > 0xfc
instances:
  value:
    value: "first > 0xfc ? wide : first"
    doc: The number, 0 to 2^64 - 1.
