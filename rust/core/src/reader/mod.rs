//! `open`, `create` and `verify`, the reader that `open` returns, and its records. They only call other modules.

use std::fmt;
use std::iter::FusedIterator;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::engine::{Format, Start, WriteOptions, Writer};
use crate::error::Result;
use crate::format;
use crate::parity::ProtectedSource;
use crate::record::{Column, Record, RecordId};
use crate::source::{FileSource, Source};
use crate::spec::Filter;
use crate::verbs::{self, Ledger, Report};
use crate::walk::{Lookup, OnDamage, Options, Sidecar, Step, Walk};

/// Opens a file for reading. The format is detected. Reading is strict: it stops with an error at the first damage.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if the file cannot be opened or read; [`Error::Format`](crate::Error::Format) if its
/// format is unknown.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("greetings.active");
/// # seglake::create(&seglake::format::active::FORMAT, &path)?.close()?;
/// for record in seglake::open(&path)?.records() {
///     let record = record?;
///     println!("{} bytes at offset {}", record.value().len(), record.position());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open(path: impl AsRef<Path>) -> Result<Reader> {
    Reader::open(path, Options::default())
}

/// Verifies a file to its end. The report has the number of sound records and the damaged byte ranges.
///
/// # Errors
/// As [`open`]. Damage is not an error: it is in the report.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("greetings.active");
/// # seglake::create(&seglake::format::active::FORMAT, &path)?.close()?;
/// let report = seglake::verify(&path)?;
/// println!("{}: {} sound records", report.format.name, report.summary.records);
/// for range in &report.summary.damage {
///     println!("bytes {}..{} are damaged", range.start, range.end);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn verify(path: impl AsRef<Path>) -> Result<Report> {
    open(path)?.verify()
}

/// Creates a file of this format with the default options. An existing file is an error. Use
/// [`format::create`](crate::format::create) for other options.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if the file exists or cannot be created.
///
/// ```
/// use seglake::Value;
/// use seglake::format::active;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("greetings.active");
///
/// let uuids = seglake::uuid6::Generator::default();
/// let mut writer = seglake::create(&active::FORMAT, &path)?;
/// println!("a value for each of {:?}", writer.columns());
/// let uuid = Value::Uuid(uuids.now().into_bytes());
/// writer.write(&[uuid, Value::Null, Value::Text(b"greeting"), Value::Binary(b"hello")])?;
/// writer.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn create(format: &Format, path: impl AsRef<Path>) -> Result<Box<dyn Writer>> {
    format::create(format, path.as_ref(), &WriteOptions::default())
}

/// An open file: gives all its records, single records, and its ledger.
///
/// A reader can be used any number of times, also in parallel. Each use begins at the file's beginning.
pub struct Reader {
    source: Arc<dyn Source>,
    format: &'static Format,
    /// The options, with the detected format.
    options: Options,
    /// Created at the first look-up.
    lookup: OnceLock<Box<dyn Lookup>>,
}

