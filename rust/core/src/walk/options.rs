//! Options for reading: one set for all formats. Each format takes those that concern it.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Eof;
use crate::checksum::Key;
#[cfg(feature = "faults")]
use crate::disk::Disk;
use crate::disk::DiskRef;
use crate::error::{Error, Result};
use crate::setters::{choices, disk_and_settings, setters};
use crate::source::Source;
use crate::spec::settings::{FormatOption, Setting, Settings};
use crate::spec::{Dialect, Filter, Spec};

/// Called at intervals during long work. If it returns `true`, the work stops with [`Error::Interrupted`].
#[derive(Clone)]
pub struct Interrupt(Arc<dyn Fn() -> bool + Send + Sync>);

impl Interrupt {
    /// One that stops as soon as `stops` returns `true`.
    pub fn new(stops: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(stops))
    }

    /// Asks whether to stop.
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub fn stops(&self) -> bool {
        (self.0)()
    }

    /// Returns one that stops as soon as `stopped` is true.
    pub(crate) fn once(stopped: &Arc<AtomicBool>) -> Self {
        let stopped = stopped.clone();
        Self::new(move || stopped.load(Ordering::Acquire))
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt")
    }
}

/// Where the index of a chunked segment is.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum IndexSource {
    /// In the file beside the segment, of the same name with the extension `index`, if there is one.
    #[default]
    Beside,
    /// No index: chunks are found by their headers.
    None,
    /// This source.
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

choices! {
    /// What happens at damage.
    OnDamage of "on_damage" {
        /// Reading stops with [`Error::Damage`].
        #[default]
        Raise = "raise" not "error" not "fail" not "stop" not "strict",
        /// Damage is listed in the ledger, and reading goes on.
        Skip = "skip" not "ignore" not "drop" not "warn",
        /// The same, but records that a [parity sidecar](crate::parity::ProtectedSource) restores are read. Without a sidecar it
        /// is [`Skip`](Self::Skip).
        Repair = "repair",
    }
}

/// Which parity sidecar a file is read by, where it is opened by its path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sidecar {
    /// The one beside the file, its name with `.par` appended, if there is one.
    #[default]
    Auto,
    /// None.
    None,
    /// This one, which has to be there.
    Path(PathBuf),
}

/// Options for reading: those that concern all formats, and those that some formats declare in
/// [`Spec::open_options`], which [`set`](Self::set) sets by name.
///
/// ```
/// use seglake::format::Filter;
/// use seglake::{OnDamage, Options, Reader};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("orders.active");
/// # seglake::create(&seglake::format::active::FORMAT, &path)?.close()?;
///
/// let options = Options::default()
///     .on_damage(OnDamage::Skip)
///     .filter(Filter::default().among("type", ["order.paid"]));
/// for record in Reader::open(&path, options)?.records() {
///     println!("{} bytes", record?.value().len());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    #[doc(hidden)] // public for the Python extension and tests
    pub format: Option<&'static Spec>,
    #[doc(hidden)] // public for the Python extension and tests
    pub keys: Vec<Key>,
    #[doc(hidden)] // public for the Python extension and tests
    pub dialect: Dialect,
    #[doc(hidden)] // public for the Python extension and tests
    pub index: IndexSource,
    /// Whether damage is an error, as [`on_damage`](Self::on_damage) sets it.
    #[doc(hidden)]
    pub strict: bool,
    #[doc(hidden)] // public for the Python extension and tests
    pub filter: Filter,
    pub(crate) prune: bool,
    #[doc(hidden)] // public for the Python extension and tests
    pub values: bool,
    pub(crate) eof: Eof,
    #[doc(hidden)] // public for the Python extension and tests
    pub window_bytes: usize,
    pub(crate) record_bytes: u64,
    pub(crate) sidecar: Sidecar,
    pub(crate) interrupt: Option<Interrupt>,
    disk: DiskRef,
    settings: Settings,
    /// Whether records that the sidecar restores are emitted.
    pub(crate) repair: bool,
}

setters!(Options {
    /// The format; `None` finds it by content and extension.
    format: Option<&'static Spec>, from;
    /// The keys to try. The file's key is the first under which any record is verified.
    keys: Vec<Key>;
    /// The layout of an oplog's messages.
    dialect: Dialect;
    /// Where a chunked segment's index is. It only makes looking up faster.
    index: IndexSource;
    /// Which records to emit.
    filter: Filter;
    /// Whether to read only the bytes that matching records can be in, instead of the whole file.
    ///
    /// The records are the same. The ledger covers only what was read, and damage elsewhere is not reported, not even
    /// in strict mode. An index or table of contents is used if it is proven, as in [looking up](super::Lookup::range).
    /// If it is not, or if a matching record is not where it says, the whole file is read.
    prune: bool;
    /// Whether to read bodies. If not, they may read as empty.
    values: bool;
    /// Whether the file may still grow.
    eof: Eof;
    /// How many bytes are read at once. Any size gives the same records and ledger.
    window_bytes: usize;
    /// The largest record to emit, in bytes. A larger one is an [`Error::Limit`], also if a condition that its format
    /// does not apply by itself would leave it out. Verifying has no such limit.
    record_bytes: u64;
    /// Which parity sidecar [`Reader::open`](crate::Reader::open), [`open`](crate::open) and [`verify`](crate::verify) read the file
    /// by. Of other sources make a [`ProtectedSource`](crate::parity::ProtectedSource).
    sidecar: Sidecar;
    /// Called at intervals to ask whether to stop.
    interrupt: Option<Interrupt>, from;
});

disk_and_settings!(Options);

impl Options {
    /// The default of `record_bytes`, and its maximum for Arrow: 2^31-1 bytes, the most that a `binary` value can have.
    pub const RECORD_BYTES: u64 = 0x7fff_ffff;

    /// Refuses values that an option of `format` does not take, and names that no format declares. Options of other
    /// formats are ignored, so that files of several formats can be read with the same options.
    pub(crate) fn check(&self, format: &Spec, is_declared: impl Fn(&str) -> bool) -> Result<()> {
        self.settings.check(format.open_options)?;
        match self.settings.names().find(|name| !is_declared(name)) {
            Some(name) => Err(Error::Usage(format!("{name} is not an option for reading"))),
            None => Ok(()),
        }
    }

    /// Returns these options with this choice of what happens at damage.
    #[must_use]
    pub fn on_damage(self, on_damage: OnDamage) -> Self {
        self.strict(on_damage == OnDamage::Raise)
            .repair(on_damage == OnDamage::Repair)
    }

    /// Whether damage is an error, for tests that combine it with [`repair`](Self::repair).
    #[doc(hidden)]
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Whether to emit records that a parity sidecar restores. Otherwise they are damage.
    #[doc(hidden)]
    #[must_use]
    pub fn repair(mut self, repair: bool) -> Self {
        self.repair = repair;
        self
    }

    /// These options for whom it is about the ledger: all records, without their values, and damage ends nothing.
    pub(crate) fn for_ledger(&self) -> Self {
        self.clone()
            .strict(false)
            .values(false)
            .filter(Filter::default())
    }

    /// Whether only what can match is read: without conditions that is everything.
    pub(crate) fn prunes(&self) -> bool {
        self.prune && !self.filter.is_empty()
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
            Some(interrupt) if interrupt.stops() => Err(Error::Interrupted),
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
            sidecar: Sidecar::Auto,
            interrupt: None,
            disk: DiskRef::default(),
            settings: Settings::default(),
            repair: false,
        }
    }
}
