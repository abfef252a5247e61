//! The manifest beside a quarantine: where each byte of the damaged file is now.
//!
//! JSON Lines. The first line names that file; each other line is a range of that file, in order, without gaps.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::bug::OrBug;
use crate::disk::DiskRef;
use crate::error::{Error, Result};
use crate::ledger::{Cause, Kind};
use crate::output::Spool;
use crate::saturating::saturating_usize;
use crate::source::{FileSource, Source, Window};
use crate::text;

/// The version of this layout.
pub(super) const VERSION: u32 = 1;
/// The beginning of the first line.
const WHAT: &str = "seglake recover";
/// The longest line. The rest of a file with a longer one is not read.
const MAX_LINE_BYTES: usize = 1 << 16;
/// How much is read at once.
const WINDOW_BYTES: usize = 1 << 20;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    manifest: String,
    pub(super) version: u32,
    /// The options that the damaged file was read with.
    pub(super) options: How,
    /// The damaged file.
    pub(super) original: Id,
    /// What was recovered.
    pub(super) recovered: Id,
    /// The quarantine.
    pub(super) quarantine: Id,
}

impl Header {
    pub(super) fn new(options: How, original: Id, recovered: Id, quarantine: Id) -> Self {
        Self {
            manifest: WHAT.to_owned(),
            version: VERSION,
            options,
            original,
            recovered,
            quarantine,
        }
    }
}

/// How a file was read and recovered. Undoing does not need it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct How {
    pub(super) format: String,
    /// The layout of an oplog's messages; null for other formats.
    pub(super) dialect: Option<String>,
    pub(super) renumber: bool,
    pub(super) force: bool,
}

/// What identifies a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Id {
    /// Its name at the time, for people: without its folder, and with unprintable characters escaped.
    pub(super) name: String,
    #[serde(rename = "nbytes")]
    pub(super) bytes: u64,
    /// HighwayHash-64 of all its bytes under the public default key, in hexadecimal.
    pub(super) hash: String,
}

impl Id {
    pub(super) fn new(path: Option<&Path>, bytes: u64, hash: u64) -> Self {
        let name = path.and_then(Path::file_name).unwrap_or_default();
        Self {
            name: text::path(Path::new(name)),
            bytes,
            hash: format!("{hash:016x}"),
        }
    }

    /// Whether a file with this length and hash is the same.
    pub(super) fn is_of(&self, bytes: u64, hash: u64) -> bool {
        self.bytes == bytes && self.hash == format!("{hash:016x}")
    }
}

/// A range of the damaged file: bytes `start` to `end`, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) end: u64,
    #[serde(flatten)]
    pub(super) place: Place,
}

/// Where a range is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "in", rename_all = "lowercase")]
pub(super) enum Place {
    /// In the recovered file, at this offset.
    Recovered { at: u64 },
    /// In the quarantine, at this offset.
    Quarantine {
        at: u64,
        /// Its kind in the ledger.
        kind: Kind,
        /// The cause of its damage. Null for sound bytes that are written anew, such as an index.
        cause: Option<Cause>,
    },
}

impl Piece {
    pub(super) const fn len(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// The offset of its bytes in that file.
    pub(super) const fn at(&self) -> u64 {
        match self.place {
            Place::Recovered { at } | Place::Quarantine { at, .. } => at,
        }
    }

    /// Whether `next` continues this one, in both files and with the same kind and cause.
    fn is_continued_by(&self, next: &Self) -> bool {
        let mut place = self.place;
        match &mut place {
            Place::Recovered { at } | Place::Quarantine { at, .. } => *at += self.len(),
        }
        self.end == next.start && place == next.place
    }
}

/// The lines of pieces, merged where one continues another. They come after a header that is not known yet.
pub(super) struct Pieces {
    lines: Spool,
    held: Option<Piece>,
}

impl Pieces {
    /// No lines yet, of the manifest that will be `path`.
    ///
    /// # Errors
    /// [`Error::Io`] if its folder cannot be written to.
    pub(super) fn create(disk: &DiskRef, path: &Path) -> Result<Self> {
        Ok(Self {
            lines: Spool::create(disk, path)?,
            held: None,
        })
    }

    pub(super) fn add(&mut self, piece: Piece) -> Result<()> {
        match &mut self.held {
            Some(held) if held.is_continued_by(&piece) => {
                held.end = piece.end;
                Ok(())
            }
            held => {
                let whole = held.replace(piece);
                self.write(whole)
            }
        }
    }

    /// All lines.
    pub(super) fn finish(mut self) -> Result<FileSource> {
        let last = self.held.take();
        self.write(last)?;
        self.lines.source()
    }

    fn write(&mut self, piece: Option<Piece>) -> Result<()> {
        if let Some(piece) = piece {
            write_line(self.lines.buffer(), &piece).or_bug("a piece with a JSON form")?;
        }
        self.lines.flush_if_full()
    }
}

pub(super) fn write_line(out: &mut impl Write, line: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// Reads a manifest, line by line.
pub(super) struct Manifest {
    source: FileSource,
    window: Window,
    at: u64,
    number: u64,
}

impl Manifest {
    pub(super) fn new(source: FileSource) -> Self {
        Self {
            source,
            window: Window::default(),
            at: 0,
            number: 0,
        }
    }

    /// Reads the first line.
    ///
    /// # Errors
    /// [`Error::Format`] if the file is not a manifest, or of another version; [`Error::Io`].
    pub(super) fn header(&mut self) -> Result<Header> {
        let header: Option<Header> = self.next_line()?;
        let header = header.filter(|header| header.manifest == WHAT);
        let header = header.ok_or_else(|| self.refuse("this is not a manifest of a recovery"))?;
        if header.version != VERSION {
            return Err(self.refuse(&format!(
                "the manifest has version {}, expected {VERSION}: use the seglake that wrote it, or a newer one",
                header.version
            )));
        }
        Ok(header)
    }

    /// The next piece; `None` after the last.
    ///
    /// # Errors
    /// [`Error::Format`] if the line is not a piece; [`Error::Io`].
    pub(super) fn piece(&mut self) -> Result<Option<Piece>> {
        self.next_line()
    }

    fn next_line<T: for<'a> Deserialize<'a>>(&mut self) -> Result<Option<T>> {
        let left = saturating_usize(self.source.len() - self.at);
        if left == 0 {
            return Ok(None);
        }
        self.number += 1;
        let most = left.min(MAX_LINE_BYTES);
        self.window
            .load(&self.source, self.at, most, WINDOW_BYTES)?;
        let bytes = self.window.bytes(&self.source, self.at);
        let bytes = bytes.get(..most).or_bug("as many bytes as were loaded")?;
        let mut lines = bytes.splitn(2, |byte| *byte == b'\n');
        let (Some(line), Some(_)) = (lines.next(), lines.next()) else {
            return Err(
                self.refuse("the line does not end: the manifest is cut off, or it is not one")
            );
        };
        let next = self.at + line.len() as u64 + 1;
        let parsed =
            serde_json::from_slice(line).map_err(|error| self.refuse(&error.to_string()))?;
        self.at = next;
        Ok(Some(parsed))
    }

    /// The error for the line that was read last.
    pub(super) fn refuse(&self, why: &str) -> Error {
        Error::Format {
            path: self.source.path().map(Into::into),
            message: format!("line {}: {why}", self.number),
            next: None,
        }
    }
}
