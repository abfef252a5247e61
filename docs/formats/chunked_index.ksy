meta:
  id: chunked_index
  title: Sparse index of a chunked log segment
  file-extension: index
  license: Apache-2.0
  ks-version: "0.11"
  endian: be
doc: |
  A run of items of 20 bytes, each pointing at a chunk of the `.chunks` file that it lies beside. Writers give every
  chunk one. The index is a hint: each item is to be held against the header of the chunk that it points at, and a
  reader without an index, or with a wrong one, reads the chunks.

  In a sound index each `checksum` is right, each item points at a chunk that begins with the same message offset, and
  both offsets ascend strictly. A parser made from this file does not check that.
doc-ref: chunked.md
seq:
  - id: items
    type: item
    repeat: eos
types:
  item:
    seq:
      - id: start_offset
        type: s8
        valid:
          min: 0
        doc: The message offset of the chunk's first record.
      - id: ofs_chunk
        type: s8
        valid:
          expr: _ >= 0 and _ % 0x80 == 0
        doc: Where the chunk's header begins, from the start of the `.chunks` file.
      - id: checksum
        type: u4
        doc: CRC-32 (IEEE) of the 16 bytes before it.
