//! How to read: one set of options for all formats, each of which takes what concerns it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Eof, Format};
use crate::checksum::Key;
use crate::error::{Error, Result};
use crate::record::Column;
use crate::source::Source;
use crate::uuid6;

/// Asked now and then during long work; `true` stops it with [`Error::Interrupted`].
#[derive(Clone)]
pub struct Interrupt(pub Arc<dyn Fn() -> bool + Send + Sync>);

impl Interrupt {
    /// One that stops once this is true.
    pub(crate) fn once(stopped: &Arc<AtomicBool>) -> Self {
        let stopped = stopped.clone();
        Self(Arc::new(move || stopped.load(Ordering::Acquire)))
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt")
    }
}

/// An end of a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bound {
    /// Microseconds since 1970-01-01 UTC.
    Micros(i64),
    /// A version-6 UUID in network byte order, for formats whose records have one.
    Uuid([u8; 16]),
}

/// Which records are wanted. What is `None` lets everything through, ranges are half-open. The others are checked and in the
/// ledger all the same, up to where none that is wanted can follow, but for [`Options::prune`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The least time or UUID. Formats with `uuid` or `timestamp`.
    pub since: Option<Bound>,
    /// The least time or UUID that is not wanted any more.
    pub until: Option<Bound>,
    /// Message offsets, of which there are none from 2^63 on. Formats with `offset`.
    pub offsets: Option<Range<u64>>,
    /// Partition IDs. Formats with `partition`.
    pub partitions: Option<Vec<u32>>,
    /// Tenant IDs as bytes. Formats with `tenant`.
    pub tenants: Option<Vec<Vec<u8>>>,
    /// Record types as bytes. Formats with `type`.
    pub types: Option<Vec<Vec<u8>>>,
}

impl Wanted {
    /// Whether no record of any file can be wanted: what is asked for contradicts itself.
    #[must_use]
    pub fn is_contradictory(&self) -> bool {
        let times = match (self.since, self.until) {
            (Some(Bound::Micros(since)), Some(Bound::Micros(until))) => since >= until,
            (Some(_), Some(_)) => UuidBounds::of(self).is_empty(),
            // Records without UUIDs have times in front of all that those can have.
            _ => false,
        };
        times
            || self.offsets.as_ref().is_some_and(Range::is_empty)
            || self.partitions.as_ref().is_some_and(Vec::is_empty)
            || self.tenants.as_ref().is_some_and(Vec::is_empty)
            || self.types.as_ref().is_some_and(Vec::is_empty)
    }

    /// Refuses what records of these columns do not have.
    pub(crate) fn check(&self, format: &Format, columns: &[Column]) -> Result<()> {
        let has = |name: &str| columns.iter().any(|column| column.name == name);
        let by_uuid = [self.since, self.until]
            .iter()
            .any(|bound| matches!(bound, Some(Bound::Uuid(_))));
        let by_time = self.since.is_some() || self.until.is_some();
        let asked = [
            ("since and until", "timestamp", by_time),
            ("a UUID as since or until", "uuid", by_uuid),
            ("offsets", "offset", self.offsets.is_some()),
            ("partitions", "partition", self.partitions.is_some()),
            ("tenants", "tenant", self.tenants.is_some()),
            ("types", "type", self.types.is_some()),
        ];
        match asked
            .iter()
            .find(|(_, column, asked)| *asked && !has(column))
        {
            Some((what, column, _)) => Err(Error::Usage(format!(
                "{what} cannot be had of {} records: they have no {column}",
                format.name
            ))),
            None => Ok(()),
        }
    }
}

/// [`Wanted::since`] and [`Wanted::until`] as UUIDs, compared as bytes, which is by time first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UuidBounds {
    since: Option<[u8; 16]>,
    until: Option<[u8; 16]>,
}

impl UuidBounds {
    pub(crate) fn of(wanted: &Wanted) -> Self {
        let least = |bound| match bound {
            Bound::Micros(micros) => uuid6::lower_bound(micros),
            Bound::Uuid(uuid) => Some(uuid),
        };
        // Behind the last time that a UUID can have there is none: nothing is since then, and all is until then.
        Self {
            since: wanted.since.map(|bound| least(bound).unwrap_or([0xff; 16])),
            until: wanted.until.and_then(least),
        }
    }

    /// The least UUID that is wanted, if there is one.
    pub(crate) const fn since(&self) -> Option<[u8; 16]> {
        self.since
    }

    /// Whether `uuid` is wanted.
    pub(crate) fn contains(&self, uuid: &[u8; 16]) -> bool {
        self.since.is_none_or(|since| *uuid >= since) && !self.is_past(uuid)
    }

    /// Whether neither `uuid` nor any greater one is wanted.
    pub(crate) fn is_past(&self, uuid: &[u8; 16]) -> bool {
        self.until.is_some_and(|until| *uuid >= until)
    }

    /// Whether none is wanted.
    fn is_empty(&self) -> bool {
        let since = self.since.unwrap_or([0; 16]); // the least of all
        self.until.is_some_and(|until| since >= until)
    }
}

/// [`Wanted::types`], to ask whether a record's is among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Types(Option<Box<[Vec<u8>]>>);

