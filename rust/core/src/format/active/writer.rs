//! Appending to a new or an existing segment.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::walk::ActiveWalk;
use super::{FORMAT, UUID_BYTES, encode};
use crate::checksum::Key;
use crate::error::{Error, Result};
use crate::format::{Options, Start, Step, Value, Walk};
use crate::ledger::{Kind, Span};
use crate::source::FileSource;
use crate::uuid6::{Generator, is_v6};
use crate::verbs::Report;

/// Records are collected up to this many bytes before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// How to open a segment for appending.
#[derive(Clone, Debug, Default)]
pub struct WriterOptions {
    /// The key of the checksums.
    pub key: Key,
    /// The length in bytes to which the file is filled with zeros beforehand, so that appending need not grow it.
    pub preallocate: u64,
    /// Append to the file if it exists. Otherwise an existing file is an error.
    pub append: bool,
    /// If an existing file ends in a torn tail, overwrite it with zeros, in place, and go on there. Otherwise it is an error.
    pub zero_torn_tail: bool,
}

/// Appends records to a segment. Two writers of one file keep each other out (by an advisory lock, on Unix).
///
/// Records are buffered: [`flush`](Self::flush) hands them to the operating system, [`sync`](Self::sync) to the disk.
/// After an error of `flush` nothing is lost: it can be called again. Dropping a writer flushes it without reporting errors.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    key: Key,
    generator: Generator,
    last: Option<[u8; UUID_BYTES]>,
    /// Where the buffered records begin in the file.
    at: u64,
    buffer: Vec<u8>,
    found: Report,
    /// A sync failed: what the disk holds is no longer known.
    unsynced: bool,
}

impl Writer {
    /// Opens a segment for appending. An existing one is walked first.
    ///
    /// # Errors
    /// [`Error::Io`] where the file exists without [`append`](WriterOptions::append), is being written to by another
    /// writer, or cannot be opened or filled; [`Error::Damage`] where an existing file ends in damage (a torn tail only
    /// without [`zero_torn_tail`](WriterOptions::zero_torn_tail)) or is probably under another key.
    pub fn open(path: &Path, options: &WriterOptions) -> Result<Self> {
        let failed = |error| Error::io(Some(path), "cannot open for writing", error);
        let mut open = OpenOptions::new();
        open.read(true).write(true).truncate(false);
        if options.append {
            open.create(true)
        } else {
            open.create_new(true)
        };
        let file = open.open(path).map_err(failed)?;
        #[cfg(unix)]
        file.try_lock().map_err(|error| match error {
            std::fs::TryLockError::WouldBlock => failed(std::io::Error::new(
                ErrorKind::ResourceBusy,
                "another writer has it open",
            )),
            std::fs::TryLockError::Error(error) => failed(error),
        })?;
        let mut writer = Self {
            file,
            path: path.to_path_buf(),
            key: options.key,
            generator: Generator::default(),
            last: None,
            at: 0,
            buffer: Vec::new(),
            found: Report::new(&FORMAT, Some(path), 0),
            unsynced: false,
        };
        writer.find_end(options)?;
        writer.fill(options.preallocate)?;
        Ok(writer)
    }

    /// Walks what is there, to find the last UUID and where to go on.
    fn find_end(&mut self, options: &WriterOptions) -> Result<()> {
        let file = self
            .file
            .try_clone()
            .map_err(|error| self.failed("cannot read", error))?;
        let source = Arc::new(FileSource::new(file, &self.path)?);
        let lenient = Options {
            keys: vec![options.key],
            strict: false,
            values: false,
            ..Options::default()
        };
        let mut walk = ActiveWalk::new(source.clone(), &lenient, Start::Beginning)?;
        self.found = Report::of(&FORMAT, &*source);
        let mut end_span = None::<Span>;
        while walk.step()? == Step::More {
            self.found.add(&walk);
            let used = walk
                .spans()
                .iter()
                .rev()
                .find(|span| span.kind != Kind::Unused);
            end_span = used.copied().or(end_span);
            let rows = walk.rows();
            if let Some(Value::Uuid(uuid)) = rows.len().checked_sub(1).map(|row| rows.field(row, 0))
            {
                self.last = Some(uuid);
            }
        }
        let Some(end) = end_span else { return Ok(()) };
        self.at = end.end;
        if end.kind == Kind::Record {
            return Ok(());
        }
        if end.kind == Kind::TornTail && options.zero_torn_tail && !self.found.wrong_key() {
            self.zero(end.start, end.end)?;
            self.at = end.start;
            return self.sync();
        }
        // Once more, strictly, from where the damage begins: the error has all the numbers.
        let strict = Options {
            strict: true,
            ..lenient
        };
        let mut walk = ActiveWalk::behind(source, &strict, end.start, self.last)?;
        while walk.step()? == Step::More {}
        Err(self.failed(
            "cannot append",
            std::io::Error::new(
                ErrorKind::InvalidData,
                "the file changed while it was walked",
            ),
        ))
    }

