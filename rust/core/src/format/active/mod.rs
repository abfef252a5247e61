//! The active format: an append-only segment, often preallocated.
//!
//! ```text
//! record:  uuid 16 ‖ type length u8 ‖ type ‖ value length u32 ‖ value ‖ checksum u64
//! segment: record* ‖ zero bytes to the end of the file
//! ```
//! Integers are unsigned and big-endian. UUIDs are version 6 (RFC 9562) in network byte order and ascend strictly; an
//! all-zero UUID begins the unused space. The checksum is HighwayHash-64 of every byte of the record before it.
//! `docs/formats/active.md` has the whole story, with what a reader does about damage.

mod encode;
mod group;
mod large;
mod resync;
mod rows;
mod salvage;
mod sequence;
mod settled;
mod suspects;
mod unhashed;
mod walk;
mod writer;

pub(super) use encode::encode_message;
pub use encode::{MAX_TYPE_BYTES, MAX_VALUE_BYTES, encode};
pub(crate) use rows::Stored;
pub(super) use sequence::Sequence;
pub(super) use unhashed::Unhashed;
pub(crate) use walk::ActiveWalk;
pub use writer::Writer;

use crate::checksum::hash;
use crate::cursor::Cursor;
use crate::engine::lookup::WalkingLookup;
use crate::engine::{Format, Likelihood, Options};
use crate::error::{Finding, Result};
use crate::record::Checked;
use crate::record::{Column, ColumnKind};
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};
use crate::uuid6;

/// The format's entry in the table.
pub static FORMAT: Format = Format {
    name: "active",
    extension: "active",
    checked: Checked::Checksum,
    has_plain_values: true,
    open_options: &["key"],
    create_options: &["key", "append", "preallocate", "zero_torn_tail"],
    columns: |_| COLUMNS,
    detect,
    walk: |source, options, start| Ok(Box::new(walk::ActiveWalk::open(source, options, start)?)),
    split: None,
    lookup: |source, options| Ok(Box::new(WalkingLookup::new(&FORMAT, source, options))),
    create: |path, options| Ok(Box::new(Writer::open(path, options)?)),
    salvage: salvage::salvage,
    suspects: |source, options| {
        let (source, options) = (source.clone(), options.clone());
        Ok(Some(Box::new(suspects::ActiveSuspects { source, options })))
    },
};

/// What records of active and sealed segments have.
pub(super) const COLUMNS: &[Column] = &[
    Column::new("uuid", ColumnKind::Uuid),
    Column::optional("timestamp", ColumnKind::Timestamp),
    Column::new("type", ColumnKind::Text),
    Column::new("value", ColumnKind::Binary),
];

const UUID_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 8;
/// UUID, type length, value length and checksum of a record with an empty type and value.
const MIN_RECORD_BYTES: u64 = 29;
/// The most that a header, UUID through value length, can take.
const MAX_HEADER_BYTES: usize = UUID_BYTES + 1 + MAX_TYPE_BYTES + 4;

/// A record's UUID and lengths: all that is known before its checksum is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    uuid: [u8; UUID_BYTES],
    type_len: u8,
    value_len: u32,
}

/// What stands where a record should begin.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Parsed {
    /// A record whose lengths fit in the file.
    Record(Header),
    /// Something whose lengths do not fit in the file.
    Bad(Finding),
    /// The header reaches beyond the bytes at hand, though not beyond the file.
    NeedMore,
}

