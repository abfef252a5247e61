meta:
  id: oplog
  title: Autobase oplog messages, in a file
  file-extension: oplog
  license: Apache-2.0
  ks-version: "0.11"
  endian: le
  imports:
    - autobase
    - compact_uint
doc: |
  A run of messages, each after its length. The file does not say in which dialect they are: the caller says so. A file
  of no bytes is sound; zeros are not unused space here.

  `draft` and `draft_1_1` are laid out below, `autobase` in a file of its own. The same messages may occur without
  a container, as the values of any other format: then read one as type `draft` or `draft_1_1`, or with `autobase.ksy`.

  A message has no checksum. A parser made from this file finds all damage that can be found, but for a reference of
  `draft_1_1` that points nowhere: resolving references needs all messages.
doc-ref: oplog.md
params:
  - id: dialect
    type: u1
    enum: dialect
    doc: How the messages are laid out.
seq:
  - id: buffers
    type: buffer
    repeat: eos
    doc: The messages in sequence. The first has seq 0, the next 1, and so on.
enums:
  dialect:
    0:
      id: draft
      doc: The source document's first layout. Each clock entry has its key.
    1:
      id: draft_1_1
      doc: The source document's key compression. A clock entry refers to a key of this or an earlier message.
    2:
      id: autobase
      doc: What the npm package `autobase` writes.
types:
  buffer:
    doc: A message after its length.
    seq:
      - id: len_message
        type: compact_uint
      - id: message
        size: len_message.value
        type:
          switch-on: _root.dialect
          cases:
            'dialect::draft': draft
            'dialect::draft_1_1': draft_1_1
            'dialect::autobase': autobase
  draft:
    doc: A message of dialect `draft`.
    seq:
      - id: system
        type: system
      - id: node
        type: node
      - id: trailing
        type: end_of_message
  draft_1_1:
    doc: A message of dialect `draft-1.1`.
    seq:
      - id: system
        type: system
      - id: node
        type: node_1_1
      - id: trailing
        type: end_of_message
  system:
    doc: What the indexer adds. It can be read alone where the node after it is encrypted.
    seq:
      - id: version
        type: compact_uint
        doc: The layout's version, not judged here.
      - id: checkpointer
        type: compact_uint
        doc: How many messages ago the last checkpoint was. 0 says that this message has one.
      - id: checkpoint
        type: checkpoint
        if: checkpointer.value == 0
  checkpoint:
    seq:
      - id: tree_hash
        size: 32
      - id: length
        type: compact_uint
  node:
    doc: What the writer appended, in dialect `draft`.
    seq:
      - id: num_clock
        type: compact_uint
        valid:
          expr: _.value <= 0x100000
      - id: clock
        type: clock_entry
        repeat: expr
        repeat-expr: num_clock.value
      - id: rest
        type: node_value
  clock_entry:
    doc: How much of another writer's log this message has seen.
    seq:
      - id: key
        size: 32
      - id: length
        type: compact_uint
  node_1_1:
    doc: What the writer appended, in dialect `draft-1.1`.
    seq:
      - id: num_clock
        type: compact_uint
        valid:
          expr: _.value <= 0x100000
      - id: clock
        type: clock_reference
        repeat: expr
        repeat-expr: num_clock.value
      - id: rest
        type: node_value
      - id: num_keys
        type: compact_uint
        valid:
          expr: _.value <= 0x100000
      - id: keys
        size: 32
        repeat: expr
        repeat-expr: num_keys.value
        doc: The keys that this message is the first to use, in the order of their first use in the clock.
  clock_reference:
    doc: |
      How much of another writer's log this message has seen. The writer's key is `keys[offset]` of message `seq`.
    seq:
      - id: seq
        type: compact_uint
        doc: The message that has the key, this one or an earlier one. One to a later message points nowhere.
      - id: offset
        type: compact_uint
        doc: Which of that message's keys it is, from 0.
      - id: length
        type: compact_uint
  node_value:
    doc: The fields after the clock, which both drafts have.
    seq:
      - id: abi
        type: compact_uint
      - id: batch
        type: compact_uint
      - id: len_value
        type: compact_uint
      - id: value
        size: len_value.value
        doc: The message itself, any bytes.
  end_of_message:
    doc: Nothing. A byte left over after the last field is damage.
    seq:
      - id: bytes
        size-eos: true
        valid:
          expr: _.length == 0
