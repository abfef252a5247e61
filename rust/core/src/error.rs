//! Errors as values with fields: damage, a reader's limit, a wrong format, wrong use, I/O, a bug.
//!
//! ```
//! use std::io::ErrorKind;
//!
//! use seglake::Error;
//!
//! match seglake::open("no such file") {
//!     Err(Error::Damage(damage)) => println!("{} at offset {}", damage.cause, damage.offset),
//!     Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound),
//!     Ok(_) => unreachable!(),
//! }
//! ```

use std::borrow::Cow;
use std::fmt;
use std::io::ErrorKind;
use std::panic::Location;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::text;
pub use crate::words::Cause;
use crate::words::words;

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

words! {
    /// What is wrong with the files of a [log](crate::store).
    LogFault {
        /// A segment is not there, or the newest ones are not.
        MissingSegment = "missing_segment",
        /// A file has another segment than its name says.
        OtherSegment = "other_segment",
        /// Two segments have one place.
        DoubledSegment = "doubled_segment",
        /// There are segments of different logs.
        ForeignSegment = "foreign_segment",
    }
}

impl LogFault {
    /// What to do next.
    #[must_use]
    pub const fn next(self) -> &'static str {
        match self {
            Self::MissingSegment => {
                "restore its file. `seglake cat FILE` reads another one, and `seglake log tail --on-damage skip` all but the missing ones"
            }
            Self::OtherSegment => "move it elsewhere, and restore the file of this one",
            Self::DoubledSegment => "move the one that does not belong to this log elsewhere",
            Self::ForeignSegment => "move those that do not belong to this one elsewhere",
        }
    }
}

/// Every error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is damaged, and the reader is strict.
    #[error(transparent)]
    Damage(Box<Damage>),
    /// A limit of the reader was exceeded. The data may be sound.
    #[error(
        "{}: {what} needs {needed} bytes, more than {option} = {limit} allows: raise {option} and read again",
        name(path)
    )]
    #[non_exhaustive]
    Limit {
        /// The file, if it has a name.
        path: Option<PathBuf>,
        /// What exceeded the limit.
        what: String,
        /// How much it needs, in bytes.
        needed: u64,
        /// The option that raises the limit.
        option: &'static str,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A number is larger than its Arrow type can store. The data may be sound.
    #[error(
        "{}: {record}field {field}: {value} is above 2^63-1, the most that an int64 stores: read such numbers as decimals",
        name(path)
    )]
    #[non_exhaustive]
    Number {
        /// The file, if it has a name.
        path: Option<PathBuf>,
        /// The record, as far as its identifier is read (`seq 3, `).
        record: String,
        /// The field (`clock.length`).
        field: String,
        /// The number.
        value: u64,
    },
    /// The bytes are not of the expected format, or their format is unknown.
    #[error("{}: {}{}", name(path), text::printable(message), followed_by(next))]
    Format {
        /// The file, if it has a name.
        path: Option<PathBuf>,
        /// What was expected and what was there.
        message: String,
        /// What to do next, if there is something.
        next: Option<&'static str>,
    },
    /// The segments of a [log](crate::store) do not fit together, or a file of it is not the segment that it has to be.
    #[error("{}: {}: {}", text::path(path), text::printable(message), fault.next())]
    #[non_exhaustive]
    Log {
        /// The file, or the log's folder.
        path: PathBuf,
        /// What is wrong.
        fault: LogFault,
        /// What was expected and what was there.
        message: String,
    },
    /// The caller asked for something impossible.
    #[error("{}", text::printable(_0))]
    Usage(String),
    /// A conversion would lose columns of its source, or the source lacks columns that the new format needs.
    #[error("{format} records {}", columns(lost, missing))]
    #[non_exhaustive]
    Columns {
        /// The new format.
        format: &'static str,
        /// The columns, or fields of structures (`clock.seq`), that it cannot store.
        lost: Vec<String>,
        /// The columns that it needs and that the source lacks.
        missing: Vec<&'static str>,
    },
    /// The operating system returned an error, or the file changed while it was read.
    #[error("{}: {action}: {}", name(path), text::printable(&source.to_string()))]
    #[non_exhaustive]
    Io {
        /// The file, if it has a name.
        path: Option<PathBuf>,
        /// The action that failed, for example `cannot read 4096 bytes at offset 0`.
        action: String,
        /// The system's error. It is part of the message, and so no source of this error: a chain of errors would repeat it.
        r#source: std::io::Error,
    },
    /// A sync of a [log](crate::store) failed, so nobody knows whether the disk has the records that were being written. Each of
    /// them is in the log later, whole, or is not.
    #[error("{}: cannot tell whether {} record(s) are in the log: {}. See to the disk, open the log again and look the UUIDs up", text::path(path), uuids.len(), text::printable(reason))]
    OutcomeUnknown {
        /// The log's folder.
        path: PathBuf,
        /// The UUIDs of these records.
        uuids: Vec<Uuid>,
        /// The UUIDs of those that were to be written with them and are in the log. They come before these; what comes after
        /// is not in the log.
        written: Vec<Uuid>,
        /// What the system said.
        reason: String,
    },
    /// The first records of a batch are in a [log](crate::store), and the others are not.
    #[error("{}: {} record(s) of the batch are in the log, the others are not. {source}", text::path(path), written.len())]
    Partial {
        /// The log's folder.
        path: PathBuf,
        /// The UUIDs of those that are in the log.
        written: Vec<Uuid>,
        /// What hindered the first of the others. It is part of the message, as in [`Io`](Self::Io).
        r#source: Box<Error>,
    },
    /// A segment of a [log](crate::store) was removed, as its retention says, before it was read.
    #[error(
        "{}: segment {sequence} was removed by the log's retention: begin at a later record",
        text::path(path)
    )]
    #[non_exhaustive]
    SegmentGone {
        /// The log's folder.
        path: PathBuf,
        /// The segment's place in the log.
        sequence: u64,
    },
    /// A file is not the one that was read before, or less of it is left than was read.
    #[error(
        "{}: the file was replaced or cut since it was read: at offset {offset}, expected {expected}, found {found}: read it from the beginning, as another file",
        name(path)
    )]
    #[non_exhaustive]
    Replaced {
        /// The file, if it has a name.
        path: Option<PathBuf>,
        /// The offset of what differs, in bytes.
        offset: u64,
        /// What was there when it was read.
        expected: String,
        /// What is there now.
        found: String,
    },
    /// The caller's [`Interrupt`](crate::format::Interrupt) asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// An invariant of seglake is broken. This is a bug in seglake, whatever the file contains.
    #[error(transparent)]
    Bug(Bug),
}

