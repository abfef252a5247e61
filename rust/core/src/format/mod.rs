//! What every format provides, and the table of formats.

pub mod active;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::checksum::Key;
use crate::columns::ColumnBuffer;
use crate::error::{Error, Result};
use crate::ledger::Span;
use crate::source::Source;

/// A format of the table: its names, its columns, and how to recognise and walk it.
pub struct Format {
    /// The name that callers use.
    pub name: &'static str,
    /// The usual file extension, without the dot.
    pub extension: &'static str,
    /// What a record has, in the order in which it is shown.
    pub columns: &'static [Column],
    /// How records are checked: what `verify` reports as `checked`.
    pub checked: Checked,
    detect: fn(&dyn Source, &Options) -> Result<Likelihood>,
    walk: OpenWalk,
    get: GetByUuid,
}

type OpenWalk = fn(Arc<dyn Source>, &Options, Start<'_>) -> Result<Box<dyn Walk>>;
type GetByUuid = fn(Arc<dyn Source>, &Options, &[u8; 16]) -> Result<Option<Box<dyn Walk>>>;

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
pub static FORMATS: &[&Format] = &[&active::FORMAT];

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

/// One column of a format's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, the same in Arrow, Python, Spark and the command line.
    pub name: &'static str,
    /// What its values are.
    pub kind: ColumnKind,
}

/// What a column's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// 16 bytes in network byte order.
    Uuid,
    /// Microseconds since 1970-01-01 UTC, signed.
    Timestamp,
    /// Bytes shown as text, see [`text::escape`](crate::text::escape).
    Text,
    /// Bytes.
    Binary,
    /// A signed 64-bit integer.
    Int64,
}

/// One value of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A UUID's 16 bytes in network byte order.
    Uuid([u8; 16]),
    /// Microseconds since 1970-01-01 UTC.
    Timestamp(i64),
    /// Bytes that are meant to be text.
    Text(&'a [u8]),
    /// Bytes.
    Binary(&'a [u8]),
    /// A signed 64-bit integer.
    Int64(i64),
}

/// The records that one step of a walk found good, in file order. Methods that take a row panic where there is none of
/// that number, as slices do.
pub trait Rows {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the record begins in its file.
    fn position(&self, row: usize) -> u64;

    /// The record's body.
    fn value(&self, row: usize) -> &[u8];

    /// The record's time in microseconds since 1970-01-01 UTC, where the format has one.
    fn timestamp(&self, row: usize) -> Option<i64>;

    /// The value of one of the format's [columns](Format::columns), by its place there.
    fn field(&self, row: usize, column: usize) -> Value<'_>;

    /// Appends one column of several records to `buffer`, which is of that column's kind.
    fn fill(&self, rows: Range<usize>, column: usize, buffer: &mut ColumnBuffer);
}

/// What a step of a walk came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Records or ranges were found; there may be more.
    More,
    /// What is there so far is read, and the file is still growing: go on later from the [`Carry`].
    Wait,
    /// The file is read to its end, or to where no wanted record can follow.
    Done,
}

/// How a file's end is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eof {
    /// The file is finished: an incomplete record at its end is a torn tail.
    #[default]
    Final,
    /// The file is being written: an incomplete record at its end is one to wait for.
    Growing,
}

/// A point from which a walk can go on, as JSON: no part of it is code, and it can be kept for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carry(pub String);

/// Where a walk begins.
#[derive(Clone, Copy, Debug, Default)]
pub enum Start<'a> {
    /// At the file's beginning.
    #[default]
    Beginning,
    /// At this offset, at which a record begins. What is before it is not known, so the first record ascends whatever it is.
    Offset(u64),
    /// Where another walk was.
    Carry(&'a Carry),
}

/// Reads one file from its beginning, or from a [`Carry`], to its end: the only thing that parses or checks records.
pub trait Walk: Send {
    /// Goes on until something is found. [`rows`](Self::rows) and [`spans`](Self::spans) are of the latest step alone.
    ///
    /// # Errors
    /// [`Error::Damage`] at the first damage if reading strictly, [`Error::Limit`], [`Error::Io`], [`Error::Interrupted`].
    /// A walk that failed fails again in the same way when stepped again, or is at its end.
    fn step(&mut self) -> Result<Step>;

    /// The good records that the last step found and that [`Options::bounds`] let through.
    fn rows(&self) -> Box<dyn Rows + '_>;

    /// The ranges of the ledger that the last step settled, in file order, each once.
    fn spans(&self) -> &[Span];

    /// The offset up to which the file has been read.
    fn offset(&self) -> u64;

    /// Where another walk would go on.
    fn carry(&self) -> Carry;

    /// Whether so far nothing checked although the structure is sound to the end: the key is probably wrong.
    fn suspects_key(&self) -> bool;
}

/// Asked now and then during long work; `true` stops it with [`Error::Interrupted`].
#[derive(Clone)]
pub struct Interrupt(pub Arc<dyn Fn() -> bool + Send + Sync>);

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt")
    }
}

/// The UUIDs that are wanted: half-open, compared as bytes, which is by time first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The least UUID that is wanted.
    pub since: Option<[u8; 16]>,
    /// The least UUID that is not wanted any more.
    pub until: Option<[u8; 16]>,
}

