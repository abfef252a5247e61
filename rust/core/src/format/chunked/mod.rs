//! The chunked format: a log of zstd chunks of timestamped records, and a sparse index beside it.
//!
//! ```text
//! chunk:   flags u8 ‖ length u32 ‖ start offset i64 ‖ record length u32 ‖ head crc i32 ‖ payload ‖ zero padding to 0x80
//! payload: one zstd frame with content checksum, of record*
//! record:  timestamp i64 ‖ length u32 ‖ body
//! ```
//! Integers are big-endian. `length` is the payload's bytes, `record length` the number of records. Record i has
//! the message offset `start offset + i`. head crc is CRC-32 (IEEE) of the 17 bytes before it. flags are 0.
//! Timestamps are microseconds since 1970-01-01 UTC, in any order. Chunks begin at multiples of 0x80, and their
//! start offsets ascend, with or without gaps. A zero header followed by zeros to the end is unused space.
//! [`Index`] is the index. `docs/formats/chunked.md` describes the format and how readers handle damage.
//!
//! ```
//! use seglake::Value;
//! use seglake::format::{WriteOptions, chunked, create};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("events.chunked");
//!
//! // Columns: offset (which counts), timestamp and value.
//! let mut writer = create(&chunked::FORMAT, &path, &WriteOptions::default().set("level", 3))?;
//! let noon = Value::Timestamp(1_700_000_000_000_000);
//! writer.write(&[Value::Null, noon, b"started"[..].into()])?;
//! writer.close()?;
//! assert_eq!(seglake::open(&path)?.records().count(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! From the bottom up: `layout` (bytes to fields), `judge` (the rules), `hop` (headers alone, and parts), `payload`
//! (content and records), `resync` (where damage ends), `walk` and `start`. Then `index`, `lookup`, `candidates`,
//! and `writer`, for which `index` repairs an index to append to.

use judge::{Fault, Head};
use layout::{ALIGNMENT, HEADER_BYTES};
use walk::ChunkedScan;

use crate::compress;
use crate::engine::{Format, IndexFile, Likelihood, Salvage};
use crate::error::Result;
use crate::ledger::{Cause, Kind};
use crate::record::{Checked, Column, ColumnKind, Order};
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};
use crate::spec::settings::{APPENDS, FormatOption, OptionKind, ZERO_TORN_TAIL};
use crate::spec::{Applied, FirstUnit, Spec, Tail};
use crate::walk::{Begin, Options, Step, Walk};

pub(crate) use index::beyond;
#[doc(hidden)]
pub use index::{INDEX_EXTENSION, Index, beside, build_index};
#[doc(hidden)]
pub use layout::{ITEM_BYTES, Item};
#[doc(hidden)]
pub use writer::Writer;

mod candidates;
mod hop;
mod index;
mod judge;
mod layout;
mod lookup;
mod payload;
mod resync;
mod start;
mod walk;
mod writer;

/// The path of the index.
const INDEX: FormatOption = FormatOption {
    name: "index",
    kind: OptionKind::Index,
    about: "where the index is; it only makes looking up faster",
};

/// The maximum content of a chunk, which is decoded into memory: a few bytes can claim much.
const MAX_CHUNK_BYTES: usize = 256 << 20;

/// Which chunks are decoded at all.
const LIMIT_BYTES: FormatOption = FormatOption::bytes(
    "chunk_bytes",
    MAX_CHUNK_BYTES as u64,
    [0, i64::MAX as u64],
    "a chunk with more content than this is an error",
);

/// When a chunk is closed. Larger chunks make files hardly smaller, and lose more when damaged.
const CHUNK_BYTES: FormatOption = FormatOption::bytes(
    "chunk_bytes",
    256 << 10,
    // Twice as much may be in a chunk.
    [1, MAX_CHUNK_BYTES as u64 / 2],
    "a chunk is closed when its records have this many bytes before compression",
);

/// When a chunk is closed.
const CHUNK_RECORDS: FormatOption = FormatOption::number(
    "chunk_records",
    65_536,
    [1, u32::MAX as i64],
    "a chunk is closed when it has this many records",
);

/// The compression level. For typical log records, higher levels take longer and save hardly any bytes.
const LEVEL: FormatOption =
    FormatOption::number("level", 1, [-131_072, 22], "the zstd compression level");

/// Whether the index is written.
const WITH_INDEX: FormatOption = FormatOption::flag(
    "index",
    true,
    "whether the index is written beside the file",
);

