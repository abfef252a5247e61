meta:
  id: active
  title: Active segment, an append-only message log
  file-extension: active
  license: Apache-2.0
  ks-version: "0.11"
  endian: be
  imports:
    - uuid6
doc: |
  A run of messages, then zeros to the end of the file, which may have been laid out in advance. There is no header, no
  index and no trailer; a file of no bytes is sound.

  This is the layout of a sound file. These rules apply as well, and a parser made from this file does not
  check them: each `checksum` is right, and each UUID is strictly greater, byte by byte, than the one before.
doc-ref: active.md
seq:
  - id: parts
    type: part
    repeat: eos
    doc: The messages in the order they were written, and after the last the unused space, where there is any.
types:
  part:
    doc: A message, or the unused space at the end.
    seq:
      - id: message
        type: message
        if: not is_unused
      - id: unused
        type: u1
        valid: 0
        repeat: eos
        if: is_unused
        doc: Zeros to the end of the file, any number of them, also fewer than 16.
    instances:
      uuid_ahead:
        pos: _io.pos
        size: 16
        type: uuid6
        if: _io.size - _io.pos >= 16
        doc: The next UUID, read ahead.
      is_unused:
        value: "_io.size - _io.pos < 16 ? true : uuid_ahead.is_zero"
        doc: Whether the unused space begins here, as it does with a UUID that is all zero.
  message:
    doc: One record, `29 + len_type + len_value` bytes.
    seq:
      - id: uuid
        size: 16
        type: uuid6
        valid:
          expr: _.is_version_6
        doc: The record's key, and its time.
      - id: len_type
        type: u1
      - id: type
        size: len_type
        doc: What kind of message it is. Usually text, but any bytes are allowed.
      - id: len_value
        type: u4
      - id: value
        size: len_value
        doc: The message itself, any bytes.
      - id: checksum
        type: u8
        doc: |
          HighwayHash-64 of all bytes of this message before it, from the first of `uuid` to the last of `value`. The
          key is 32 bytes, by default all zero, which the hash reads as four little-endian integers of 64 bits.