impl Bounds {
    /// Whether `uuid` is wanted.
    #[must_use]
    pub fn contains(&self, uuid: &[u8; 16]) -> bool {
        self.since.is_none_or(|since| *uuid >= since) && !self.is_past(uuid)
    }

    /// Whether neither `uuid` nor any greater one is wanted.
    #[must_use]
    pub fn is_past(&self, uuid: &[u8; 16]) -> bool {
        self.until.is_some_and(|until| *uuid >= until)
    }
}

/// How to read. The same for all formats; each takes what concerns it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The format; `None` finds it by content and extension.
    pub format: Option<&'static Format>,
    /// The keys to try. The first under which any record checks is the file's key.
    pub keys: Vec<Key>,
    /// Stop at the first damage with [`Error::Damage`], instead of entering it in the ledger and going on.
    pub strict: bool,
    /// Which records are wanted; the ledger is of all.
    pub bounds: Bounds,
    /// Whether bodies are wanted. If not, records larger than a window are only hashed and their body reads as empty.
    pub values: bool,
    /// How the end of the file is meant.
    pub eof: Eof,
    /// How much is read at once, in bytes. Any size gives the same records and ledger.
    pub window_bytes: usize,
    /// The largest record to give out, in bytes; a larger one is an [`Error::Limit`]. Not a limit of verifying.
    pub max_record_bytes: u64,
    /// Asked now and then whether to stop.
    pub interrupt: Option<Interrupt>,
}

impl Options {
    /// What `max_record_bytes` is by default, and at most for Arrow: 2^31-1 bytes, the most that a `binary` value holds.
    pub const MAX_RECORD_BYTES: u64 = 0x7fff_ffff;
}

impl Options {
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
            strict: true,
            bounds: Bounds::default(),
            values: true,
            eof: Eof::Final,
            window_bytes: 1 << 20,
            max_record_bytes: Self::MAX_RECORD_BYTES,
            interrupt: None,
        }
    }
}

/// How likely a file is of a format, from its content alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likelihood {
    /// Nothing speaks for it.
    No,
    /// Its structure fits.
    Likely(String),
    /// A checksum holds.
    Certain(String),
}

/// What [`detect`] found.
#[derive(Clone, Debug)]
pub struct Detection {
    /// The format, if one is likely.
    pub format: Option<&'static Format>,
    /// Whether a checksum proves it.
    pub certain: bool,
    /// Why, for a person.
    pub reason: String,
}

/// Finds a file's format by its content, and by its extension where the content does not tell.
///
/// # Errors
/// [`Error::Io`].
pub fn detect(source: &dyn Source, options: &Options) -> Result<Detection> {
    let mut likely = Vec::new();
    for &format in FORMATS {
        match (format.detect)(source, options)? {
            Likelihood::Certain(reason) => {
                return Ok(Detection {
                    format: Some(format),
                    certain: true,
                    reason,
                });
            }
            Likelihood::Likely(reason) => likely.push((format, reason)),
            Likelihood::No => {}
        }
    }
    let extension = source
        .path()
        .and_then(|path| path.extension())
        .and_then(|extension| extension.to_str());
    let by_name = FORMATS
        .iter()
        .find(|format| Some(format.extension) == extension);
    if let [(format, reason)] = likely.as_slice() {
        return Ok(Detection {
            format: Some(format),
            certain: false,
            reason: reason.clone(),
        });
    }
    let names: Vec<_> = likely.iter().map(|(format, _)| format.name).collect();
    Ok(match by_name {
        Some(format) if names.is_empty() || names.contains(&format.name) => {
            let reason = format!(
                "the extension is .{}; the content alone does not tell",
                format.extension
            );
            Detection {
                format: Some(format),
                certain: false,
                reason,
            }
        }
        _ if names.is_empty() => Detection {
            format: None,
            certain: false,
            reason: "the content is like none of the formats".to_owned(),
        },
        _ => Detection {
            format: None,
            certain: false,
            reason: format!("the content could be {}", names.join(" or ")),
        },
    })
}

/// The format that `options` name, or else the one that is detected.
///
/// # Errors
/// [`Error::Format`] where none can be told; [`Error::Io`].
pub fn resolve(source: &dyn Source, options: &Options) -> Result<&'static Format> {
    if let Some(format) = options.format {
        return Ok(format);
    }
    let detection = detect(source, options)?;
    detection.format.ok_or_else(|| {
        let names: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
        let message = format!(
            "cannot tell the format: {}. Expected one of {}: name it with format= (or a file extension) if you know it",
            detection.reason,
            names.join(", "),
        );
        Error::Format { path: source.path().map(Into::into), message }
    })
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
/// [`Error::Format`] where the format cannot be told; [`Error::Usage`] where the start is none of this file; [`Error::Io`].
pub fn open(source: Arc<dyn Source>, options: &Options, start: Start<'_>) -> Result<Box<dyn Walk>> {
    let format = resolve(&*source, options)?;
    (format.walk)(source, options, start)
}

/// Finds a record by its UUID: a walk whose row 0 is the record, its checksum right; `None` where there is none.
///
/// # Errors
/// As [`open`] and [`Walk::step`]. Reading strictly, damage at which the record might have stood is an error.
pub fn get(
    source: Arc<dyn Source>,
    options: &Options,
    uuid: &[u8; 16],
) -> Result<Option<Box<dyn Walk>>> {
    let format = resolve(&*source, options)?;
    (format.get)(source, options, uuid)
}