impl Types {
    pub(crate) fn of(wanted: &Wanted) -> Self {
        let sorted = |types: &Vec<Vec<u8>>| {
            let mut sorted = types.clone();
            sorted.sort_unstable();
            sorted.into()
        };
        Self(wanted.types.as_ref().map(sorted))
    }

    /// Whether all types are wanted.
    pub(crate) const fn are_all(&self) -> bool {
        self.0.is_none()
    }

    /// Whether this type is wanted.
    pub(crate) fn contain(&self, type_: &[u8]) -> bool {
        let is_among = |types: &[Vec<u8>]| {
            types
                .binary_search_by(|own| own.as_slice().cmp(type_))
                .is_ok()
        };
        self.0.as_deref().is_none_or(is_among)
    }
}

/// How the messages of an oplog are laid out. The bytes do not tell: the caller says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// The published draft.
    #[default]
    Draft,
    /// The draft with its key compression.
    Draft11,
    /// What the npm package `autobase` writes.
    Autobase,
}

impl Dialect {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Draft, Self::Draft11, Self::Autobase];

    /// The name that callers use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Draft11 => "draft-1.1",
            Self::Autobase => "autobase",
        }
    }

    /// The dialect of this name.
    ///
    /// # Errors
    /// [`Error::Usage`] where there is none.
    pub fn by_name(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|dialect| dialect.as_str() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|dialect| dialect.as_str()).collect();
            Error::Usage(format!(
                "there is no dialect {name:?}: it is one of {}",
                names.join(", ")
            ))
        })
    }
}

/// Where the index of a chunked segment is.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum IndexSource {
    /// In the file beside the segment, of the same name with the extension `index`, if there is one.
    #[default]
    Beside,
    /// Nowhere: chunks are found by their headers.
    None,
    /// Here.
    Source(Arc<dyn Source>),
}

impl fmt::Debug for IndexSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Beside => "Beside",
            Self::None => "None",
            Self::Source(_) => "Source(..)",
        })
    }
}

/// How to read. The same for all formats; each takes what concerns it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The format; `None` finds it by content and extension.
    pub format: Option<&'static Format>,
    /// The keys to try. The first under which any record checks is the file's key.
    pub keys: Vec<Key>,
    /// How an oplog's messages are laid out.
    pub dialect: Dialect,
    /// Where a chunked segment's index is. It only makes looking up faster.
    pub index: IndexSource,
    /// Stop at damage with [`Error::Damage`], instead of entering it in the ledger and going on.
    pub strict: bool,
    /// Which records are wanted.
    pub wanted: Wanted,
    /// Whether to read no more of the file than wanted records can be in, instead of going through all of it. The records are the
    /// same; but the ledger is of what was read, and damage elsewhere goes unnoticed, also by whoever reads strictly. An index or
    /// table of contents is gone by if it is proven, as in [looking up](super::Lookup::range); where it is not, or something that
    /// is wanted is not where it says, all of the file is read.
    pub prune: bool,
    /// Whether bodies are wanted. If not, they may read as empty.
    pub values: bool,
    /// How the end of the file is meant.
    pub eof: Eof,
    /// How much is read at once, in bytes. Any size gives the same records and ledger.
    pub window_bytes: usize,
    /// The largest record to give out, in bytes; a larger one is an [`Error::Limit`]. Not a limit of verifying.
    pub max_record_bytes: u64,
    /// A chunk whose content has at most this many bytes is decoded into a buffer; a larger one is verified in one pass and
    /// given out in a second.
    pub max_chunk_bytes: u64,
    /// A chunk whose content has more bytes than this is an [`Error::Limit`].
    pub limit_chunk_bytes: u64,
    /// The most memory that a look-up may take, for as long as it lives, for a table that makes it faster, in bytes: sealed.
    /// 0 for none.
    pub lookup_table_bytes: usize,
    /// Asked now and then whether to stop.
    pub interrupt: Option<Interrupt>,
}

impl Options {
    /// What `max_record_bytes` is by default, and at most for Arrow: 2^31-1 bytes, the most that a `binary` value holds.
    pub const MAX_RECORD_BYTES: u64 = 0x7fff_ffff;
    /// What `max_chunk_bytes` is by default: 64 MiB.
    pub const MAX_CHUNK_BYTES: u64 = 64 << 20;
    /// What `limit_chunk_bytes` is by default: 1 GiB.
    pub const LIMIT_CHUNK_BYTES: u64 = 1 << 30;
    /// What `lookup_table_bytes` is by default: 16 MiB.
    pub const LOOKUP_TABLE_BYTES: usize = 16 << 20;

    /// Asks whether to stop.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if so.
    pub(crate) fn poll(&self) -> Result<()> {
        match &self.interrupt {
            Some(interrupt) if (interrupt.0)() => Err(Error::Interrupted),
            _ => Ok(()),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: None,
            keys: vec![Key::DEFAULT],
            dialect: Dialect::default(),
            index: IndexSource::default(),
            strict: true,
            wanted: Wanted::default(),
            prune: false,
            values: true,
            eof: Eof::Final,
            window_bytes: 1 << 20,
            max_record_bytes: Self::MAX_RECORD_BYTES,
            max_chunk_bytes: Self::MAX_CHUNK_BYTES,
            limit_chunk_bytes: Self::LIMIT_CHUNK_BYTES,
            lookup_table_bytes: Self::LOOKUP_TABLE_BYTES,
            interrupt: None,
        }
    }
}
