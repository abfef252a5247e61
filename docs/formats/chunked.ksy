meta:
  id: chunked
  title: Chunked log segment, compressed with zstd
  file-extension: chunks
  license: Apache-2.0
  ks-version: "0.11"
  endian: be
  bit-endian: be
doc: |
  A run of chunks, each beginning at a multiple of 0x80 of the file and holding records compressed as one zstd frame,
  then zeros to the end of the file, which may have been laid out in advance. A file of no bytes is sound.

  Decompressing is outside of this language. Decompress the bytes of a `payload`, then read what comes out as `content`.

  This is the layout of a sound file. These rules apply as well, and a parser made from this file does not
  check them: each `head_crc` matches; the start offset of a chunk is not before the end of the one before (gaps
  are allowed), and no offset is above 2^63 - 1; the payload is exactly one zstd frame, whose content checksum is right
  and whose content is exactly as many records as the header says.
doc-ref: chunked.md
seq:
  - id: parts
    type: part
    repeat: eos
    doc: The chunks in the order they were written, and after the last the unused space, where there is any.
types:
  part:
    doc: A chunk with its padding, or the unused space at the end.
    seq:
      - id: chunk
        type: chunk
        if: not is_unused
      - id: unused
        type: u1
        valid: 0
        repeat: eos
        if: is_unused
        doc: Zeros to the end of the file, any number of them, also fewer than a header has.
    instances:
      header_ahead:
        pos: _io.pos
        type: header
        if: _io.size - _io.pos >= 21
        doc: The next header, read ahead.
      is_unused:
        value: "_io.size - _io.pos < 21 ? true : header_ahead.is_zero"
        doc: Whether the unused space begins here, as it does with a header that is all zero.
  chunk:
    seq:
      - id: header
        type: header
      - id: payload
        size: header.len_payload
        type: zstd_frame
      - id: padding
        size: >-
          (0x80 - _io.pos % 0x80) % 0x80 < _io.size - _io.pos
          ? (0x80 - _io.pos % 0x80) % 0x80
          : _io.size - _io.pos
        type: zeros
        doc: To the next multiple of 0x80. Behind the last chunk they may be fewer, or none.
  zeros:
    doc: Nothing but zeros.
    seq:
      - id: zeros
        type: u1
        valid: 0
        repeat: eos
  header:
    doc: 21 bytes before each payload.
    seq:
      - id: flags
        type: u1
        valid: 0
      - id: len_payload
        type: u4
        doc: Length of the compressed bytes alone, without header and padding.
      - id: start_offset
        type: s8
        valid:
          min: 0
        doc: The message offset of the chunk's first record. Record i of the chunk has `start_offset + i`.
      - id: num_records
        type: u4
        doc: How many records the content has. None is allowed.
      - id: head_crc
        type: s4
        doc: CRC-32 (IEEE) of the 17 bytes before it.
    instances:
      is_zero:
        value: flags == 0 and len_payload == 0 and start_offset == 0 and num_records == 0 and head_crc == 0
        doc: Whether all 21 bytes are zero. No header of a chunk is, since its CRC would be wrong.
  zstd_frame:
    doc: |
      One zstd frame (RFC 8878), to be decompressed as a whole. Only what this format asks of its header is laid out
      here: it is not a skippable frame, has a content checksum, needs no dictionary, and asks for a window of at most
      128 MiB.
    doc-ref: RFC 8878, section 3.1.1
    meta:
      endian: le
    seq:
      - id: magic
        contents: [0x28, 0xb5, 0x2f, 0xfd]
      - id: content_size_flag
        type: b2
        doc: How many bytes give the size of the content. Writers may leave it out, and readers need not trust it.
      - id: is_single_segment
        type: b1
        doc: Whether the window is the whole content, so that no window descriptor follows.
      - id: unused_bit
        type: b1
      - id: reserved_bit
        type: b1
        valid: false
      - id: has_content_checksum
        type: b1
        valid: true
        doc: Whether the frame ends with a checksum of its content, as it must here.
      - id: dictionary_id_flag
        type: b2
        valid: 0
        doc: How many bytes name a dictionary. None may be needed here.
      - id: window_descriptor
        type: u1
        valid:
          max: 0x88
        if: not is_single_segment
        doc: 5 bits of exponent, 3 of mantissa; 0x88 is 128 MiB.
      - id: rest
        size-eos: true
        doc: The size of the content, where it is given, then blocks, then the content checksum.
  content:
    doc: What a payload decompresses to.
    seq:
      - id: records
        type: record
        repeat: eos
  record:
    seq:
      - id: timestamp
        type: s8
        doc: Microseconds since 1970-01-01 00:00 UTC. Any value, in any order.
      - id: len_body
        type: u4
      - id: body
        size: len_body
        doc: The message itself, any bytes.