impl Error {
    /// What it is among the errors of input and output. That of the system for [`Io`](Self::Io), `InvalidData` for damage and wrong
    /// formats, `InvalidInput` for what the caller cannot have, `FileTooLarge` for a limit.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { source, .. } => source.kind(),
            Self::Damage(_)
            | Self::Format { .. }
            | Self::Log { .. }
            | Self::Replaced { .. }
            | Self::Number { .. } => ErrorKind::InvalidData,
            Self::Usage(_) | Self::Columns { .. } => ErrorKind::InvalidInput,
            Self::Limit { .. } => ErrorKind::FileTooLarge,
            Self::SegmentGone { .. } => ErrorKind::NotFound,
            Self::Interrupted => ErrorKind::Interrupted,
            Self::Partial { source, .. } => source.kind(),
            Self::OutcomeUnknown { .. } | Self::Bug(_) => ErrorKind::Other,
        }
    }

    /// The file or the log's folder, if the error is about one that has a name.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Damage(damage) => damage.path.as_deref(),
            Self::Limit { path, .. }
            | Self::Number { path, .. }
            | Self::Format { path, .. }
            | Self::Io { path, .. }
            | Self::Replaced { path, .. } => path.as_deref(),
            Self::Log { path, .. }
            | Self::OutcomeUnknown { path, .. }
            | Self::Partial { path, .. }
            | Self::SegmentGone { path, .. } => Some(path),
            Self::Usage(_) | Self::Columns { .. } | Self::Interrupted | Self::Bug(_) => None,
        }
    }

    /// The error of a log whose files are not what they have to be.
    pub(crate) fn log(path: &Path, fault: LogFault, message: String) -> Self {
        Self::Log {
            path: path.to_path_buf(),
            fault,
            message,
        }
    }

    /// Whether a file is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == ErrorKind::NotFound)
    }

    /// The same error, for whoever goes on after it.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Damage(damage) => Self::Damage(damage.clone()),
            Self::Limit {
                path,
                what,
                needed,
                option,
                limit,
            } => Self::Limit {
                path: path.clone(),
                what: what.clone(),
                needed: *needed,
                option,
                limit: *limit,
            },
            Self::Io {
                path,
                action,
                source,
            } => {
                let source = match source.raw_os_error() {
                    Some(code) => std::io::Error::from_raw_os_error(code),
                    None => std::io::Error::new(source.kind(), source.to_string()),
                };
                Self::io(path.as_deref(), action, source)
            }
            Self::Interrupted => Self::Interrupted,
            other => Self::Usage(other.to_string()),
        }
    }

    /// The error of an action such as `cannot read 4096 bytes at offset 0`, for a [`Source`](crate::source::Source) of one's own.
    /// `path` is the file, if it has a name.
    #[must_use]
    pub fn io(path: Option<&Path>, action: impl Into<String>, source: std::io::Error) -> Self {
        Self::Io {
            path: path.map(Path::to_path_buf),
            action: action.into(),
            source,
        }
    }

    /// The error for a file that changed: `what` of it, such as `the record at offset 8`, was read again and its bytes
    /// differ from those that were verified.
    pub(crate) fn changed(path: Option<&Path>, what: &str) -> Self {
        let source = std::io::Error::new(
            ErrorKind::InvalidData,
            "its bytes changed between two reads",
        );
        Self::io(
            path,
            format!("the file changed while {what} was read"),
            source,
        )
    }

    /// The error for damage at this offset.
    pub(crate) fn damage(path: Option<&Path>, offset: u64, finding: Finding) -> Self {
        Self::Damage(Box::new(Damage::new(path, offset, finding)))
    }

    /// The error for a record, or `what` of it, that is larger than `record_bytes`.
    pub(crate) fn record_too_large(
        path: Option<&Path>,
        what: impl Into<String>,
        needed: u64,
        record_bytes: u64,
    ) -> Self {
        Self::Limit {
            path: path.map(Path::to_path_buf),
            what: what.into(),
            needed,
            option: "record_bytes",
            limit: record_bytes,
        }
    }
}

