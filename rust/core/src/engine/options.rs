//! How to read: one set of options for all formats, each of which takes what concerns it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Eof, Filter, Format};
use crate::checksum::Key;
use crate::error::{Error, Result};
use crate::setters::setters;
use crate::source::Source;

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
#[non_exhaustive]
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
    /// Which records to give.
    pub filter: Filter,
    /// Whether to read no more of the file than the records that the filter lets through can be in, instead of going through all
    /// of it. The records are the same; but the ledger is of what was read, and damage elsewhere goes unnoticed, also by whoever
    /// reads strictly. An index or table of contents is gone by if it is proven, as in [looking up](super::Lookup::range); where
    /// it is not, or something that is wanted is not where it says, all of the file is read.
    pub prune: bool,
    /// Whether bodies are wanted. If not, they may read as empty.
    pub values: bool,
    /// How the end of the file is meant.
    pub eof: Eof,
    /// How much is read at once, in bytes. Any size gives the same records and ledger.
    pub window_bytes: usize,
    /// The largest record to give out, in bytes; a larger one is an [`Error::Limit`], also if only conditions that its format does
    /// not apply by itself would leave it out. Not a limit of verifying.
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

setters!(Options {
    format: Option<&'static Format>, from;
    keys: Vec<Key>;
    dialect: Dialect;
    index: IndexSource;
    strict: bool;
    filter: Filter;
    prune: bool;
    values: bool;
    eof: Eof;
    window_bytes: usize;
    max_record_bytes: u64;
    max_chunk_bytes: u64;
    limit_chunk_bytes: u64;
    lookup_table_bytes: usize;
    interrupt: Option<Interrupt>, from;
});

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
            filter: Filter::default(),
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
