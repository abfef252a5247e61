meta:
  id: sealed
  title: Sealed segment, read-only and indexed by UUID
  file-extension: sealed
  license: Apache-2.0
  ks-version: "0.11"
  endian: be
  imports:
    - uuid6
doc: |
  An index sorted by UUID, the messages in the same order without gaps, and, unless the writer was asked to leave it
  out, a trailer of checksums. A reader that follows the index never meets the trailer.

  This is the layout of a sound file. These rules apply as well, and a parser made from this file does not
  check them: the UUIDs of the index ascend strictly; the first message is directly after the index, each other one
  directly after the one before, and the last ends where the trailer or the file ends; the trailer's hashes match.
doc-ref: sealed.md
seq:
  - id: index
    type: index_entry
    repeat: until
    repeat-until: _.is_terminator
    doc: An entry for each message, and the terminator, 24 zero bytes, as the last item.
instances:
  num_messages:
    value: index.size - 1
  len_trailer:
    value: 8 * num_messages + 32
    doc: How long the trailer of this many messages is, in bytes.
  ofs_trailer:
    value: >-
      num_messages == 0
      ? 24
      : index[num_messages - 1].ofs_message + index[num_messages - 1].message.len_message
    doc: Where the last message ends, from the beginning of the file.
  has_trailer:
    value: _io.size > ofs_trailer
    doc: Whether anything is after the last message. Damage to what is there is found as the page says.
  trailer:
    pos: ofs_trailer
    size: len_trailer
    type: trailer
    if: has_trailer
types:
  index_entry:
    doc: 24 bytes that say where a message is.
    seq:
      - id: uuid
        size: 16
        type: uuid6
        doc: The message's key and time, a UUID of version 6. All zero in the terminator.
      - id: ofs_message
        type: u8
        valid:
          expr: "_ == 0 ? uuid.is_zero : uuid.is_version_6"
        doc: Where the message begins, from the beginning of the file. Zero in the terminator.
    instances:
      is_terminator:
        value: uuid.is_zero and ofs_message == 0
      message:
        io: _root._io
        pos: ofs_message
        type: message
        if: not is_terminator
  message:
    doc: One message, `5 + len_type + len_value` bytes. Its UUID is in the index alone.
    seq:
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
    instances:
      len_message:
        value: 5 + len_type + len_value
  trailer:
    doc: Checksums after the data, `8 * N + 32` bytes for N messages.
    seq:
      - id: checksums
        type: u8
        repeat: expr
        repeat-expr: _root.num_messages
        doc: |
          For each message, in index order, the checksum that it has in an active segment: HighwayHash-64 of
          `uuid ‖ len_type ‖ type ‖ len_value ‖ value`, under the segment's key.
      - id: key_check
        type: u8
        doc: HighwayHash-64 of no bytes under the segment's key. Tells a wrong key from damage.
      - id: count
        type: u8
        valid: _root.num_messages
        doc: The number of messages.
      - id: index_hash
        type: u8
        doc: HighwayHash-64 of all bytes of the index, terminator included, followed by those of `checksums`.
      - id: magic
        contents: SLKSEAL1