impl Reader {
    /// Opens a file for reading with these options, by the parity sidecar that [`Options::sidecar`] names.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref();
        // Before the file, which then has all that it covers.
        let sidecar = match &options.sidecar {
            Sidecar::Auto => verbs::open_sidecar(path, &options)?,
            Sidecar::None => None,
            Sidecar::Path(sidecar) => Some(FileSource::open_on(options.on(), sidecar)?),
        };
        let file = Arc::new(FileSource::open_on(options.on(), path)?);
        let Some(sidecar) = sidecar else {
            return Self::new(file, options);
        };
        let protected = ProtectedSource::open(file, Arc::new(sidecar))?;
        if options.sidecar != Sidecar::Auto {
            protected.refuse_without_frames()?;
        }
        Self::new(protected, options)
    }

    /// Opens any source: bytes in memory ([`BytesSource`](crate::source::BytesSource)), a map, an object of a store.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the source cannot be read; [`Error::Format`](crate::Error::Format) if its
    /// format is unknown.
    pub fn new(source: Arc<dyn Source>, options: Options) -> Result<Self> {
        let format = format::resolve(&*source, &options)?;
        let options = options.format(format);
        Ok(Self {
            source,
            format,
            options,
            lookup: OnceLock::new(),
        })
    }

    /// Returns this reader with this choice of what happens at damage. With [`OnDamage::Skip`] [`records`](Self::records) returns
    /// all sound records; [`Records::report`] and [`ledger`](Self::ledger) list the damaged ranges.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use seglake::{OnDamage, Options, Reader};
    /// use seglake::format::active;
    /// use seglake::source::BytesSource;
    ///
    /// let mut segment = Vec::new();
    /// let uuids = seglake::uuid6::Generator::default();
    /// for value in [b"first", b"other", b"third"] {
    ///     active::encode(&mut segment, &Default::default(), uuids.now().as_bytes(), b"", value)?;
    /// }
    /// segment[50] ^= 1; // damage to the second of three records
    ///
    /// let options = Options::default().on_damage(OnDamage::Skip);
    /// let reader = Reader::new(Arc::new(BytesSource::new(segment)), options)?;
    /// let mut records = reader.records();
    /// let values: Vec<_> = records.by_ref().map(|record| Ok(record?.value().to_vec())).collect::<seglake::Result<_>>()?;
    /// assert_eq!(values, [b"first", b"third"]);
    /// assert_eq!(records.report().summary.damage.len(), 1);
    ///
    /// for range in reader.ledger()? {
    ///     let range = range?;
    ///     println!("bytes {}..{}: {}", range.start, range.end, range.kind);
    /// }
    /// # Ok::<(), seglake::Error>(())
    /// ```
    #[must_use]
    pub fn on_damage(self, on_damage: OnDamage) -> Self {
        Self {
            options: self.options.on_damage(on_damage),
            lookup: OnceLock::new(),
            ..self
        }
    }

    /// What is read, with the parity sidecar that it is read by: for [verbs](crate::verbs) and [columns](crate::columns),
    /// without opening the file once more.
    ///
    /// ```
    /// use seglake::verbs::{SealOptions, seal};
    /// use seglake::{Options, Reader};
    /// # let folder = tempfile::tempdir()?;
    /// # let (path, sealed) = (folder.path().join("orders.active"), folder.path().join("orders.sealed"));
    /// # seglake::create(&seglake::format::active::FORMAT, &path)?.close()?;
    ///
    /// let reader = Reader::open(&path, Options::default())?;
    /// if reader.verify()?.is_sound() {
    ///     seal(reader.source(), &Options::default(), &sealed, &SealOptions::default(), |_| Ok(()))?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn source(&self) -> Arc<dyn Source> {
        self.source.clone()
    }

    /// The file's format.
    #[must_use]
    pub const fn format(&self) -> &'static Format {
        self.format
    }

    /// The columns of each record, in the order in which they are displayed and written.
    #[must_use]
    pub fn columns(&self) -> &'static [Column] {
        self.format.columns(self.options.dialect)
    }

    /// The records of the file in file order, as far as they match [`Options::filter`].
    #[must_use]
    pub fn records(&self) -> Records {
        self.read(self.walk())
    }

    /// The records that match a filter. If an index or table of contents is proven, only the bytes that it names for
    /// them are read, and damage elsewhere is not reported.
    #[must_use]
    pub fn range(&self, filter: &Filter) -> Records {
        self.read(self.lookup().and_then(|lookup| lookup.range(filter)))
    }

    fn read(&self, walk: Result<Box<dyn Walk>>) -> Records {
        let report = Report::of(self.format, &*self.source);
        Records::new(self.columns(), walk, report)
    }

    /// Opens a walk, which returns batches that borrow from its window, without copying each record.
    /// [`records`](Self::records) is built on it.
    ///
    /// # Errors
    /// As [`format::open`](crate::format::open).
    pub fn walk(&self) -> Result<Box<dyn Walk>> {
        format::open(self.source.clone(), &self.options, Start::Beginning)
    }

    /// Finds one record; `None` if it is not in the file.
    ///
    /// # Errors
    /// As [`get_many`](Self::get_many).
    pub fn get(&self, id: &RecordId) -> Result<Option<Record>> {
        let mut records = self.get_many(std::slice::from_ref(id))?;
        Ok(records.pop().flatten())
    }

    /// Finds records by identifiers in any order. Returns one or `None` for each identifier. This is faster than one
    /// [`get`](Self::get) for each.
    ///
    /// # Errors
    /// - [`Error::Usage`](crate::Error::Usage) for an identifier that the format does not have.
    /// - [`Error::Damage`](crate::Error::Damage) if damage may have been one of the records, unless damage is
    ///   [skipped](Self::on_damage).
    /// - [`Error::Limit`](crate::Error::Limit), [`Error::Io`](crate::Error::Io).
    pub fn get_many(&self, ids: &[RecordId]) -> Result<Vec<Option<Record>>> {
        let hits = self.lookup()?.get(ids)?;
        let columns = self.columns();
        let mut records = Vec::with_capacity(ids.len());
        hits.each(|found| {
            records.push(
                found.map(|(rows, row)| Record::of(self.format.identifier, columns, rows, row)),
            );
        });
        Ok(records)
    }

    /// The look-up that [`get`](Self::get) and [`range`](Self::range) use. It is created once. What it proves of an
    /// index stays proven as long as the reader lives.
    ///
    /// # Errors
    /// As [`format::lookup`](crate::format::lookup).
    #[doc(hidden)]
    pub fn lookup(&self) -> Result<&dyn Lookup> {
        if let Some(lookup) = self.lookup.get() {
            return Ok(&**lookup);
        }
        // If two threads arrive at once, both use the one that is stored first.
        let lookup = format::lookup(self.source.clone(), &self.options)?;
        Ok(&**self.lookup.get_or_init(|| lookup))
    }

    /// Verifies the file to its end, past all damage.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io); [`Error::Interrupted`](crate::Error::Interrupted). Damage is not an error: it
    /// is in the report.
    pub fn verify(&self) -> Result<Report> {
        verbs::verify(self.source.clone(), &self.options, |_| Ok(()))
    }

    /// All ranges of the file in file order: each record, and every other byte range, with its cause if it is damaged.
    ///
    /// # Errors
    /// As [`verbs::Ledger::new`](crate::verbs::Ledger::new).
    pub fn ledger(&self) -> Result<Ledger> {
        Ledger::new(self.source.clone(), &self.options)
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("path", &self.source.path())
            .field("format", &self.format)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The records of a file, in file order: an iterator that ends after its first error. It keeps the file open.
///
/// If the file could not be opened, the error is the first item. For a file that is still being written
/// ([`Eof::Growing`](crate::format::Eof::Growing)) the iterator ends where the file ends now.
pub struct Records {
    columns: &'static [Column],
    /// The walk, or the error if it could not be opened; `None` at the end.
    walk: Option<Result<Box<dyn Walk>>>,
    /// The rows of the walk's last step that were not returned yet.
    rows: Range<usize>,
    report: Report,
}

impl Records {
    /// Iterates over `walk`. `report` is still empty.
    pub(crate) fn new(
        columns: &'static [Column],
        walk: Result<Box<dyn Walk>>,
        mut report: Report,
    ) -> Self {
        if let Ok(walk) = &walk {
            report.summary.checked = walk.checked();
        }
        Self {
            columns,
            walk: Some(walk),
            rows: 0..0,
            report,
        }
    }

    /// The report on the bytes that were read so far. After the last record it covers the whole file, unless a filter
    /// was set.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    fn advance(&mut self, walk: &mut dyn Walk) -> Result<Option<Record>> {
        loop {
            if let Some(row) = self.rows.next() {
                return Ok(Some(Record::of(
                    self.report.format.identifier,
                    self.columns,
                    &*walk.rows(),
                    row,
                )));
            }
            if walk.step()? != Step::More {
                self.report.note(walk);
                return Ok(None);
            }
            self.report.add(walk);
            self.rows = 0..walk.rows().len();
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Result<Record>> {
        let mut walk = match self.walk.take()? {
            Ok(walk) => walk,
            Err(error) => return Some(Err(error)),
        };
        let next = self.advance(&mut *walk).transpose();
        if matches!(next, Some(Ok(_))) {
            self.walk = Some(Ok(walk));
        }
        next
    }
}

impl FusedIterator for Records {}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records")
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
