//! What makes a format: what is known of it without a file, and functions to recognise, walk, search and write its files.
//! And what all formats share of these: the one opener, growths, salvaging and appending.

pub(crate) mod append;
pub(crate) mod candidate;
pub(crate) mod growth;
mod open;
pub(crate) mod position;
pub(crate) mod salvage;
mod walking_lookup;
pub(crate) mod writer;

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use candidate::Candidates;
use position::Numbered;
use salvage::SalvageFile;

use crate::error::Result;
use crate::ledger::Span;
use crate::source::Source;
use crate::spec::Spec;
use crate::walk::part::PlannedPart;
use crate::walk::{Lookup, Opening, Options, Walk};

pub use growth::Growth;
pub use open::Start;
pub use position::{Identity, Position};
pub(crate) use salvage::{Fill, Salvage, each_piece};
pub(crate) use walking_lookup::WalkingLookup;
pub use writer::{IfExists, WriteOptions, Writer};

/// A format of the table: its [`Spec`], and functions to recognise, walk, search and write its files.
pub struct Format {
    pub(crate) spec: Spec,
    /// Of files that are written whole, and anew with more records: finds a record by its number, or else the last one.
    pub(crate) numbered: Option<FindNumbered>,
    /// How likely a file is of this format.
    pub(crate) detect: fn(&dyn Source, &Options) -> Result<Likelihood>,
    pub(crate) walk: OpenWalk,
    pub(crate) split: Option<SplitFile>,
    pub(crate) index: Option<&'static IndexFile>,
    pub(crate) lookup: OpenLookup,
    pub(crate) create: Create,
    /// Whether a torn tail is one unit that was not written to its end, which a writer may remove. `None` for files written whole.
    pub(crate) unfinished: Option<Unfinished>,
    pub(crate) salvage: SalvageFile,
    /// Finds candidates for what damaged ranges of a file were. `None` if the file has no checksums to verify them with.
    pub(crate) candidates: OpenCandidates,
    /// What a file's index or table of contents states; `None` for formats without one.
    pub(crate) stated: Option<ReadStated>,
}

/// How far records reach by a file's index or table of contents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stated {
    /// The offset where they end, or a lower one.
    pub(crate) end: u64,
    /// How many there are, if that is known.
    pub(crate) records: Option<u64>,
    /// Where the index or table in front of them ends; 0 if it is not in the file.
    pub(crate) front: u64,
}

type ReadStated = fn(&Arc<dyn Source>, &Options) -> Result<Option<Stated>>;

type OpenWalk = fn(Arc<dyn Source>, &Options, Opening<'_>) -> Result<Box<dyn Walk>>;
type SplitFile = fn(&Arc<dyn Source>, &Options, u64) -> Result<Vec<PlannedPart>>;
type OpenLookup = fn(Arc<dyn Source>, &Options) -> Result<Box<dyn Lookup>>;
type OpenCandidates = fn(&Arc<dyn Source>, &Options) -> Result<Option<Box<dyn Candidates>>>;
type Unfinished = fn(&dyn Source, &Options, &Span) -> Result<bool>;
/// Finds a record by its number, the last one without a number. `None` if it is not certain that a walk returns it.
type FindNumbered = fn(&Arc<dyn Source>, &Options, Option<u64>) -> Result<Option<Numbered>>;

type Create = fn(&Path, &WriteOptions) -> Result<Box<dyn Writer>>;

impl Format {
    /// The extension of the index beside a file, without the dot; `None` for formats without such an index.
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub fn index_extension(&self) -> Option<&'static str> {
        self.index.map(|index| index.extension)
    }

    /// Whether its files can be read in parts: see [`split`](crate::format::split).
    #[doc(hidden)] // public for the Python extension, which divides files among Spark's tasks
    #[must_use]
    pub const fn is_splittable(&self) -> bool {
        self.split.is_some()
    }
}

impl Deref for Format {
    type Target = Spec;

    fn deref(&self) -> &Spec {
        &self.spec
    }
}

impl From<&'static Format> for Option<&'static Spec> {
    fn from(format: &'static Format) -> Self {
        Some(&format.spec)
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(f)
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.spec == other.spec
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
