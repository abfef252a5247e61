//! Where reading a file goes on after it grew, and what identifies the file.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;
use uuid::Uuid;

use crate::checksum::{Key, hash};
use crate::error::{Error, Result};
use crate::ledger::Span;
use crate::saturating::saturating_usize;
use crate::source::Source;
use crate::spec::{FirstUnit, Spec};
use crate::walk::Carry;

/// At most so many bytes of the first unit identify a file.
pub(crate) const FIRST_BYTES: u64 = 64 << 10;
/// At most so many bytes, up to the end of the last unit that was read, tell whether it is still there.
pub(crate) const LAST_BYTES: u64 = 4 << 10;
const UUID_BYTES: usize = 16;
const CHECKSUM_BYTES: u64 = 8;

/// What identifies a file while it grows and when it is sealed: the family of its format, the UUID of its first sound unit where
/// records have UUIDs, and a hash of that unit. Active and sealed segments are one family.
///
/// Files whose first units are the same have the same identity, so equal identities alone do not make two files copies:
/// [`Growth::since`](super::Growth::since) with the position of one refuses another.
///
/// As text it is `segment:<UUID>:<hash>`, or `<family>:<hash>` without UUIDs, the hash in 16 hexadecimal digits. It is
/// HighwayHash-64 under the public default key, of the first 64 KiB of the unit. Of an active or sealed segment the unit is taken
/// without its checksum as an active segment has it. So up to 64 KiB the hash is the checksum that the record has under that key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    family: Box<str>,
    pub(super) uuid: Option<[u8; UUID_BYTES]>,
    hash: u64,
}

impl Identity {
    /// The family of the file's format.
    #[must_use]
    pub fn family(&self) -> &str {
        &self.family
    }

    /// The UUID of the first record, where records have UUIDs.
    #[must_use]
    pub fn uuid(&self) -> Option<Uuid> {
        self.uuid.map(Uuid::from_bytes)
    }

    /// The identity by the first unit's bytes that are at `first`. `uuid` is that of a record whose bytes do not have it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn at(
        source: &dyn Source,
        format: &Spec,
        first: Extent,
        uuid: Option<[u8; UUID_BYTES]>,
    ) -> Result<Option<Self>> {
        let Some(bytes) = first.read(source)? else {
            return Ok(None);
        };
        let (uuid, hash) = match (format.first_unit, uuid) {
            (FirstUnit::Bytes, _) => (None, hash(&Key::DEFAULT, &bytes)),
            (FirstUnit::Record, _) => {
                let Some(uuid) = bytes.first_chunk() else {
                    return Ok(None);
                };
                (Some(*uuid), hash(&Key::DEFAULT, &bytes))
            }
            (FirstUnit::Message, Some(uuid)) => {
                (Some(uuid), hash(&Key::DEFAULT, &[&uuid, &*bytes].concat()))
            }
            (FirstUnit::Message, None) => return Ok(None),
        };
        Ok(Some(Self {
            family: format.family.into(),
            uuid,
            hash,
        }))
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, uuid, hash } = self;
        match uuid {
            Some(uuid) => write!(f, "{family}:{}:{hash:016x}", Uuid::from_bytes(*uuid)),
            None => write!(f, "{family}:{hash:016x}"),
        }
    }
}

impl FromStr for Identity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (family, uuid, hash) = match *text.split(':').collect::<Vec<_>>() {
            [family, uuid, hash] => (family, Uuid::try_parse(uuid).map(Some), hash),
            [family, hash] => (family, Ok(None), hash),
            _ => (text, Ok(None), ""),
        };
        if let (Ok(uuid), Ok(hash)) = (uuid, u64::from_str_radix(hash, 16)) {
            let identity = Self {
                family: family.into(),
                uuid: uuid.map(Uuid::into_bytes),
                hash,
            };
            // Each identity has one text.
            if identity.to_string() == text {
                return Ok(identity);
            }
        }
        Err(Error::Usage(
            "this is not the identity of a file: take it as it was given".to_owned(),
        ))
    }
}

/// Bytes of a file that are compared when it is read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) at: u64,
    pub(crate) nbytes: u64,
}

impl Extent {
    pub(crate) const fn end(self) -> u64 {
        self.at.saturating_add(self.nbytes)
    }

    /// What identifies the unit that is there.
    pub(super) fn of_unit(self, format: &Spec) -> Self {
        let Self { at, nbytes } = self;
        let nbytes = match format.first_unit {
            FirstUnit::Bytes => nbytes.min(FIRST_BYTES),
            FirstUnit::Record => nbytes.saturating_sub(CHECKSUM_BYTES).min(FIRST_BYTES),
            FirstUnit::Message => nbytes.min(FIRST_BYTES - UUID_BYTES as u64),
        };
        Self { at, nbytes }
    }

    /// The bytes; `None` if the file ends before them.
    fn read(self, source: &dyn Source) -> Result<Option<Vec<u8>>> {
        if self.end() > source.len() || self.nbytes > FIRST_BYTES {
            return Ok(None);
        }
        let mut bytes = vec![0; saturating_usize(self.nbytes)];
        source.read_exact_at(self.at, &mut bytes)?;
        Ok(Some(bytes))
    }
}