impl Header {
    /// UUID, and how many bytes are hashed of the record that `bytes` begin with, where they are so many that the longest header
    /// ends in them: else [`parse`](Self::parse) tells.
    ///
    /// `type_len` is what the type's length is expected to be, and becomes what it is.
    #[inline(always)]
    fn peek<'a>(bytes: &'a [u8], type_len: &mut u8) -> Option<(&'a [u8; UUID_BYTES], usize)> {
        let bytes = bytes.first_chunk::<MAX_HEADER_BYTES>()?;
        // A branch, since a processor does not wait for what it predicts: it then knows where the value's length stands, and
        // from that where the next record begins, before it has the type's length.
        if bytes[UUID_BYTES] != *type_len {
            *type_len = unexpected(bytes[UUID_BYTES]);
        }
        let value_len_at = UUID_BYTES + 1 + usize::from(*type_len);
        let value_len = bytes.get(value_len_at..)?.first_chunk()?;
        let value_len = usize::try_from(u32::from_be_bytes(*value_len)).ok()?;
        let hashed = value_len.checked_add(value_len_at + 4)?;
        Some((bytes.first_chunk()?, hashed))
    }

    /// Parses what stands at the beginning of `bytes`; the file has `left` bytes from there on, `bytes` among them.
    fn parse(bytes: &[u8], left: u64) -> Parsed {
        let whole = bytes.len() as u64 >= left;
        let mut cursor = Cursor::new(bytes);
        let fields = (|| {
            let uuid = *cursor.array::<UUID_BYTES>()?;
            let type_len = cursor.u8()?;
            cursor.run(type_len.into())?;
            Some(Self {
                uuid,
                type_len,
                value_len: cursor.u32_be()?,
            })
        })();
        match fields {
            Some(header) if header.total() <= left => Parsed::Record(header),
            Some(header) => Parsed::Bad(Finding::TooLong {
                needed: header.total(),
                available: left,
            }),
            None if whole => {
                let type_len = bytes.get(UUID_BYTES).copied().unwrap_or_default();
                let needed = UUID_BYTES as u64 + 1 + u64::from(type_len) + 4;
                Parsed::Bad(Finding::Truncated {
                    needed,
                    available: left,
                })
            }
            None => Parsed::NeedMore,
        }
    }

    const fn value_start(&self) -> u64 {
        UUID_BYTES as u64 + 1 + self.type_len as u64 + 4
    }

    /// What the checksum is of: UUID through value.
    const fn hashed(&self) -> u64 {
        self.value_start() + self.value_len as u64
    }

    /// The whole record, checksum included.
    const fn total(&self) -> u64 {
        self.hashed() + CHECKSUM_BYTES as u64
    }
}

/// Keeps the compiler from seeing that it need not branch.
#[cold]
#[inline(never)]
const fn unexpected(type_len: u8) -> u8 {
    type_len
}

/// Whether the first record says that this is a segment: certainly by its checksum, likely by its UUID and lengths and by
/// what stands behind it, a greater UUID or unused space.
fn detect(source: &dyn Source, options: &Options) -> Result<Likelihood> {
    let len = source.len();
    let mut window = Window::default();
    let at_most = |bytes: usize| saturating_usize(len).min(bytes);
    window.load(source, 0, at_most(MAX_HEADER_BYTES), MAX_HEADER_BYTES)?;
    let Parsed::Record(header) = Header::parse(window.bytes(source, 0), len) else {
        return Ok(Likelihood::No);
    };
    if !uuid6::is_v6(&header.uuid) {
        return Ok(Likelihood::No);
    }
    let total = usize::try_from(header.total()).ok();
    if let Some(total) = total.filter(|total| *total <= options.window_bytes) {
        window.load(source, 0, total, total)?;
        let mut cursor = Cursor::new(window.bytes(source, 0));
        let body = cursor.run(total - CHECKSUM_BYTES).unwrap_or_default();
        let stored = cursor.u64_be();
        let checks = |key| stored == Some(hash(key, body));
        if options.keys.iter().any(checks) {
            let reason = "the first record's checksum is right".to_owned();
            return Ok(Likelihood::Certain(reason));
        }
    }
    let rest = saturating_usize(len - header.total());
    let mut next = Window::default();
    let want = rest.min(UUID_BYTES);
    next.load(source, header.total(), want, want)?;
    let next = next.bytes(source, header.total());
    let next = next.get(..want).unwrap_or_default();
    let fits = match next.first_chunk() {
        Some(uuid) => uuid6::is_v6(uuid) && *uuid > header.uuid || *uuid == [0; UUID_BYTES],
        None => next.iter().all(|byte| *byte == 0),
    };
    Ok(if fits {
        Likelihood::Likely("the first record's UUID and lengths fit".to_owned())
    } else {
        Likelihood::No
    })
}
