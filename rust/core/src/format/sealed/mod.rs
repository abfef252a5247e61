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
//! ```
//! use seglake::format::active;
//! use seglake::verbs::{SealOptions, seal};
//! use seglake::{Options, RecordId};
//! # let folder = tempfile::tempdir()?;
//! # let (path, sealed) = (folder.path().join("orders.active"), folder.path().join("orders.sealed"));
//! # let mut writer = seglake::create(&active::FORMAT, &path)?;
//!
//! let uuid = seglake::uuid6::Generator::default().now();
//! writer.write(&[uuid.into(), seglake::Value::Null, "order.paid".into(), b"{}"[..].into()])?;
//! writer.close()?;
//!
//! // Each record keeps its checksum.
//! let source = seglake::open(&path)?.source();
//! seal(source, &Options::default(), &sealed, &SealOptions::default(), |_| Ok(()))?;
//! assert!(seglake::open(&sealed)?.get(&RecordId::from(uuid))?.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! From the bottom up:
//! - `layout`: bytes to fields. `trailer`, and `front`: the sections, and what the whole index proves.
//! - `reader`: windows over all of that.
//! - `judge`: the rules. `check` reads what they need, and checks many messages at once: their answer is "all good"
//!   or unknown.
//! - `walk` and `ranges` (the ledger, and strict reading).
//! - `open` finds the trailer, and chooses the key and where a walk begins. `part` splits.
//! - `search` (with the table that says where one begins), `proof`, `group` (several look-ups in turns) and `lookup`.

use front::{EntryCount, TERMINATOR, count_at_ends, final_magic};
use layout::{ENTRY_BYTES, Entry, Header, MAX_HEADER_BYTES};
use open::last_message;
use trailer::{Trailer, trailer_bytes};

use super::active::COLUMNS;
use crate::engine::{Format, Likelihood};
use crate::error::Result;
use crate::record::Checked;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window, read_array};
use crate::spec::settings::{FormatOption, KEY, OVERWRITES};
use crate::spec::{Applied, FirstUnit, Spec, Tail};
use crate::uuid6;
use crate::walk::Options;

#[doc(hidden)]
pub use writer::Writer;

mod candidates;
mod check;
mod front;
mod group;
mod judge;
mod layout;
mod lookup;
mod open;
mod part;
mod proof;
mod ranges;
mod reader;
mod rows;
mod salvage;
mod search;
mod trailer;
mod walk;
mod writer;

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
    numbered: Some(lookup::numbered),
    detect,
    walk: |source, options, opening| Ok(Box::new(open::walk(source, options, opening.begin)?)),
    split: Some(part::split),
    index: None,
    lookup: |source, options| Ok(Box::new(lookup::SealedLookup::open(source, options)?)),
    create: |path, options| Ok(Box::new(Writer::create(path, options)?)),
    unfinished: None,
    salvage: salvage::salvage,
    candidates: |source, options| {
        Ok(candidates::Sealed::open(source, options)?.map(|candidates| Box::new(candidates) as _))
    },
    stated: Some(candidates::stated),
};

/// The trailer's key check under one of the keys makes it certain. Its magic and count make it likely. Without a
/// trailer, entry 0 makes it likely if its offset is after a terminator and leads to a message.
fn detect(source: &dyn Source, options: &Options) -> Result<Likelihood> {
    if source.len() < ENTRY_BYTES as u64 {
        return Ok(Likelihood::No);
    }
    let (EntryCount::Count(count) | EntryCount::Unproven(count)) =
        count_at_ends(source, final_magic)?
    else {
        return Ok(Likelihood::No);
    };
    let data_start = (count + 1) * ENTRY_BYTES as u64;
    let after_last = last_message(source, count)?.map(|last| last.end);
    // A file without a trailer may end with that of a value.
    let at_end = match after_last == Some(source.len()) {
        true => None,
        false => source.len().checked_sub(trailer_bytes(count)),
    };
    let places = [after_last, at_end.filter(|start| *start >= data_start)];
    let mut is_under_another_key = false;
    for (start, key) in places
        .into_iter()
        .flatten()
        .flat_map(|start| options.keys.iter().map(move |key| (start, key)))
    {
        let trailer = Trailer::read(source, key, count, start)?;
        if trailer.key_check_is_right && (trailer.is_very_likely() || Some(start) == after_last) {
            let reason = "the key check of its trailer matches".to_owned();
            return Ok(Likelihood::Certain(reason));
        }
        is_under_another_key |= trailer.is_very_likely();
    }
    if is_under_another_key {
        let reason = "it has a trailer with the magic and the count of its entries".to_owned();
        return Ok(Likelihood::Likely(reason));
    }
    let first = Entry::parse(0, &read_array(source, 0)?);
    let terminator = read_array(source, data_start - ENTRY_BYTES as u64)?;
    let is_index = count > 0
        && uuid6::is_v6(&first.uuid)
        && first.offset == data_start
        && terminator == TERMINATOR;
    if !is_index {
        return Ok(Likelihood::No);
    }
    let left = source.len() - data_start;
    let len = saturating_usize(left).min(MAX_HEADER_BYTES);
    let mut window = Window::default();
    let header = Header::parse(window.exact(source, data_start, len, len)?, left);
    let reason = "the first entry of its index names a message after a terminator";
    Ok(match header {
        Ok(_) => Likelihood::Likely(reason.to_owned()),
        Err(_) => Likelihood::No,
    })
}
