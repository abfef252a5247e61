//! A sixth format, which is not shipped: the example of `docs/adding-a-format.md`. It needs the feature
//! `example-format`.
//!
//! ```text
//! file:    record*
//! record:  length u32 ‖ time i64 ‖ shard u16 ‖ sequence u64 ‖ level u8 ‖ checksum u32 ‖ body
//! ```
//! Integers are big-endian. `length` is the length of the body in bytes, `time` is microseconds since 1970-01-01
//! UTC, and the checksum is the CRC-32 (ISO-HDLC) of the fields before it and of the body. Files are appended to.
//! A record is identified by its shard and sequence. Nothing has to ascend.
//!
//! `layout` has the fields, `judge` the checks in their order, `walk` the scan and `resync` the search for the end
//! of damage. `rows` turns records into columns, `writer` appends, and `candidates` explains damage to `verify`.

mod candidates;
mod judge;
mod layout;
mod resync;
mod rows;
mod walk;
mod writer;

use walk::ShardedWalk;
pub(crate) use writer::Writer;

use crate::engine::growth::{FirstUnit, Growing, Tail};
use crate::engine::lookup::WalkingLookup;
use crate::engine::settings::{APPENDS, FormatOption, ZERO_TORN_TAIL};
use crate::engine::{Format, Likelihood, Start};
use crate::record::{Checked, Column, ColumnKind};

/// The maximum body. Without it a false length shows only after the whole body is read.
const BODY_BYTES: FormatOption = FormatOption::bytes(
    "body_bytes",
    u32::MAX as u64,
    [0, u32::MAX as u64],
    "the most bytes that a body may have: a longer one is damage, and is not written",
);

/// The format's entry in the table.
pub(crate) static FORMAT: Format = Format {
    name: "sharded",
    extension: "sharded",
    identifier: &["shard", "sequence"],
    checked: Checked::Checksum,
    has_plain_values: true,
    marks_damage: false,
    open_options: &[BODY_BYTES],
    create_options: &[APPENDS, ZERO_TORN_TAIL, BODY_BYTES],
    applies: &[],
    growing: Growing {
        family: "sharded",
        first: FirstUnit::Bytes,
        tail: Tail::Zeros,
        numbered: None,
    },
    columns: |_| COLUMNS,
    detect: |source, options| {
        Ok(match judge::first_is_sound(source, options)? {
            true => Likelihood::Certain("the first record's CRC-32 matches".to_owned()),
            false => Likelihood::No,
        })
    },
    walk: |source, options, start| Ok(Box::new(ShardedWalk::open(source, options, start)?)),
    split: None,
    unit_before: None,
    index: None,
    lookup: |source, options| Ok(Box::new(WalkingLookup::new(&FORMAT, source, options))),
    create: |path, options| Ok(Box::new(Writer::open(path, options)?)),
    unfinished: Some(|_, _, tail| Ok(writer::is_unfinished(tail))),
    salvage: |salvage| {
        let (source, options) = (salvage.source(), salvage.options());
        let mut walk = ShardedWalk::open(source, options, Start::Beginning)?;
        salvage.carry_sound(&mut walk)
    },
    candidates: |source, _| {
        let source = source.clone();
        Ok(Some(Box::new(candidates::Sharded { source })))
    },
};

/// The columns of a record.
const COLUMNS: &[Column] = &[
    Column::new("timestamp", ColumnKind::Timestamp),
    Column::new("shard", ColumnKind::Int64),
    Column::new("sequence", ColumnKind::UInt64),
    Column::new("level", ColumnKind::Int64),
    Column::new("value", ColumnKind::Binary),
];
