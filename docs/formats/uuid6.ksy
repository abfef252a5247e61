meta:
  id: uuid6
  title: UUID version 6
  license: Apache-2.0
  ks-version: "0.11"
  endian: be
  bit-endian: be
doc: |
  A UUID of version 6 (RFC 9562) in network byte order, 16 bytes: the key of the formats `active` and `sealed`.

  It begins with its time, most significant bits first, so UUIDs sort by time when they are compared byte by byte. The
  time is a number of 60 bits, in steps of 100 ns since 1582-10-15 00:00 UTC:

      ticks = time_high * 2^28 + time_mid * 2^12 + time_low

  In microseconds since 1970-01-01 00:00 UTC that is `(ticks - 0x01b21dd213814000) / 10`, rounded down. (Neither is an
  instance below, since in some target languages expressions are computed in 32 bits.)

  This type reads any 16 bytes; whether they are such a UUID is `is_version_6`.
doc-ref: RFC 9562, section 5.6
seq:
  - id: time_high
    type: b32
    doc: Bits 59 to 28 of the time.
  - id: time_mid
    type: b16
    doc: Bits 27 to 12 of the time.
  - id: version
    type: b4
    doc: 6 in every UUID that these formats accept.
  - id: time_low
    type: b12
    doc: Bits 11 to 0 of the time.
  - id: variant
    type: b2
    doc: Binary 10 in every UUID that these formats accept.
  - id: clock_sequence
    type: b14
    doc: Any value.
  - id: node
    type: b48
    doc: Any value.
instances:
  is_zero:
    value: >-
      time_high == 0 and time_mid == 0 and version == 0 and time_low == 0 and variant == 0 and clock_sequence == 0
      and node == 0
    doc: Whether all 16 bytes are zero, as where the unused space of an active segment begins.
  is_version_6:
    value: version == 6 and variant == 2
    doc: Whether the bytes are a UUID of version 6, variant 10.