/// A record of a file that is written whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbered {
    /// How many records are before it.
    pub(crate) number: u64,
    pub(crate) uuid: [u8; UUID_BYTES],
    pub(crate) place: Extent,
    /// Whether no other follows it.
    pub(crate) is_last: bool,
    /// Whether checksums prove that no other does. False if it was not asked for by its number.
    pub(crate) is_proven: bool,
}

/// The last record of a file that is written whole, and how many are before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileEnd {
    pub(crate) number: u64,
    pub(crate) record: Identity,
}

/// The end of the last unit that was read, as it was then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Last {
    pub(crate) place: Extent,
    pub(crate) hash: u64,
}

impl Last {
    /// What is there now.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn of(source: &dyn Source, start: u64, end: u64) -> Result<Option<Self>> {
        let nbytes = end.saturating_sub(start).min(LAST_BYTES);
        let place = Extent {
            at: end.saturating_sub(nbytes),
            nbytes,
        };
        let bytes = place.read(source)?;
        Ok(bytes.map(|bytes| Self {
            place,
            hash: hash(&Key::DEFAULT, &bytes),
        }))
    }

    /// Refuses a file that does not have it.
    ///
    /// # Errors
    /// [`Error::Replaced`], [`Error::Io`].
    fn check(&self, source: &dyn Source) -> Result<()> {
        let Extent { at, nbytes } = self.place;
        let found = Self::of(source, at, self.place.end())?;
        match found {
            Some(found) if found.hash == self.hash => Ok(()),
            found => Err(replaced(
                source.path(),
                self.place.end(),
                format!(
                    "{nbytes} bytes before it with the hash {:016x}, the end of what was read last",
                    self.hash
                ),
                match found {
                    Some(found) => format!("the hash {:016x}", found.hash),
                    None => "the end of the file".to_owned(),
                },
            )),
        }
    }
}

pub(crate) fn replaced(path: Option<&Path>, offset: u64, expected: String, found: String) -> Error {
    Error::Replaced {
        path: path.map(Path::to_path_buf),
        offset,
        expected,
        found,
    }
}

/// Up to where a file was read, and what reading on needs to know. [`Growth`](super::Growth) gives it and takes it.
///
/// As JSON it can be stored. It holds no key and no value of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Position {
    pub(crate) format: &'static Spec,
    pub(crate) identity: Option<Identity>,
    /// Where the first unit is: after `offset` in an oplog that was read as final and has damage before its first sound message.
    pub(crate) first: Option<Extent>,
    pub(crate) offset: u64,
    pub(crate) last: Option<Last>,
    /// The last record of a sealed segment, by which one that was written anew with more records goes on.
    pub(crate) end: Option<FileEnd>,
    /// The UUID of the last sound record, where records have UUIDs.
    pub(crate) uuid: Option<[u8; UUID_BYTES]>,
    /// The state of the walk, which begins at `offset` again. `None` in complete files, and if it was too large.
    pub(crate) carry: Option<Carry>,
}

impl Position {
    /// The format that the file had.
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub const fn format(&self) -> &'static Spec {
        self.format
    }

    /// What identifies the file; `None` as long as it had no whole unit.
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub const fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// The offset up to which the file was read, in bytes. 0 for a sealed segment that was read up to a record.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The UUID of the last sound record, where records have UUIDs and it is known.
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub fn uuid(&self) -> Option<Uuid> {
        let of_end = || self.end.as_ref().and_then(|end| end.record.uuid);
        self.uuid.or_else(of_end).map(Uuid::from_bytes)
    }

    /// Whether nothing was read.
    pub(crate) const fn is_beginning(&self) -> bool {
        self.offset == 0 && self.identity.is_none()
    }

    /// Refuses a file that does not have what was read.
    ///
    /// # Errors
    /// [`Error::Replaced`], [`Error::Io`].
    pub(crate) fn check_read(&self, source: &dyn Source) -> Result<()> {
        let (len, offset) = (source.len(), self.offset);
        if len < offset {
            return Err(replaced(
                source.path(),
                len,
                format!("at least the {offset} bytes that were read"),
                "the end of the file".to_owned(),
            ));
        }
        match &self.last {
            Some(last) => last.check(source),
            None => Ok(()),
        }
    }
}

/// What every walk's state has that a file can grow after.
#[derive(Deserialize)]
pub(crate) struct CarryHead {
    pub(crate) at: u64,
    pub(crate) pending: Option<Span>,
    #[serde(rename = "own")]
    pub(crate) state: CarryState,
}

/// What the states of some formats have.
#[derive(Deserialize)]
pub(crate) struct CarryState {
    /// Only of formats whose records have UUIDs.
    #[serde(default)]
    pub(crate) last: Option<[u8; UUID_BYTES]>,
}

impl CarryHead {
    pub(crate) fn of(carry: &Carry) -> Result<Self> {
        carry.state("a file")
    }
}
