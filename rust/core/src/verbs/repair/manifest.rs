//! The manifest beside the bytes that a repair replaced: where each of them belongs.
//!
//! JSON Lines. The first line names the files; each of the next ones is a range of one of them, and the last ones say
//! how far the repair has come. They are appended, so the last one may be torn.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::disk::DiskRef;
use crate::error::{Error, Result};
use crate::output::{InPlace, NewFile};
use crate::saturating::saturating_usize;
use crate::source::{FileSource, Source};
use crate::text;
use crate::verbs::paths::suffixed;

/// The version of this layout.
const VERSION: u32 = 1;
/// The beginning of the first line.
const WHAT: &str = "seglake repair";
/// The suffix of a manifest after the name of the file with the replaced bytes.
pub(super) const SUFFIX: &str = ".manifest.jsonl";

/// The path of the manifest beside replaced bytes.
pub(super) fn manifest_of(undo: &Path) -> PathBuf {
    suffixed(undo, SUFFIX)
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    manifest: String,
    version: u32,
    /// The file.
    pub(super) file: Lengths,
    /// Its sidecar.
    pub(super) sidecar: Lengths,
    /// The ID of the sidecar's set, in hexadecimal.
    pub(super) set: String,
    /// When the file was modified, in seconds and nanoseconds since 1970-01-01 UTC.
    modified: Option<(u64, u32)>,
    /// Whether the sidecar was written anew. Then all its old bytes are kept.
    pub(super) sidecar_anew: bool,
    /// The name of the replaced bytes of an earlier repair, beside these, that was interrupted before this one.
    pub(super) continues: Option<String>,
    /// How many ranges follow.
    pub(super) pieces: u64,
}

/// A file before and after a repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lengths {
    /// Its name at the time, for people: without its folder, and with unprintable characters escaped.
    name: String,
    pub(super) nbytes_before: u64,
    pub(super) nbytes_after: u64,
}

impl Lengths {
    pub(super) fn new(path: &Path, nbytes_before: u64, nbytes_after: u64) -> Self {
        Self {
            name: text::path(Path::new(path.file_name().unwrap_or_default())),
            nbytes_before,
            nbytes_after,
        }
    }
}

impl Header {
    pub(super) fn new(file: Lengths, sidecar: Lengths, set: [u8; 8]) -> Self {
        Self {
            manifest: WHAT.to_owned(),
            version: VERSION,
            file,
            sidecar,
            set: hex(set),
            modified: None,
            sidecar_anew: false,
            continues: None,
            pieces: 0,
        }
    }

    pub(super) fn is_of(&self, set: [u8; 8]) -> bool {
        self.set == hex(set)
    }

    /// The lengths of one of the files.
    pub(super) const fn lengths(&self, place: Place) -> &Lengths {
        match place {
            Place::File => &self.file,
            Place::Sidecar => &self.sidecar,
        }
    }

    /// Whether a range is within the file that it is of, before or after the repair.
    fn has_place_for(&self, piece: &Piece) -> bool {
        let lengths = self.lengths(piece.place);
        let end = lengths.nbytes_before.max(lengths.nbytes_after);
        let len = piece.end.checked_sub(piece.start);
        len.is_some_and(|len| len > 0 && piece.nbytes <= len) && piece.end <= end
    }

    pub(super) fn set_modified(&mut self, time: Option<SystemTime>) {
        let since = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        self.modified = since.map(|since| (since.as_secs(), since.subsec_nanos()));
    }

    pub(super) fn modified(&self) -> Option<SystemTime> {
        let (seconds, nanos) = self.modified?;
        SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos))
    }
}

fn hex(id: [u8; 8]) -> String {
    format!("{:016x}", u64::from_be_bytes(id))
}

/// One of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Place {
    File,
    Sidecar,
}

/// A range that a repair changes: bytes `start` to `end`, half-open. Hashes are HighwayHash-64 under the public default
/// key, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Piece {
    #[serde(rename = "in")]
    pub(super) place: Place,
    pub(super) start: u64,
    pub(super) end: u64,
    new_hash: String,
    /// Where the old bytes are among the replaced ones, and how many. There are none after the file's old end.
    pub(super) at: u64,
    pub(super) nbytes: u64,
    old_hash: String,
}

impl Piece {
    pub(super) fn new(place: Place, start: u64, end: u64, new_hash: u64) -> Self {
        Self {
            place,
            start,
            end,
            new_hash: format!("{new_hash:016x}"),
            at: 0,
            nbytes: 0,
            old_hash: String::new(),
        }
    }

