//! What goes wrong, as values with fields: damage, a reader's own limit, a wrong format, wrong use, I/O, a bug.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::path::{Path, PathBuf};

use uuid::Uuid;

pub use crate::cause::Cause;
use crate::text;

/// The result of everything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is damaged, and damage was not to be skipped.
    #[error(transparent)]
    Damage(Box<Damage>),
    /// A limit of the reader was met; the data may be sound.
    #[error(
        "{}: {what} needs {needed} bytes, more than {option} = {limit} allows: raise {option} to go on",
        name(path)
    )]
    Limit {
        /// The file, if it has a name.
        path: Option<PathBuf>,
        /// What met the limit.
        what: String,
        /// How much it takes, in bytes.
        needed: u64,
        /// The option that raises the limit.
        option: &'static str,
        /// Its value, in bytes.
        limit: u64,
    },
    /// The bytes are not of the format asked for, or no format could be told from them.
    #[error("{}: {}", name(path), text::printable(message))]
    Format {
        /// The file, if it has a name.
        path: Option<PathBuf>,
        /// What was expected and what was there.
        message: String,
    },
    /// The caller asked for something that cannot be.
    #[error("{}", text::printable(_0))]
    Usage(String),
    /// A conversion would lose columns of its source, or lacks some that the new format needs.
    #[error("{format} records {}", columns(lost, missing))]
    Columns {
        /// The new format.
        format: &'static str,
        /// The columns, or fields of structures (`clock.seq`), that it cannot hold.
        lost: Vec<String>,
        /// The columns that it needs and the source does not have.
        missing: Vec<&'static str>,
    },
    /// The operating system refused, or the file changed while it was read.
    #[error("{}: {action}: {}", name(path), text::printable(&source.to_string()))]
    Io {
        /// The file, if it has a name.
        path: Option<PathBuf>,
        /// What was being done, for example `cannot read 4096 bytes at offset 0`.
        action: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The caller's [`Interrupt`](crate::format::Interrupt) asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// An invariant of seglake is broken: a bug in seglake, whatever the file holds.
    #[error(transparent)]
    Bug(Bug),
}

impl Error {
    pub(crate) fn io(
        path: Option<&Path>,
        action: impl Into<String>,
        source: std::io::Error,
    ) -> Self {
        Self::Io {
            path: path.map(Path::to_path_buf),
            action: action.into(),
            source,
        }
    }

    /// The file is not what it was a moment ago: `what` of it, such as `the record at offset 8`, is read by now as other bytes
    /// than were checked.
    pub(crate) fn changed(path: Option<&Path>, what: &str) -> Self {
        let source = std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            "its bytes changed between two looks at them",
        );
        Self::io(
            path,
            format!("the file changed while {what} was read"),
            source,
        )
    }

    /// `what` is larger than records may be.
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

/// How errors call a file.
pub(crate) fn name(path: &Option<PathBuf>) -> String {
    path.as_deref()
        .map_or_else(|| "<buffer>".to_owned(), text::path)
}

fn columns(lost: &[String], missing: &[&str]) -> String {
    let mut said = Vec::new();
    if !lost.is_empty() {
        let lost = lost.join(", ");
        said.push(format!("cannot hold {lost}: drop what may be lost by name"));
    }
    if !missing.is_empty() {
        let missing = missing.join(", ");
        said.push(format!(
            "need {missing}, which the source does not have: set a value for each"
        ));
    }
    said.join("; they ")
}

/// Where a file is damaged, how, and what should have been there.
#[derive(Clone, Debug)]
pub struct Damage {
    /// The file, if it has a name.
    pub path: Option<PathBuf>,
    /// The absolute offset of the first damaged byte.
    pub offset: u64,
    /// The ledger's word for it.
    pub cause: Cause,
    /// What was found, with the numbers that show it.
    pub finding: Finding,
    /// Nothing in the file checks though its structure is sound: the key is probably not the one it was written with.
    pub wrong_key: bool,
}

impl Damage {
    /// Damage at an absolute offset of a file, whose key is right as far as that is known.
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

impl std::error::Error for Damage {}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            offset,
            cause,
            finding,
            wrong_key,
        } = self;
        write!(f, "{}: {cause} at offset {offset}: ", name(path))?;
        write!(
            f,
            "expected {}, found {}",
            finding.expected(),
            finding.actual()
        )?;
        if *wrong_key {
            f.write_str(". No record checks but the structure is sound: this is probably the wrong key. Leave the file as it is and read it with the key that it was written with")
        } else {
            f.write_str(
                ". `seglake verify` lists all damage; on_damage=\"skip\" reads the sound records",
            )
        }
    }
}

