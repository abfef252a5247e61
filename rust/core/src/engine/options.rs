//! How to read: one set of options for all formats, each of which takes what concerns it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::settings::{FormatOption, Setting, Settings};
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

    /// Their names.
    pub const NAMES: &[&str] = &[
        Self::Draft.as_str(),
        Self::Draft11.as_str(),
        Self::Autobase.as_str(),
    ];

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
            let names = Self::NAMES.join(", ");
            Error::Usage(format!(
                "there is no dialect {name:?}: it is one of {names}"
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

/// How to read: what concerns all formats, and what some of them declare in [`Format::open_options`], which [`set`](Self::set)
/// sets by name. Each takes what concerns it.
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
    pub record_bytes: u64,
    /// Asked now and then whether to stop.
    pub interrupt: Option<Interrupt>,
    settings: Settings,
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
    record_bytes: u64;
    interrupt: Option<Interrupt>, from;
});

impl Options {
    /// What `record_bytes` is by default, and at most for Arrow: 2^31-1 bytes, the most that a `binary` value holds.
    pub const RECORD_BYTES: u64 = 0x7fff_ffff;

    /// These options, with this value of one that formats declare.
    #[must_use]
    pub fn set(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Setting>) -> Self {
        self.settings.set(name.into(), value.into());
        self
    }

    /// Refuses values that options of a format do not take, and what no format declares. What concerns other formats is passed
    /// over, so that files of several are read with the same options.
    pub(crate) fn check(&self, format: &Format, all: &[&Format]) -> Result<()> {
        self.settings.check(format.open_options)?;
        let declared = |name: &str| all.iter().any(|format| format.reads_with(name));
        match self.settings.names().find(|name| !declared(name)) {
            Some(name) => Err(Error::Usage(format!(
                "there is no option {name} for reading"
            ))),
            None => Ok(()),
        }
    }

    pub(crate) fn bytes(&self, option: &FormatOption) -> u64 {
        self.settings.bytes(option)
    }

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
            record_bytes: Self::RECORD_BYTES,
            interrupt: None,
            settings: Settings::default(),
        }
    }
}