    pub(super) fn kept(self, at: u64, nbytes: u64, old_hash: u64) -> Self {
        Self {
            at,
            nbytes,
            old_hash: format!("{old_hash:016x}"),
            ..self
        }
    }

    pub(super) fn has_old(&self, hash: u64) -> bool {
        self.old_hash == format!("{hash:016x}")
    }

    pub(super) fn has_new(&self, hash: u64) -> bool {
        self.new_hash == format!("{hash:016x}")
    }
}

/// How far a repair has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// It was begun, and perhaps interrupted.
    Begun,
    /// It is complete.
    Repaired,
    /// It is being undone, and that was perhaps interrupted.
    Undoing,
    /// It is undone. What is left of the replaced bytes is of no use.
    Undone,
}

#[derive(Serialize, Deserialize)]
struct Mark {
    state: State,
}

/// A manifest as it is on disk.
pub(super) struct Manifest {
    path: PathBuf,
    pub(super) header: Header,
    pub(super) pieces: Vec<Piece>,
    pub(super) state: State,
}

impl Manifest {
    /// Reads the manifest beside replaced bytes.
    ///
    /// # Errors
    /// [`Error::Format`] if it is none; [`Error::Io`].
    pub(super) fn read(disk: &DiskRef, undo: &Path) -> Result<Self> {
        let path = manifest_of(undo);
        let source = FileSource::open(disk, &path)?;
        let mut bytes = vec![0; saturating_usize(source.len())];
        source.read_exact_at(0, &mut bytes)?;
        let mut next = bytes.split_inclusive(|byte| *byte == b'\n');
        let mut next = || next.next();
        let refuse = |number: u64, why: &str| Error::Format {
            path: Some(path.clone()),
            message: format!("line {number}: {why}"),
            next: None,
        };
        let header = next().and_then(|line| serde_json::from_slice::<Header>(line).ok());
        let header = header.filter(|header| header.manifest == WHAT);
        let header = header.ok_or_else(|| refuse(1, "this is not a manifest of a repair"))?;
        if header.version != VERSION {
            return Err(refuse(
                1,
                "the manifest has another version: use the seglake that wrote it, or a newer one",
            ));
        }
        let is_plain = |name: &String| {
            Path::new(name)
                .file_name()
                .is_some_and(|own| own == name.as_str())
        };
        if header
            .continues
            .as_ref()
            .is_some_and(|name| !is_plain(name))
        {
            return Err(refuse(1, "the repair before it is not beside it"));
        }
        let mut pieces = Vec::new();
        for index in 0..header.pieces {
            let piece = next().map(serde_json::from_slice::<Piece>);
            match piece {
                Some(Ok(piece)) if header.has_place_for(&piece) => pieces.push(piece),
                _ => return Err(refuse(index + 2, "this is not a range of a repair")),
            }
        }
        let mut state = State::Begun;
        while let Some(line) = next() {
            // A torn line says nothing. It was the last one when it was written.
            if let Ok(mark) = serde_json::from_slice::<Mark>(line) {
                state = mark.state;
            }
        }
        Ok(Self {
            path,
            header,
            pieces,
            state,
        })
    }

    /// The path of the manifest.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Notes on disk how far the repair has come.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn mark(&self, disk: &DiskRef, state: State) -> Result<()> {
        let file = InPlace::open(disk, &self.path)?;
        let gone = || {
            Error::io(
                Some(&self.path),
                "cannot open",
                std::io::ErrorKind::NotFound.into(),
            )
        };
        let file = file.ok_or_else(gone)?;
        let mut line = Vec::new();
        write_line(&mut line, &Mark { state })
            .map_err(|error| Error::io(Some(&self.path), "cannot write", error))?;
        // On a line of its own, also after one that is torn.
        line.insert(0, b'\n');
        file.write(&line, file.len()?)?;
        file.sync()
    }
}

/// Writes the lines of a manifest.
pub(super) struct Lines<'a> {
    file: &'a mut NewFile,
    buffer: Vec<u8>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(file: &'a mut NewFile) -> Self {
        Self {
            file,
            buffer: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, line: &impl Serialize) -> Result<()> {
        let written = write_line(&mut self.buffer, line);
        written.map_err(|error| {
            Error::io(Some(self.file.path()), "cannot write the manifest", error)
        })?;
        if self.buffer.len() >= super::PIECE_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        let written = self.file.file().write_all(&self.buffer);
        self.buffer.clear();
        written
            .map_err(|error| Error::io(Some(self.file.path()), "cannot write the manifest", error))
    }
}

fn write_line(out: &mut Vec<u8>, line: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.push(b'\n');
    Ok(())
}