    /// Fills the file with zeros up to `len` bytes. Written, not only reserved: so a full disk shows now.
    fn fill(&mut self, len: u64) -> Result<()> {
        let present = self
            .file
            .metadata()
            .map_err(|error| self.failed("cannot stat", error))?
            .len();
        self.zero(present, len)
    }

    fn zero(&self, start: u64, end: u64) -> Result<()> {
        let zeros = vec![
            0;
            usize::try_from(end.saturating_sub(start))
                .unwrap_or(BUFFER_BYTES)
                .min(BUFFER_BYTES)
        ];
        let mut at = start;
        while at < end {
            let piece = usize::try_from(end - at)
                .unwrap_or(usize::MAX)
                .min(BUFFER_BYTES);
            write_all_at(&self.file, zeros.get(..piece).unwrap_or_default(), at).map_err(
                |error| self.failed(&format!("cannot write zeros at offset {at}"), error),
            )?;
            at += piece as u64;
        }
        Ok(())
    }

    /// Appends a record of this UUID, which must be of version 6 and greater than the last one.
    ///
    /// # Errors
    /// [`Error::Usage`] for a UUID that does not ascend or is not of version 6, a type of more than 255 bytes, or a value of
    /// more than 2^32-1 bytes: nothing is appended. [`Error::Io`] where a full buffer could not be written: the record
    /// itself is appended to the buffer.
    pub fn append(&mut self, uuid: &Uuid, type_: &[u8], value: &[u8]) -> Result<()> {
        self.check_synced()?;
        let bytes = uuid.as_bytes();
        if !is_v6(bytes) {
            return Err(Error::Usage(format!(
                "the UUID {uuid} is not of version 6, variant 10"
            )));
        }
        if let Some(last) = self.last.filter(|last| bytes <= last) {
            let last = Uuid::from_bytes(last);
            return Err(Error::Usage(format!(
                "the UUID {uuid} does not ascend: the last one in the segment is {last}"
            )));
        }
        encode(&mut self.buffer, &self.key, bytes, type_, value)?;
        self.last = Some(*bytes);
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// The next UUID for [`append`](Self::append): of the present time, or just behind the last one.
    ///
    /// # Errors
    /// [`Error::Usage`] where the last UUID is of the last time that there is.
    pub fn next_uuid(&self) -> Result<Uuid> {
        match &self.last {
            None => Ok(self.generator.now()),
            Some(last) => self.generator.after(last).ok_or_else(|| {
                Error::Usage(format!(
                    "no UUID of version 6 has a later time than the last one, {}",
                    Uuid::from_bytes(*last)
                ))
            }),
        }
    }

    /// Hands all records to the operating system: they survive the end of this process.
    ///
    /// # Errors
    /// [`Error::Io`]; what could not be written is kept, and flushing again writes it to where it belongs.
    pub fn flush(&mut self) -> Result<()> {
        self.check_synced()?;
        write_all_at(&self.file, &self.buffer, self.at).map_err(|error| {
            self.failed(
                &format!(
                    "cannot write {} bytes at offset {}",
                    self.buffer.len(),
                    self.at
                ),
                error,
            )
        })?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES * 2);
        Ok(())
    }

    /// Hands all records to the disk: they survive a loss of power.
    ///
    /// # Errors
    /// [`Error::Io`]. After a failed sync the disk's state is unknown, so every later call fails too: open the file again,
    /// which walks it.
    pub fn sync(&mut self) -> Result<()> {
        self.flush()?;
        let synced = self.file.sync_data().and_then(|()| sync_folder(&self.path));
        self.unsynced = synced.is_err();
        synced.map_err(|error| self.failed("cannot sync", error))
    }

    /// Flushes, and closes the file.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn close(mut self) -> Result<()> {
        self.flush()
    }

    /// Where the next record will begin, in bytes from the start of the file.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.at + self.buffer.len() as u64
    }

    /// The last UUID in the segment.
    #[must_use]
    pub fn last_uuid(&self) -> Option<Uuid> {
        self.last.map(Uuid::from_bytes)
    }

    /// What was in the file when it was opened.
    #[must_use]
    pub fn found(&self) -> &Report {
        &self.found
    }

    fn check_synced(&self) -> Result<()> {
        if self.unsynced {
            let error = std::io::Error::other(
                "an earlier sync failed, so what the disk holds is unknown: open the file again",
            );
            return Err(self.failed("cannot write", error));
        }
        Ok(())
    }

    fn failed(&self, action: &str, error: std::io::Error) -> Error {
        Error::io(Some(&self.path), action, error)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.buffer.is_empty() {
            let _ = self.flush(); // who wants to know calls `close`
        }
    }
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        if written == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(written..).unwrap_or_default();
        offset += written as u64;
    }
    Ok(())
}

/// Makes a new file's name last: on Unix that takes a sync of its folder.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    if cfg!(unix) {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}
