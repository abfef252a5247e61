//! What makes a format: its names, its columns, and functions to recognise, walk, search and write its files.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::candidate::Candidates;
use super::confirmed::{ConfirmedLookup, Confirming};
use super::empty::EmptyWalk;
use super::filter::Applied;
use super::filtered::Filtering;
use super::growth::Growing;
use super::lookup::Guarded;
use super::part::PlannedPart;
use super::pending::{self, Pending};
use super::salvage::SalvageFile;
use super::settings::{FormatOption, OptionKind};
use super::{Lookup, Options, Salvage, Start, Walk, WriteOptions, Writer};
use crate::error::Result;
use crate::ledger::Span;
use crate::record::{Checked, Column, ColumnKind};
use crate::source::Source;

/// A format of the table: its names, its columns, and functions to recognise, walk, search and write its files.
pub struct Format {
    /// The name that callers use.
    pub name: &'static str,
    /// The usual file extension, without the dot.
    pub extension: &'static str,
    /// The names of the [columns](Self::columns) that one record is found by, or `position`, where it begins.
    pub identifier: &'static [&'static str],
    /// The strongest check that its records can have. [`Walk::checked`] says how those of one file are checked.
    pub checked: Checked,
    /// Whether values lie in the file unchanged, so that views can point there.
    pub has_plain_values: bool,
    /// Whether a record may be emitted although a part of it is damaged. Its cause then says which.
    pub marks_damage: bool,
    /// The options for reading that only some formats have, this one among them.
    pub open_options: &'static [FormatOption],
    /// The options for writing that this format has.
    pub create_options: &'static [FormatOption],
    /// The conditions of a [`Filter`](super::Filter) that its walks apply by themselves, by column. Other conditions
    /// are applied to the rows of the walk.
    pub(crate) applies: &'static [(&'static str, Applied)],
    /// How its files grow, and what identifies one.
    pub(crate) growing: Growing,
    pub(crate) columns: fn(&Options) -> &'static [Column],
    pub(crate) detect: fn(&dyn Source, &Options) -> Result<Likelihood>,
    pub(crate) walk: OpenWalk,
    pub(crate) split: Option<SplitFile>,
    pub(crate) index: Option<&'static IndexFile>,
    pub(crate) lookup: OpenLookup,
    pub(crate) create: Create,
    /// Whether a torn tail is one unit that was not written to its end, which a writer may remove. `None` for files written whole.
    pub(crate) unfinished: Option<Unfinished>,
    pub(crate) salvage: SalvageFile,
    pub(crate) candidates: OpenCandidates,
}

/// Where a record begins, which identifies it in formats whose records have nothing else.
static POSITION: Column = Column::new("position", ColumnKind::Int64);

pub(crate) type OpenWalk = fn(Arc<dyn Source>, &Options, Start<'_>) -> Result<Box<dyn Walk>>;
type SplitFile = fn(&Arc<dyn Source>, &Options, u64) -> Result<Vec<PlannedPart>>;
type OpenLookup = fn(Arc<dyn Source>, &Options) -> Result<Box<dyn Lookup>>;
type OpenCandidates = fn(&Arc<dyn Source>, &Options) -> Result<Option<Box<dyn Candidates>>>;
pub(crate) type Unfinished = fn(&dyn Source, &Options, &Span) -> Result<bool>;
type Create = fn(&Path, &WriteOptions) -> Result<Box<dyn Writer>>;

impl Format {
    /// Writes the sound parts of a damaged file to a new one of this format.
    ///
    /// # Errors
    /// - [`Error::Usage`](crate::Error::Usage) if the remaining bytes would change their meaning.
    /// - [`Error::Io`](crate::Error::Io) if the new file cannot be written.
    /// - Those of [`open`](Self::open) and [`Walk::step`].
    pub(crate) fn salvage(&self, salvage: &mut Salvage<'_>) -> Result<()> {
        (self.salvage)(salvage)
    }

    /// The columns of a record, in display order. Those of an oplog depend on [`Options::dialect`].
    #[must_use]
    pub fn columns(&self, options: &Options) -> &'static [Column] {
        (self.columns)(options)
    }

    /// The extension of the index beside a file, without the dot; `None` for formats without such an index.
    #[must_use]
    pub fn index_extension(&self) -> Option<&'static str> {
        self.index.map(|index| index.extension)
    }

    /// Whether it has an option of this name for reading.
    #[must_use]
    pub fn reads_with(&self, name: &str) -> bool {
        self.open_options.iter().any(|option| option.name == name)
    }

    /// Whether it has an option of this name for writing.
    #[must_use]
    pub fn writes_with(&self, name: &str) -> bool {
        self.create_options.iter().any(|option| option.name == name)
    }

    /// Whether records can be appended to its files. Otherwise files are written whole.
    #[must_use]
    pub fn is_appended_to(&self) -> bool {
        self.if_exists().contains(&"append")
    }

    /// What can be done with a file that exists already: the names of [`IfExists`](super::IfExists).
    pub(crate) fn if_exists(&self) -> &'static [&'static str] {
        let mut own = self.create_options.iter();
        match own
            .find(|option| option.name == "if_exists")
            .map(|option| option.kind)
        {
            Some(OptionKind::Name(choices)) => choices,
            _ => &["error"],
        }
    }

    /// Whether its files can be read in parts: see [`split`](crate::format::split).
    #[must_use]
    pub const fn is_splittable(&self) -> bool {
        self.split.is_some()
    }

    /// The columns that identify a record, in the order of [`identifier`](Self::identifier).
    pub fn identifying(&self, options: &Options) -> impl Iterator<Item = &'static Column> {
        let columns = self.columns(options);
        let places = self.identifying_places(options).into_iter();
        places.map(|place| columns.get(place).unwrap_or(&POSITION))
    }

    /// The places of the identifying columns among all columns. The position, which is none of them, comes after the last one.
    pub(crate) fn identifying_places(&self, options: &Options) -> Vec<usize> {
        let columns = self.columns(options);
        let place = |name: &&str| {
            let own = columns.iter().position(|own| own.name == *name);
            own.or((*name == POSITION.name).then_some(columns.len()))
        };
        self.identifier.iter().filter_map(place).collect()
    }
}

