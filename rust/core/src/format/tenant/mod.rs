//! The tenant format: messages by partition, then by tenant, after a table of contents.
//!
//! ```text
//! segment:    magic "TSEG" ‖ version u16 ‖ table of contents ‖ partitions
//! partitions: number of partitions u32 ‖ (number of tenants u32 ‖ block*)*
//! block:      number of messages u32 ‖ tenant ID length u32 ‖ tenant ID ‖ (length u32 ‖ content)*
//!
//! version 1:  number of partitions u32 ‖ (partition ID u32 ‖ offset u64 ‖ length u64)*
//! version 2:  number of blocks u32 ‖ (partition ID u32 ‖ tenant ID length u32 ‖ tenant ID ‖ number of messages u32 ‖
//!             offset u64 ‖ length u64 ‖ block CRC-32 u32)* ‖ CRC-32 u32 of everything before it
//! ```
//! Integers are unsigned and big-endian. Partitions ascend by ID, tenants within them by the bytes of their ID. A
//! block's CRC-32 covers its partition's ID and its bytes. Version 1 has no checksums. `docs/formats/tenant.md`
//! describes the format and how readers handle damage.
//!
//! ```
//! use seglake::format::tenant::{self, Contents};
//! use seglake::{Options, Value};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("messages.tenant");
//!
//! // Columns: partition, tenant, index (which counts) and value.
//! let mut writer = seglake::create(&tenant::FORMAT, &path)?;
//! for tenant in ["alice", "bob"] {
//!     writer.write(&[7_i64.into(), tenant.into(), Value::Null, b"hello"[..].into()])?;
//! }
//! writer.close()?;
//!
//! let contents = Contents::read(seglake::open(&path)?.source(), &Options::default())?;
//! assert_eq!((contents.partitions(), contents.tenants()), (&[7][..], vec![&b"alice"[..], b"bob"]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! From the bottom up:
//! - `layout` (bytes to fields and back: headers, entries, tenant IDs, and the decoder of a block), `toc` (entries in
//!   turn), `probe` (reading, and examining places with bounded work), `front` (what comes before the data)
//! - `judge` (the rules)
//! - `claims` (the ledger of the data), `rows` and `emit` (messages), which `reading` combines
//! - the scans: `partitions` (version 1), `listed` and `unlisted` with `block_search` (version 2, with and without a
//!   sound table of contents); `listed` has also the one that reads only what matches
//! - `walk`, which chooses a scan. `explain` has its errors.
//! - `lookup`, with a list of verified blocks if the table of contents does not lead to the blocks
//! - `runs`, the writer's memory, and `contents`, the blocks of a segment

mod block_search;
mod candidates;
mod claims;
mod contents;
mod emit;
mod explain;
mod front;
mod judge;
mod layout;
mod listed;
mod lookup;
mod part;
mod partitions;
mod probe;
mod reading;
mod rows;
mod runs;
mod salvage;
mod toc;
mod unlisted;
mod walk;
mod writer;

pub use contents::Contents;
#[doc(hidden)]
pub use contents::{Block, blocks};
#[doc(hidden)]
pub use writer::Writer;

use crate::engine::{Format, Likelihood};
use crate::error::Result;
use crate::record::{Checked, Column, ColumnKind, Order};
use crate::source::{Source, read_array};
use crate::spec::settings::{FormatOption, OVERWRITES};
use crate::spec::{Applied, FirstUnit, Spec, Tail};
use crate::walk::Options;

/// The version that is written.
const VERSION: FormatOption =
    FormatOption::number("version", 2, [1, 2], "the version of the layout");

/// When messages are spilled.
const MEMORY_BYTES: FormatOption = FormatOption::bytes(
    "memory_bytes",
    64 << 20,
    [0, i64::MAX as u64],
    "how many bytes of messages are kept in memory before they are spilled to temporary files",
);

/// The format's entry in the table.
pub static FORMAT: Format = Format {
    spec: Spec {
        name: "tenant",
        extension: "tenant",
        identifier: &["partition", "tenant", "index"],
        checked: Checked::Checksum,
        has_plain_values: true,
        marks_damage: false,
        open_options: &[],
        create_options: &[OVERWRITES, VERSION, MEMORY_BYTES],
        applies: &[
            ("partition", Applied::Among),
            ("partition", Applied::Range),
            ("tenant", Applied::Among),
        ],
        family: "tenant",
        first_unit: FirstUnit::Bytes,
        tail: Tail::Complete,
        columns: |_| COLUMNS,
    },
    numbered: None,
    detect,
    walk: |source, options, opening| {
        Ok(Box::new(walk::TenantWalk::open(
            source,
            options,
            opening.begin,
        )?))
    },
    split: Some(part::split),
    index: None,
    lookup: |source, options| Ok(Box::new(lookup::TocLookup::open(source, options)?)),
    create: |path, options| Ok(Box::new(Writer::create(path, options)?)),
    unfinished: None,
    salvage: salvage::salvage,
    candidates: |source, options| {
        Ok(candidates::Tenant::open(source, options)?.map(|candidates| Box::new(candidates) as _))
    },
    stated: Some(candidates::stated),
};

const COLUMNS: &[Column] = &[
    Column::new("partition", ColumnKind::Int64),
    Column::new("tenant", ColumnKind::Text),
    Column::optional("index", ColumnKind::Int64).in_order(Order::Counting),
    Column::new("value", ColumnKind::Binary),
];

/// "TSEG".
const MAGIC: u32 = 0x5453_4547;
const VERSION_1: u16 = 1;
const VERSION_2: u16 = 2;
/// A longer table of contents is not read to detect the format.
const DETECT_BYTES: u64 = 1 << 20;

/// Whether the magic shows that this is a segment. A short table of contents with a matching CRC-32 makes it
/// certain.
fn detect(source: &dyn Source, options: &Options) -> Result<Likelihood> {
    if source.len() < toc::TOC_START {
        return Ok(Likelihood::No);
    }
    let head: [u8; 6] = read_array(source, 0)?;
    if head.first_chunk() != Some(&MAGIC.to_be_bytes()) {
        return Ok(Likelihood::No);
    }
    if head.ends_with(&VERSION_2.to_be_bytes()) {
        let front = front::Front::read(source, options, DETECT_BYTES)?;
        if front.is_sound() {
            let reason = "the CRC-32 of the table of contents matches".to_owned();
            return Ok(Likelihood::Certain(reason));
        }
    }
    Ok(Likelihood::Likely(
        "it begins with the magic TSEG".to_owned(),
    ))
}
