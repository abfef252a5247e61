//! What every format provides, and the table of formats.

pub mod active;
pub mod chunked;
mod confirmed;
mod detect;
mod lookup;
mod nothing;
pub mod oplog;
mod options;
mod part;
mod salvage;
pub mod sealed;
pub(crate) mod suspect;
pub mod tenant;
mod walk;
mod writer;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

pub use detect::{Detection, Likelihood, detect, resolve};
pub use lookup::{Hits, Lookup};
pub use options::{Bound, Dialect, IndexSource, Interrupt, Options, Wanted};
pub(crate) use options::{Types, UuidBounds};
pub(crate) use part::part_bytes;
pub use part::{Part, split};
pub(crate) use salvage::{Carried, Run, Runs, Salvage, each_piece};
pub use walk::{Carry, Eof, Start, Step, Walk};
pub use writer::{WriteOptions, Writer};

use crate::error::{Error, Result};
pub use crate::record::{Column, ColumnKind, Found, RecordId, Room, Rows, Value};
use crate::source::Source;

/// A format of the table: its names, its columns, and how to recognise, walk, search and write it.
pub struct Format {
    /// The name that callers use.
    pub name: &'static str,
    /// The usual file extension, without the dot.
    pub extension: &'static str,
    /// How records are checked at best; [`Walk::checked`] says how those of one file are.
    pub checked: Checked,
    /// Whether values lie in the file as they are, so that they can be viewed there.
    pub has_plain_values: bool,
    /// The reading options that concern only some formats, and this one among them.
    pub open_options: &'static [&'static str],
    /// The [`WriteOptions`] that concern this format.
    pub create_options: &'static [&'static str],
    columns: fn(&Options) -> &'static [Column],
    detect: fn(&dyn Source, &Options) -> Result<Likelihood>,
    walk: OpenWalk,
    split: Option<SplitFile>,
    lookup: OpenLookup,
    create: Create,
    salvage: salvage::SalvageFile,
    suspects: OpenSuspects,
}

type OpenWalk = fn(Arc<dyn Source>, &Options, Start<'_>) -> Result<Box<dyn Walk>>;
type SplitFile = fn(&Arc<dyn Source>, &Options, u64) -> Result<Vec<part::Portion>>;
type OpenLookup = fn(Arc<dyn Source>, &Options) -> Result<Box<dyn Lookup>>;
type OpenSuspects = fn(&Arc<dyn Source>, &Options) -> Result<Option<Box<dyn suspect::Suspects>>>;
type Create = fn(&Path, &WriteOptions) -> Result<Box<dyn Writer>>;

impl Format {
    /// Writes what is good of a damaged file to a new one of this format.
    ///
    /// # Errors
    /// [`Error::Usage`] where what is left would no longer mean what it does; as [`open`] and [`Walk::step`];
    /// [`Error::Io`] where the new file cannot be written.
    pub(crate) fn salvage(&self, salvage: &mut Salvage<'_>) -> Result<()> {
        (self.salvage)(salvage)
    }

    /// What a record has, in the order in which it is shown. An oplog's depend on [`Options::dialect`].
    #[must_use]
    pub fn columns(&self, options: &Options) -> &'static [Column] {
        (self.columns)(options)
    }
}

impl Format {
    /// How likely a file is of this format.
    pub(crate) fn likelihood(&self, source: &dyn Source, options: &Options) -> Result<Likelihood> {
        (self.detect)(source, options)
    }

    /// Finds what damaged ranges of a file may have been; `None` where the file has no checksums, so that nothing would tell.
    pub(crate) fn suspects(
        &self,
        source: &Arc<dyn Source>,
        options: &Options,
    ) -> Result<Option<Box<dyn suspect::Suspects>>> {
        (self.suspects)(source, options)
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// All formats.
pub static FORMATS: &[&Format] = &[
    &active::FORMAT,
    &sealed::FORMAT,
    &tenant::FORMAT,
    &chunked::FORMAT,
    &oplog::FORMAT,
];

/// How records are known to be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// Each by a checksum.
    Checksum,
    /// By nothing but that lengths and offsets fit.
    Structure,
}

impl Checked {
    /// The word that reports use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Checksum => "checksum",
            Self::Structure => "structure",
        }
    }
}

/// The format of this name.
///
/// # Errors
/// [`Error::Usage`] where there is none.
pub fn by_name(name: &str) -> Result<&'static Format> {
    FORMATS
        .iter()
        .copied()
        .find(|format| format.name == name)
        .ok_or_else(|| {
            let names: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
            Error::Usage(format!(
                "there is no format {name:?}: it is one of {}",
                names.join(", ")
            ))
        })
}

/// Begins to walk a file.
///
/// # Errors
/// [`Error::Format`] where the format cannot be told; [`Error::Usage`] where the start is none of this file, or records are
/// wanted by what they do not have; [`Error::Io`].
pub fn open(source: Arc<dyn Source>, options: &Options, start: Start<'_>) -> Result<Box<dyn Walk>> {
    let format = resolve(&*source, options)?;
    options.wanted.check(format, format.columns(options))?;
    let start = match start {
        Start::Part(part) => {
            part.check(format, &*source, options)?;
            if part.is_whole() {
                Start::Beginning
            } else {
                start
            }
        }
        start => start,
    };
    if options.prune && options.wanted.is_contradictory() {
        return Ok(Box::new(nothing::Nothing::new(format, &*source)));
    }
    let prunes = options.prune && options.wanted != Wanted::default();
    let walk = if prunes && matches!(start, Start::Beginning) {
        (format.lookup)(source.clone(), options)?.range(&options.wanted)?
    } else {
        (format.walk)(source.clone(), options, start)?
    };
    Ok(if source.is_replaceable() {
        Box::new(confirmed::ConfirmedWalk { walk, source })
    } else {
        walk
    })
}

/// A walk that reads nothing.
#[cfg(feature = "arrow")]
pub(crate) fn nothing(format: &Format, source: &dyn Source) -> Box<dyn Walk> {
    Box::new(nothing::Nothing::new(format, source))
}

/// Begins to look up records of a file.
///
/// # Errors
/// As [`open`].
pub fn lookup(source: Arc<dyn Source>, options: &Options) -> Result<Box<dyn Lookup>> {
    let format = resolve(&*source, options)?;
    options.wanted.check(format, format.columns(options))?;
    let own = (format.lookup)(source.clone(), options)?;
    let lookup = if source.is_replaceable() {
        Box::new(confirmed::ConfirmedLookup {
            lookup: own,
            source,
        })
    } else {
        own
    };
    Ok(Box::new(lookup::Guarded {
        format,
        options: options.clone(),
        lookup,
    }))
}

/// Creates a file of this format, or opens one to append to.
///
/// # Errors
/// [`Error::Io`] where the file exists and is neither to be appended to nor overwritten, is being written to by another
/// writer, or cannot be opened; [`Error::Damage`] where an existing file cannot be appended to; [`Error::Usage`].
pub fn create(format: &Format, path: &Path, options: &WriteOptions) -> Result<Box<dyn Writer>> {
    (format.create)(path, options)
}
