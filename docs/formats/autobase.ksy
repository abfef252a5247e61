meta:
  id: autobase
  title: Oplog message of the npm package autobase
  license: Apache-2.0
  ks-version: "0.11"
  endian: le
  imports:
    - compact_uint
doc: |
  One message as `autobase` 6.0.0-rc3 to 7.28 writes it, versions 0 to 2. It has no length of its own: it is a whole
  block of a core, or a whole buffer of an `.oplog` file, decrypted.
doc-ref: oplog.md
seq:
  - id: version
    type: compact_uint
    valid:
      expr: _.value <= 2
  - id: body
    type:
      switch-on: layout
      cases:
        'layout::version_0': version_0
        'layout::version_1': version_1
        'layout::version_2': version_2
instances:
  layout:
    value: version.value
    enum: layout
    doc: Which of the layouts below it is.
enums:
  layout:
    0: version_0
    1: version_1
    2: version_2
types:
  version_2:
    doc: Written by 7.10 and later.
    seq:
      - id: node
        type: node
      - id: flags
        type: compact_uint
        doc: 1 checkpoint, 2 digest, 4 optimistic (which has no bytes), 8 trace. Other bits are ignored, and kept.
      - id: checkpoint_frame
        type: checkpoint_frame
        if: flags.value & 1 != 0
      - id: digest_frame
        type: digest_frame
        if: flags.value & 2 != 0
      - id: trace_frame
        type: trace_frame
        if: flags.value & 8 != 0
      - id: extra
        size-eos: true
        doc: Fields of a later revision. Not an error.
    instances:
      is_optimistic:
        value: flags.value & 4 != 0
  checkpoint_frame:
    doc: A checkpoint after its length. Bytes left over inside belong to a later revision.
    seq:
      - id: len_checkpoint
        type: compact_uint
      - id: checkpoint
        size: len_checkpoint.value
        type: checkpoint
  digest_frame:
    doc: A digest after its length. Bytes left over inside belong to a later revision.
    seq:
      - id: len_digest
        type: compact_uint
      - id: digest
        size: len_digest.value
        type: digest
  trace_frame:
    doc: A trace after its length. Bytes left over inside belong to a later revision.
    seq:
      - id: len_trace
        type: compact_uint
      - id: trace
        size: len_trace.value
        type: trace
  checkpoint:
    seq:
      - id: flags
        type: compact_uint
        doc: 1 system, 2 encryption, 4 user.
      - id: system
        type: checkpointer
        if: flags.value & 1 != 0
      - id: encryption
        type: checkpointer
        if: flags.value & 2 != 0
      - id: num_user
        type: compact_uint
        valid:
          expr: _.value <= 0x100000
        if: flags.value & 4 != 0
      - id: user
        type: checkpointer
        repeat: expr
        repeat-expr: num_user.value
        if: flags.value & 4 != 0
        doc: One for each user view. Absent and empty are two different things.
  checkpointer:
    seq:
      - id: flags
        type: u1
        doc: 1 checkpointer, 2 checkpoint.
      - id: checkpointer
        type: compact_uint
        if: flags & 1 != 0
        doc: How many messages ago the last checkpoint was. Absent means 0.
      - id: checkpoint
        type: index_checkpoint
        if: flags & 2 != 0
  digest:
    seq:
      - id: flags
        type: compact_uint
        doc: 1 pointer, 2 key.
      - id: pointer
        type: compact_uint
        if: flags.value & 1 != 0
        doc: How many messages ago the digest was last given. Absent means 0.
      - id: key
        size: 32
        if: flags.value & 2 != 0
  trace:
    seq:
      - id: system
        type: uint_array
      - id: encryption
        type: uint_array
      - id: num_user
        type: compact_uint
        valid:
          expr: _.value <= 0x100000
      - id: user
        type: view_trace
        repeat: expr
        repeat-expr: num_user.value
  view_trace:
    seq:
      - id: view
        type: compact_uint
      - id: blocks
        type: uint_array
  uint_array:
    seq:
      - id: num_items
        type: compact_uint
        valid:
          expr: _.value <= 0x100000
      - id: items
        type: compact_uint
        repeat: expr
        repeat-expr: num_items.value
  version_1:
    doc: Written by 6.0.0-rc10 to 7.6.
    seq:
      - id: max_supported_version
        type: compact_uint
      - id: flags
        type: compact_uint
        doc: 1 checkpoint and digest, 2 optimistic.
      - id: checkpoint
        type: old_checkpoint
        if: flags.value & 1 != 0
      - id: digest
        type: old_digest
        if: flags.value & 1 != 0
      - id: node
        type: node
      - id: trailing
        type: end_of_message
    instances:
      is_optimistic:
        value: flags.value & 2 != 0
  version_0:
    doc: Written by 6.0.0-rc3.
    seq:
      - id: flags
        type: compact_uint
        doc: 1 digest and checkpoint.
      - id: digest
        type: oldest_digest
        if: flags.value & 1 != 0
        doc: Read for its length alone; the package drops it.
      - id: checkpoint
        type: old_checkpoint
        if: flags.value & 1 != 0
      - id: node
        type: node
      - id: additional
        type: additional
        doc: Read for its length alone; the package drops it.
      - id: max_supported_version
        type: compact_uint
        if: not _io.eof
        doc: Absent means 0.
      - id: trailing
        type: end_of_message
  old_checkpoint:
    seq:
      - id: num_checkpointers
        type: compact_uint
        valid:
          expr: _.value <= 0x100000
      - id: checkpointers
        type: old_checkpointer
        repeat: expr
        repeat-expr: num_checkpointers.value
        doc: The first is the system's, the others are those of the user views. There may be none at all.
  old_checkpointer:
    seq:
      - id: checkpointer
        type: compact_uint
        doc: How many messages ago the last checkpoint was. 0 says that one follows.
      - id: checkpoint
        type: index_checkpoint
        if: checkpointer.value == 0
  old_digest:
    seq:
      - id: pointer
        type: compact_uint
        doc: How many messages ago the digest was last given. 0 says that it follows.
      - id: key
        size: 32
        if: pointer.value == 0
  oldest_digest:
    seq:
      - id: pointer
        type: compact_uint
        doc: How many messages ago the digest was last given. 0 says that it follows.
      - id: num_indexers
        type: compact_uint
        valid:
          expr: _.value <= 0x100000
        if: pointer.value == 0
      - id: indexers
        type: indexer
        repeat: expr
        repeat-expr: num_indexers.value
        if: pointer.value == 0
  indexer:
    seq:
      - id: signature
        type: compact_uint
      - id: namespace
        size: 32
      - id: public_key
        size: 32
  additional:
    seq:
      - id: pointer
        type: compact_uint
        doc: How many messages ago the fields below were last given. 0 says that they follow.
      - id: flags
        type: compact_uint
        if: pointer.value == 0
        doc: 1 encryption ID, 2 ABI.
      - id: encryption_id
        size: 32
        if: "pointer.value == 0 ? flags.value & 1 != 0 : false"
      - id: abi
        type: compact_uint
        if: "pointer.value == 0 ? flags.value & 2 != 0 : false"
  node:
    doc: What the writer appended.
    seq:
      - id: num_heads
        type: compact_uint
        valid:
          expr: _.value <= 0x100000
      - id: heads
        type: head
        repeat: expr
        repeat-expr: num_heads.value
      - id: batch
        type: compact_uint
      - id: len_value
        type: compact_uint
      - id: value
        size: len_value.value
        doc: The message itself. Of length 0 it is none.
  head:
    doc: How much of a writer's log this message has seen.
    seq:
      - id: key
        size: 32
      - id: length
        type: compact_uint
  index_checkpoint:
    seq:
      - id: signature
        size: 64
        doc: Opaque.
      - id: length
        type: compact_uint
  end_of_message:
    doc: Nothing. A byte left over after the last field is damage.
    seq:
      - id: bytes
        size-eos: true
        valid:
          expr: _.length == 0
