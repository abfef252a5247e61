//! The sealed format: a read-only segment with an index, made to be mapped.
//!
//! ```text
//! segment: (uuid 16 ‖ offset u64)* ‖ 24 zero bytes ‖ message* ‖ trailer, or nothing
//! message: type length u8 ‖ type ‖ value length u32 ‖ value
//! trailer: (checksum u64)* ‖ key check u64 ‖ count u64 ‖ index hash u64 ‖ "SLKSEAL1"
//! ```
//! Integers are unsigned and big-endian, offsets are relative to the beginning of the file. Entries ascend
//! strictly by UUID, which is of version 6 (RFC 9562), in network byte order. A checksum is HighwayHash-64 of an
//! entry's UUID and its message: the same checksum that the record has in an active segment.
//! `docs/formats/sealed.md` describes the format and how readers handle damage.
//!
//! From the bottom up:
//! - `layout`: bytes to fields. `index` and `trailer`, which `front` combines, with what the whole index proves.
//!   `locate` finds the trailer.
//! - `reader`: windows over all of that.
//! - `judge`: the rules. `check` reads what they need. `run` checks many messages at once; its answer is "all
//!   good" or unknown.
//! - `state`, `walk` and `ranges` (the ledger, and strict reading).
//! - `open` chooses the key and where a walk begins. `last` tells which record a segment ends with. `part` splits.
//! - `search`, `table` (where a search begins), `proof`, `group` (several look-ups in turns) and `lookup`.

mod candidates;
mod check;
mod detect;
mod front;
mod group;
mod index;
mod judge;
mod last;
mod layout;
mod locate;
mod lookup;
mod open;
mod part;
mod proof;
mod ranges;
mod reader;
mod rows;
mod run;
mod salvage;
mod search;
mod state;
mod table;
mod trailer;
mod walk;
mod writer;

pub use writer::Writer;

use super::active::COLUMNS;
use crate::engine::Format;
use crate::record::Checked;
use crate::spec::Applied;
use crate::spec::settings::{FormatOption, KEY, OVERWRITES};
use crate::spec::{FirstUnit, Spec, Tail};

/// The memory limit of the table that speeds up look-ups.
const LOOKUP_TABLE_BYTES: FormatOption = FormatOption::bytes(
    "lookup_table_bytes",
    16 << 20,
    [0, i64::MAX as u64],
    "the most memory that a table which makes look-ups faster may take while the file is open; 0 for none",
);

/// Whether checksums are written.
const TRAILER: FormatOption = FormatOption::flag(
    "trailer",
    true,
    "whether checksums are written after the data",
);

/// The format's entry in the table.
pub static FORMAT: Format = Format {
    spec: Spec {
        name: "sealed",
        extension: "sealed",
        identifier: &["uuid"],
        checked: Checked::Checksum,
        has_plain_values: true,
        marks_damage: false,
        open_options: &[KEY, LOOKUP_TABLE_BYTES],
        create_options: &[KEY, OVERWRITES, TRAILER],
        applies: &[
            ("uuid", Applied::Range),
            ("timestamp", Applied::Range),
            ("type", Applied::Among),
        ],
        family: "segment",
        first_unit: FirstUnit::Message,
        tail: Tail::Complete,
        columns: |_| COLUMNS,
    },
    numbered: Some(last::numbered),
    detect: detect::detect,
    walk: |source, options, opening| Ok(Box::new(open::walk(source, options, opening.begin)?)),
    split: Some(part::split),
    index: None,
    lookup: |source, options| Ok(Box::new(lookup::SealedLookup::open(source, options)?)),
    create: |path, options| Ok(Box::new(Writer::create(path, options)?)),
    unfinished: None,
    salvage: salvage::salvage,
    candidates: |source, options| {
        Ok(candidates::Sealed::open(source, options)?.map(|own| Box::new(own) as _))
    },
};