/// The same error as one of input and output, with its [kind](Error::kind).
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        Self::new(error.kind(), error)
    }
}

/// A file's name in errors.
pub(crate) fn name(path: &Option<PathBuf>) -> String {
    path.as_deref()
        .map_or_else(|| "<buffer>".to_owned(), text::path)
}

fn followed_by(next: &Option<&str>) -> String {
    match next {
        Some(next) => format!(": {next}"),
        None => String::new(),
    }
}

fn columns(lost: &[String], missing: &[&str]) -> String {
    let mut said = Vec::new();
    if !lost.is_empty() {
        let lost = lost.join(", ");
        said.push(format!("cannot store {lost}: name in `drop` what to omit"));
    }
    if !missing.is_empty() {
        let missing = missing.join(", ");
        said.push(format!(
            "need {missing}, which the source lacks: set a value for each"
        ));
    }
    said.join("; they ")
}

/// Damage: where it is, its cause, what was expected and what was found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Damage {
    /// The file, if it has a name.
    pub path: Option<PathBuf>,
    /// The absolute offset of the first damaged byte.
    pub offset: u64,
    /// The cause, as in the ledger.
    pub cause: Cause,
    /// What was found and expected, with numbers.
    pub finding: Finding,
    /// No record of the file was verified and its structure is sound: the key is probably not the one that it was
    /// written with.
    pub wrong_key: bool,
}

impl Damage {
    /// Damage at an absolute offset of a file. The key is not suspected.
    pub(crate) fn new(path: Option<&Path>, offset: u64, finding: Finding) -> Self {
        Self {
            path: path.map(Into::into),
            offset,
            cause: finding.cause(),
            finding,
            wrong_key: false,
        }
    }
}

impl Damage {
    /// What to do next.
    #[must_use]
    pub const fn next(&self) -> &'static str {
        if matches!(self.finding, Finding::Parity { .. }) {
            "`seglake repair` restores what the parity sidecar can; if the file is right as it is, `seglake protect --as-it-is` begins a new sidecar"
        } else if self.wrong_key {
            "No record checks but the structure is sound: this is probably the wrong key. Leave the file as it is and read it with the key that it was written with"
        } else {
            "`seglake verify` lists all damage; to read the sound records, skip it (`on_damage`)"
        }
    }
}

impl std::error::Error for Damage {}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, cause, offset) = (name(&self.path), self.cause, self.offset);
        let (expected, found) = (self.finding.expected(), self.finding.actual());
        write!(
            f,
            "{name}: {cause} at offset {offset}: expected {expected}, found {found}. {}",
            self.next()
        )
    }
}

/// What a check found: the numbers of [`Damage`], formatted only when displayed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// A stored checksum differs from the checksum of the bytes.
    Checksum {
        /// The checksum in the file.
        stored: u64,
        /// The checksum of the bytes in the file. `None` under a secret key: a forger could use it.
        computed: Option<u64>,
    },
    /// The file ends inside a header or length field.
    Truncated {
        /// How many bytes those fields need.
        needed: u64,
        /// How many bytes are left.
        available: u64,
    },
    /// A record's lengths reach past the end of the file.
    TooLong {
        /// How many bytes the record has by its own lengths.
        needed: u64,
        /// How many bytes are left.
        available: u64,
    },
    /// Bytes that must be zero are not.
    Nonzero {
        /// The absolute offset after the last byte that is not zero.
        until: u64,
    },
    /// A UUID is not version 6, variant 10 (RFC 9562).
    BadUuid {
        /// The UUID that was found, in network byte order.
        uuid: [u8; 16],
    },
    /// A UUID is not greater than its predecessor.
    OutOfOrder {
        /// The last verified UUID, in network byte order.
        last: [u8; 16],
        /// The UUID that was found, in network byte order.
        uuid: [u8; 16],
    },
    /// A number differs from its expected value.
    Number {
        /// The cause, as in the ledger.
        cause: Cause,
        /// The number's name, for example `the number of partitions`.
        what: &'static str,
        /// The expected value.
        expected: u64,
        /// The value that was found.
        actual: u64,
    },
    /// The file differs from what its parity sidecar covered.
    Parity {
        /// The cause, as in the ledger.
        cause: Cause,
        /// What was expected.
        expected: String,
        /// What was found.
        actual: String,
    },
    /// Any other finding, as text.
    Words {
        /// The cause, as in the ledger.
        cause: Cause,
        /// What was expected.
        expected: Cow<'static, str>,
        /// What was found.
        actual: Cow<'static, str>,
    },
}