/// What a check found: the numbers behind [`Damage`], formatted only when somebody asks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// A stored checksum is not that of the bytes.
    Checksum {
        /// The checksum in the file.
        stored: u64,
        /// The checksum of the bytes in the file. `None` under a secret key: it would be just what a forger lacks.
        computed: Option<u64>,
    },
    /// The file ends inside the fields that say how long things are.
    Truncated {
        /// How many bytes those fields need.
        needed: u64,
        /// How many are left.
        available: u64,
    },
    /// A record needs more bytes than are left.
    TooLong {
        /// How many bytes the record says it has.
        needed: u64,
        /// How many are left.
        available: u64,
    },
    /// Bytes that must be zero are not.
    Nonzero {
        /// The absolute offset behind the last byte that is not zero.
        until: u64,
    },
    /// A UUID is not version 6, variant 10 (RFC 9562).
    BadUuid {
        /// The UUID that was there, in network byte order.
        uuid: [u8; 16],
    },
    /// A UUID is not greater than the one before it.
    OutOfOrder {
        /// The last good UUID, in network byte order.
        last: [u8; 16],
        /// The UUID that was there, in network byte order.
        uuid: [u8; 16],
    },
    /// A number is not what it has to be.
    Number {
        /// The ledger's word for it.
        cause: Cause,
        /// What the number is, for example `the number of partitions`.
        what: &'static str,
        /// What it has to be.
        expected: u64,
        /// What it is.
        actual: u64,
    },
    /// Anything else, in words.
    Words {
        /// The ledger's word for it.
        cause: Cause,
        /// What should have been there.
        expected: Cow<'static, str>,
        /// What was there.
        actual: Cow<'static, str>,
    },
}

impl Finding {
    /// A finding in words.
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

    /// The ledger's word for what was found.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::Checksum { .. } => Cause::ChecksumMismatch,
            Self::Truncated { .. } => Cause::TruncatedHeader,
            Self::TooLong { .. } => Cause::LengthOutOfBounds,
            Self::Nonzero { .. } => Cause::NonzeroUnused,
            Self::BadUuid { .. } => Cause::BadUuid,
            Self::OutOfOrder { .. } => Cause::OutOfOrder,
            Self::Number { cause, .. } | Self::Words { cause, .. } => *cause,
        }
    }

    /// What should have been there.
    #[must_use]
    pub fn expected(&self) -> String {
        match self {
            Self::Checksum { stored, .. } => format!("checksum {stored:#018x} as stored"),
            Self::Truncated { needed, .. } => {
                format!("at least {needed} bytes for a record's header")
            }
            Self::TooLong { needed, .. } => format!("{needed} bytes, as the record's lengths say"),
            Self::Nonzero { .. } => "unused space of zeros to the end of the file".to_owned(),
            Self::BadUuid { .. } => "a UUID of version 6, variant 10".to_owned(),
            Self::OutOfOrder { last, .. } => {
                format!("a UUID greater than {}", Uuid::from_bytes(*last))
            }
            Self::Number { what, expected, .. } => format!("{what} to be {expected}"),
            Self::Words { expected, .. } => text::printable(expected).into_owned(),
        }
    }

    /// What was there.
    #[must_use]
    pub fn actual(&self) -> String {
        match self {
            Self::Checksum { computed, .. } => computed.map_or_else(
                || "bytes whose checksum under the secret key is another".to_owned(),
                |computed| format!("bytes whose checksum is {computed:#018x}"),
            ),
            Self::Truncated { available, .. } | Self::TooLong { available, .. } => {
                format!("{available} bytes left in the file")
            }
            Self::Nonzero { until } => format!(
                "other bytes, the last of them at offset {}",
                until.saturating_sub(1)
            ),
            Self::BadUuid { uuid } | Self::OutOfOrder { uuid, .. } => {
                Uuid::from_bytes(*uuid).to_string()
            }
            Self::Number { actual, .. } => actual.to_string(),
            Self::Words { actual, .. } => text::printable(actual).into_owned(),
        }
    }
}

/// A broken invariant: a bug in seglake. No file that was read has been changed.
#[derive(Debug)]
pub struct Bug {
    /// What holds as long as there is no bug.
    pub(crate) expected: &'static str,
    /// What was there instead, where more is known than that the expected was not.
    pub(crate) found: Option<String>,
    /// Where in the code it was expected.
    pub(crate) at: &'static Location<'static>,
}

impl Bug {
    /// Panics in builds with debug assertions.
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