/// The format's entry in the table.
pub static FORMAT: Format = Format {
    spec: Spec {
        name: "chunked",
        extension: "chunks",
        identifier: &["offset"],
        checked: Checked::Checksum,
        has_plain_values: false,
        marks_damage: false,
        open_options: &[INDEX, LIMIT_BYTES],
        create_options: &[
            APPENDS,
            ZERO_TORN_TAIL,
            CHUNK_BYTES,
            CHUNK_RECORDS,
            LEVEL,
            WITH_INDEX,
        ],
        applies: &[("offset", Applied::Range), ("timestamp", Applied::Range)],
        family: "chunked",
        first_unit: FirstUnit::Bytes,
        tail: Tail::Zeros,
        columns: |_| COLUMNS,
    },
    numbered: None,
    detect,
    walk: |source, options, opening| {
        Ok(Box::new(
            ChunkedScan::open(source, options, opening)?.into_walk(),
        ))
    },
    split: Some(hop::split),
    index: Some(&INDEX_FILE),
    lookup: |source, options| Ok(Box::new(lookup::ChunkedLookup::new(source, options))),
    create: |path, options| Ok(Box::new(Writer::open(path, options)?)),
    unfinished: Some(writer::is_unfinished),
    salvage,
    candidates: |source, options| {
        let (source, options) = (source.clone(), options.clone());
        Ok(Some(Box::new(candidates::Chunked { source, options })))
    },
    stated: Some(index::stated),
};

/// The index beside a segment.
static INDEX_FILE: IndexFile = IndexFile {
    extension: INDEX_EXTENSION,
    beside,
    is_there: index::has_index,
    build: |log, options, put| {
        build_index(log, options, |item| put(&item.encode()))?;
        Ok(())
    },
};

const COLUMNS: &[Column] = &[
    Column::optional("offset", ColumnKind::Int64).in_order(Order::Ascending),
    Column::new("timestamp", ColumnKind::Timestamp),
    Column::new("value", ColumnKind::Binary),
];

/// How many bytes are searched for another header if the first one fails.
const DETECT_BYTES: usize = 64 << 10;

/// Whether a header shows that this is a segment. A first header makes it certain, a later one likely. A damaged
/// first header that is followed by a zstd frame makes it likely too.
fn detect(source: &dyn Source, _: &Options) -> Result<Likelihood> {
    let len = source.len();
    let want = saturating_usize(len).min(DETECT_BYTES);
    let mut window = Window::default();
    let bytes = window.exact(source, 0, want, want)?;
    let first = judge::structure(0, bytes, len);
    if first.verified().is_some() {
        let reason = "the first chunk header's CRC-32 matches".to_owned();
        return Ok(Likelihood::Certain(reason));
    }
    let rest = bytes.get(HEADER_BYTES..);
    if matches!(first, Head::Bad(Fault::HeaderChecksum { .. }))
        && rest.is_some_and(|rest| rest.starts_with(&compress::MAGIC))
    {
        let reason = "a zstd frame is where the first chunk's payload should be".to_owned();
        return Ok(Likelihood::Likely(reason));
    }
    let places = (0..want).step_by(resync::ALIGNMENT_BYTES);
    let mut found = places.filter(|place| {
        let header = bytes.get(*place..place + HEADER_BYTES);
        header.and_then(judge::verified).is_some()
    });
    Ok(match found.next() {
        Some(place) => Likelihood::Likely(format!(
            "at offset {place} there is a chunk header whose CRC-32 matches"
        )),
        None => Likelihood::No,
    })
}

fn salvage(salvage: &mut Salvage<'_>) -> Result<()> {
    let (source, options) = (salvage.source(), salvage.options());
    let mut walk = ChunkedScan::open(source, options, Begin::Beginning)?.into_walk();
    let mut is_behind_chunk = false;
    while walk.step()? == Step::More {
        for span in walk.spans() {
            match (span.kind, span.cause) {
                (Kind::Chunk | Kind::Unused, None) => salvage.carry(span.start..span.end)?,
                // Zeros in place of a lost chunk would be damage, so they are left out.
                (Kind::Padding, None) if is_behind_chunk => salvage.carry(span.start..span.end)?,
                (_, Some(Cause::NonzeroPadding)) if is_behind_chunk => {
                    // Less than the alignment.
                    let len = saturating_usize(span.len().min(ALIGNMENT));
                    salvage.put(&vec![0; len], None)?;
                }
                _ => {}
            }
            is_behind_chunk = span.kind == Kind::Chunk;
        }
    }
    Ok(())
}