impl Format {
    /// How likely a file is of this format.
    pub(crate) fn likelihood(&self, source: &dyn Source, options: &Options) -> Result<Likelihood> {
        (self.detect)(source, options)
    }

    /// Finds candidates for what damaged ranges of a file were. Returns `None` if the file has no checksums to verify
    /// them with.
    pub(crate) fn candidates(
        &self,
        source: &Arc<dyn Source>,
        options: &Options,
    ) -> Result<Option<Box<dyn Candidates>>> {
        (self.candidates)(source, options)
    }
}

impl Format {
    /// Opens a walk of a file of this format, as [`open`](crate::format::open) does.
    pub(crate) fn open(
        &self,
        source: Arc<dyn Source>,
        options: &Options,
        start: Start<'_>,
    ) -> Result<Box<dyn Walk>> {
        match start {
            Start::Growth(growth) => growth.walk(self, source, options),
            start => match pending::growing(self, &*source, options, &start)? {
                Some(growing) => {
                    let (open, own) = ((self.walk, self.unfinished), source.clone());
                    self.open_around(source, &growing, start, |walk, options| {
                        Pending::around(walk, open, own, options)
                    })
                }
                None => self.open_around(source, options, start, |walk, _| walk),
            },
        }
    }

    /// The same, of what `around` makes of the format's own walk with the options that it was opened with.
    pub(crate) fn open_around(
        &self,
        source: Arc<dyn Source>,
        options: &Options,
        start: Start<'_>,
        around: impl FnOnce(Box<dyn Walk>, &Options) -> Box<dyn Walk>,
    ) -> Result<Box<dyn Walk>> {
        let columns = self.columns(options);
        let rest = options.filter.rest(self, columns)?;
        if let Some(parity) = &options.parity {
            parity.check_source(&*source)?;
        }
        let start = match start {
            Start::Part(part) => {
                part.check(self, &*source, options)?;
                if part.is_whole() {
                    Start::Beginning
                } else {
                    start
                }
            }
            start => start,
        };
        if options.prune && options.filter.is_contradictory() {
            return Ok(Box::new(EmptyWalk::new(self, &*source)));
        }
        let with_values;
        let options = if !options.values && rest.needs_values(columns) {
            with_values = options.clone().values(true);
            &with_values
        } else {
            options
        };
        let prunes = options.prune && !options.filter.is_empty();
        let is_whole = !prunes && matches!(start, Start::Beginning);
        let walk = if prunes && matches!(start, Start::Beginning) {
            (self.lookup)(source.clone(), options)?.range(&options.filter)?
        } else {
            (self.walk)(source.clone(), options, start)?
        };
        let walk = Filtering::around(around(walk, options), rest);
        let walk = match &options.parity {
            Some(parity) => parity.clone().watch(walk, options, is_whole),
            None => walk,
        };
        Ok(if source.is_replaceable() {
            Confirming::around(walk, source)
        } else {
            walk
        })
    }

    /// Opens a look-up of a file of this format, as [`lookup`](crate::format::lookup) does.
    pub(crate) fn look_up(
        &'static self,
        source: Arc<dyn Source>,
        options: &Options,
    ) -> Result<Box<dyn Lookup>> {
        options.filter.check(self, self.columns(options))?;
        if let Some(parity) = &options.parity {
            parity.check_source(&*source)?;
        }
        let own = (self.lookup)(source.clone(), options)?;
        let own = match &options.parity {
            Some(parity) => parity.clone().watch_lookup(own, options),
            None => own,
        };
        let lookup = if source.is_replaceable() {
            Box::new(ConfirmedLookup {
                lookup: own,
                source,
            })
        } else {
            own
        };
        Ok(Box::new(Guarded {
            format: self,
            identifier: self.identifying(options).collect(),
            options: options.clone(),
            lookup,
        }))
    }

    /// A walk that reads nothing.
    #[cfg(feature = "arrow")]
    pub(crate) fn empty_walk(&self, source: &dyn Source) -> Box<dyn Walk> {
        Box::new(EmptyWalk::new(self, source))
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

/// An index file that lies beside a file and is made from that file alone.
pub(crate) struct IndexFile {
    /// Its extension, without the dot.
    pub(crate) extension: &'static str,
    /// The path of a file's index; `None` if the file itself has an index's name.
    pub(crate) beside: fn(&Path) -> Option<PathBuf>,
    /// Whether the options name an index for a file, and it exists.
    pub(crate) is_there: fn(&dyn Source, &Options) -> Result<bool>,
    /// The offset of the last unit that it names after the end of the file's data, if there is one.
    pub(crate) beyond: fn(&dyn Source, &Options) -> Result<Option<u64>>,
    /// Builds the index of a file and hands out its bytes in pieces.
    pub(crate) build: BuildIndex,
}

type BuildIndex = fn(Arc<dyn Source>, &Options, &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;

/// How likely a file is of a format, from its content alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likelihood {
    /// Its content does not fit.
    No,
    /// Its structure fits.
    Likely(String),
    /// A checksum matches.
    Certain(String),
}
