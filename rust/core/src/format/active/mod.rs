//! The active format: an append-only segment, often preallocated.
//!
//! ```text
//! record:  uuid 16 ‖ type length u8 ‖ type ‖ value length u32 ‖ value ‖ checksum u64
//! segment: record* ‖ zero bytes to the end of the file
//! ```
//! Integers are unsigned and big-endian. UUIDs are version 6 (RFC 9562) in network byte order and ascend strictly.
//! A zero UUID begins the unused space. The checksum is HighwayHash-64 of all bytes of the record before it.
//! `docs/formats/active.md` describes the format and how readers handle damage.
//!
//! ```
//! use seglake::Value;
//! use seglake::format::active;
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("orders.active");
//!
//! // Columns: uuid, timestamp (which follows from it), type and value. Null makes a UUID of the present time.
//! let mut writer = seglake::create(&active::FORMAT, &path)?;
//! writer.write(&[Value::Null, Value::Null, "order.paid".into(), b"{}"[..].into()])?;
//! writer.close()?;
//! assert_eq!(seglake::open(&path)?.records().count(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `resync` finds where damage ends. Only this format has `group`, a fast path of the scan: records that are parsed, hashed and taken
//! together. `Sequence` and `Unhashed` of `writer` are shared with the writers of sealed segments.

use judge::{is_zero, key_of, record, sequence, version};
use layout::{MAX_HEADER_BYTES, UUID_BYTES};

use crate::engine::{Format, Likelihood, WalkingLookup};
use crate::error::Result;
use crate::ledger::Kind;
use crate::record::{Checked, Column, ColumnKind, Order};
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};
use crate::spec::settings::{APPENDS, FormatOption, KEY, ZERO_TORN_TAIL};
use crate::spec::{Applied, FirstUnit, Spec, Tail};
use crate::walk::{Begin, Options};

pub(crate) use group::Record;
pub(super) use layout::encode_message;
pub use layout::{MAX_TYPE_BYTES, MAX_VALUE_BYTES, encode};
pub(crate) use walk::ActiveWalk;
pub(super) use writer::Unhashed;
#[doc(hidden)]
pub use writer::Writer;
pub(crate) use writer::{Sequence, is_unfinished};

mod candidates;
mod group;
mod judge;
mod layout;
mod resync;
mod walk;
mod writer;

/// The length to which a new or opened file is filled with zeros.
const PREALLOCATE: FormatOption = FormatOption::bytes(
    "preallocate",
    0,
    [0, i64::MAX as u64],
    "the length to which the file is filled with zeros beforehand, so that appending need not grow it",
);

/// The format's entry in the table.
pub static FORMAT: Format = Format {
    spec: Spec {
        name: "active",
        extension: "active",
        identifier: &["uuid"],
        checked: Checked::Checksum,
        has_plain_values: true,
        marks_damage: false,
        open_options: &[KEY],
        create_options: &[KEY, APPENDS, PREALLOCATE, ZERO_TORN_TAIL],
        applies: &[
            ("uuid", Applied::Range),
            ("timestamp", Applied::Range),
            ("type", Applied::Among),
        ],
        family: "segment",
        first_unit: FirstUnit::Record,
        tail: Tail::Zeros,
        columns: |_| COLUMNS,
    },
    numbered: None,
    detect,
    walk: |source, options, opening| {
        Ok(Box::new(ActiveWalk::open(source, options, opening.begin)?))
    },
    split: None,
    index: None,
    lookup: |source, options| Ok(Box::new(WalkingLookup::new(&FORMAT, source, options))),
    create: |path, options| Ok(Box::new(Writer::open(path, options)?)),
    unfinished: Some(|source, options, tail| writer::is_unfinished(source, options, tail, None, 1)),
    salvage: |salvage| {
        // Copies the records one by one, and unused space as it is.
        let (source, options) = (salvage.source(), salvage.options());
        let mut walk = ActiveWalk::open(source, options, Begin::Beginning)?;
        salvage.carry_those(&mut walk, |span| {
            !span.is_damage() && span.kind != Kind::Pending
        })
    },
    candidates: |source, options| {
        let (source, options) = (source.clone(), options.clone());
        Ok(Some(Box::new(candidates::Active { source, options })))
    },
    stated: None,
};

/// The columns of active and sealed segments.
pub(super) const COLUMNS: &[Column] = &[
    Column::new("uuid", ColumnKind::Uuid).in_order(Order::Ascending),
    Column::optional("timestamp", ColumnKind::Timestamp),
    Column::new("type", ColumnKind::Text),
    Column::new("value", ColumnKind::Binary),
];

/// Whether the first record shows that this is a segment. Its checksum makes that certain. Its UUID and lengths
/// make it likely if a greater UUID or unused space follows.
fn detect(source: &dyn Source, options: &Options) -> Result<Likelihood> {
    let len = source.len();
    let mut window = Window::default();
    let front = saturating_usize(len).min(MAX_HEADER_BYTES);
    window.load(source, 0, front, MAX_HEADER_BYTES)?;
    let Some(header) = record(window.bytes(source, 0), len) else {
        return Ok(Likelihood::No);
    };
    if version(header.uuid).is_err() {
        return Ok(Likelihood::No);
    }
    let total = saturating_usize(header.total());
    if total <= options.window_bytes {
        window.load(source, 0, total, total)?;
        let hashed = header.split(window.bytes(source, 0));
        if hashed.is_some_and(|hashed| key_of(&options.keys, hashed).is_some()) {
            let reason = "the first record's checksum matches".to_owned();
            return Ok(Likelihood::Certain(reason));
        }
    }
    let want = saturating_usize(len - header.total()).min(UUID_BYTES);
    let mut next = Window::default();
    next.load(source, header.total(), want, want)?;
    let next = next.bytes(source, header.total());
    let ascends = |uuid: &[u8; UUID_BYTES]| sequence(*uuid, Some(header.uuid)).is_ok();
    Ok(
        if is_zero(next) || next.first_chunk().is_some_and(ascends) {
            Likelihood::Likely("the first record's UUID and lengths fit".to_owned())
        } else {
            Likelihood::No
        },
    )
}