impl Finding {
    /// A finding as text.
    pub(crate) fn words(
        cause: Cause,
        expected: impl Into<Cow<'static, str>>,
        actual: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::Words {
            cause,
            expected: expected.into(),
            actual: actual.into(),
        }
    }

    /// The cause of the finding, as in the ledger.
    #[doc(hidden)] // public for tests: `Damage` has it
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::Checksum { .. } => Cause::ChecksumMismatch,
            Self::Truncated { .. } => Cause::TruncatedHeader,
            Self::TooLong { .. } => Cause::LengthOutOfBounds,
            Self::Nonzero { .. } => Cause::NonzeroUnused,
            Self::BadUuid { .. } => Cause::BadUuid,
            Self::OutOfOrder { .. } => Cause::OutOfOrder,
            Self::Number { cause, .. } | Self::Parity { cause, .. } | Self::Words { cause, .. } => {
                *cause
            }
        }
    }

    /// What was expected.
    #[must_use]
    pub fn expected(&self) -> String {
        match self {
            Self::Checksum { stored, .. } => format!("checksum {stored:#018x} as stored"),
            Self::Truncated { needed, .. } => {
                format!("at least {needed} bytes for a record's header")
            }
            Self::TooLong { needed, .. } => format!("{needed} bytes, by the record's lengths"),
            Self::Nonzero { .. } => "unused space: zeros to the end of the file".to_owned(),
            Self::BadUuid { .. } => "a UUID of version 6, variant 10".to_owned(),
            Self::OutOfOrder { last, .. } => {
                format!("a UUID greater than {}", Uuid::from_bytes(*last))
            }
            Self::Number { what, expected, .. } => format!("{what} to be {expected}"),
            Self::Parity { expected, .. } => expected.clone(),
            Self::Words { expected, .. } => text::printable(expected).into_owned(),
        }
    }

    /// What was found.
    #[must_use]
    pub fn actual(&self) -> String {
        match self {
            Self::Checksum { computed, .. } => computed.map_or_else(
                || "bytes with another checksum under the secret key".to_owned(),
                |computed| format!("bytes with checksum {computed:#018x}"),
            ),
            Self::Truncated { available, .. } | Self::TooLong { available, .. } => {
                format!("{available} bytes left in the file")
            }
            Self::Nonzero { until } => format!(
                "nonzero bytes, the last of them at offset {}",
                until.saturating_sub(1)
            ),
            Self::BadUuid { uuid } | Self::OutOfOrder { uuid, .. } => {
                Uuid::from_bytes(*uuid).to_string()
            }
            Self::Number { actual, .. } => actual.to_string(),
            Self::Parity { actual, .. } => actual.clone(),
            Self::Words { actual, .. } => text::printable(actual).into_owned(),
        }
    }
}

/// A broken invariant: a bug in seglake. No file that was read has been changed.
#[derive(Debug)]
pub struct Bug {
    /// What is true as long as there is no bug.
    pub(crate) expected: &'static str,
    /// What was found instead, if that is known.
    pub(crate) found: Option<String>,
    /// Where in the code it was expected.
    pub(crate) at: &'static Location<'static>,
}

impl Bug {
    /// The error for a broken invariant. Panics in builds with debug assertions.
    #[cold]
    #[track_caller]
    pub(crate) fn error(expected: &'static str, found: Option<String>) -> Error {
        let bug = Self {
            expected,
            found,
            at: Location::caller(),
        };
        debug_assert!(false, "{bug}");
        Error::Bug(bug)
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            expected,
            found,
            at,
        } = self;
        let (file, line) = (at.file(), at.line());
        write!(f, "a bug in seglake ({file}:{line}): expected {expected}")?;
        if let Some(found) = found {
            write!(f, ", found {}", text::printable(found))?;
        }
        f.write_str(
            ". No file that was read has been changed. Please report this message, with the file if you can share it",
        )
    }
}

impl std::error::Error for Bug {}
