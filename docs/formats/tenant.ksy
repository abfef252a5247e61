meta:
  id: tenant
  title: Tenant segment, messages by partition and tenant
  file-extension: tenant
  license: Apache-2.0
  ks-version: "0.11"
  endian: be
doc: |
  A table of contents (TOC), then all partitions: in each its tenants, and of each tenant a block of messages. The two
  versions differ in the TOC alone: version 1 lists partitions, version 2 lists blocks and has checksums.

  This is the layout of a sound file. These rules apply as well, and a parser made from this file does not
  check them: partitions ascend by ID, and the tenants of a partition byte by byte; the TOC lists exactly what is in
  `partitions`, in the same order; the partitions end where the file ends; the CRCs are right. In version 1 the ID of a
  partition is in the TOC alone.
doc-ref: tenant.md
seq:
  - id: magic
    contents: TSEG
  - id: version
    type: u2
    valid:
      any-of: [1, 2]
  - id: toc
    type:
      switch-on: version
      cases:
        1: toc_of_partitions
        2: toc_of_blocks
  - id: num_partitions
    type: u4
    doc: Version 2 cannot name a partition that has no tenants, so its writers refuse one.
  - id: partitions
    type: partition
    repeat: expr
    repeat-expr: num_partitions
types:
  toc_of_partitions:
    doc: The TOC of version 1.
    seq:
      - id: num_entries
        type: u4
        doc: The number of partitions.
      - id: entries
        type: partition_entry
        repeat: expr
        repeat-expr: num_entries
  partition_entry:
    doc: Where a partition is.
    seq:
      - id: partition_id
        type: u4
      - id: ofs_partition
        type: u8
        doc: Where the partition's number of tenants is, from the beginning of the file.
      - id: len_partition
        type: u8
        doc: From there to the partition's end, in bytes.
    instances:
      partition:
        io: _root._io
        pos: ofs_partition
        size: len_partition
        type: partition
        doc: The partition, found without reading what is before it.
  toc_of_blocks:
    doc: The TOC of version 2.
    seq:
      - id: num_entries
        type: u4
        doc: The number of blocks.
      - id: entries
        type: block_entry
        repeat: expr
        repeat-expr: num_entries
      - id: crc
        type: u4
        doc: CRC-32 (IEEE) of everything before it, from the magic to the last entry.
  block_entry:
    doc: Where a tenant's block is.
    seq:
      - id: partition_id
        type: u4
      - id: len_tenant_id
        type: u4
      - id: tenant_id
        size: len_tenant_id
      - id: num_messages
        type: u4
      - id: ofs_block
        type: u8
        doc: Where the block's number of messages is, from the beginning of the file.
      - id: len_block
        type: u8
        doc: From there to the block's end, in bytes.
      - id: block_crc
        type: u4
        doc: CRC-32 (IEEE) of the partition ID, as the 4 bytes before this entry's tenant, and the block's bytes.
    instances:
      block:
        io: _root._io
        pos: ofs_block
        size: len_block
        type: block
        doc: The block, found without reading what is before it.
  partition:
    doc: All tenants of one partition.
    seq:
      - id: num_tenants
        type: u4
      - id: tenants
        type: block
        repeat: expr
        repeat-expr: num_tenants
  block:
    doc: All messages of one tenant of one partition.
    seq:
      - id: num_messages
        type: u4
      - id: len_tenant_id
        type: u4
      - id: tenant_id
        size: len_tenant_id
        doc: Usually text, but any bytes are allowed.
      - id: messages
        type: message
        repeat: expr
        repeat-expr: num_messages
  message:
    seq:
      - id: len_content
        type: u4
      - id: content
        size: len_content
        doc: The message itself, any bytes.
