//! Writes a whole segment.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::layout::{ENTRY_BYTES, UUID_BYTES};
use super::trailer::Foot;
use super::{COLUMNS, FORMAT, TRAILER};
use crate::bug::OrBug;
use crate::checksum::{Incremental, Key};
use crate::cursor::fields;
use crate::engine;
use crate::engine::WriteOptions;
use crate::error::{Error, Result};
use crate::format::active::{Record, Sequence, Unhashed, encode_message};
use crate::output::{NewFile, Spool};
use crate::record::{Column, RecordId, Value};
use crate::saturating::saturating_usize;
use crate::source::{FileSource, Source};

/// If the system caches files in large pages, writes of whole ones are cached that way. A map of the file then
/// takes fewer address translations, which look-ups wait for as much as for memory.
const LARGE_PAGE_BYTES: usize = 2 << 20;
/// How much is copied between two polls of the interrupt: whole entries, and whole large pages.
const PIECE_BYTES: usize = ENTRY_BYTES << 18;
const _: () = assert!(PIECE_BYTES.is_multiple_of(LARGE_PAGE_BYTES));

/// Writes messages, in the order of their UUIDs, to a segment. The file appears under its name when the writer is
/// closed. Dropping the writer leaves nothing.
///
/// The index comes first in the file and is complete last. So messages, entries and checksums are spilled to
/// unnamed temporary files, and memory stays flat.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    options: WriteOptions,
    key: Key,
    sequence: Sequence,
    /// UUIDs, and offsets relative to the beginning of the data.
    entries: Spool,
    messages: Spool,
    checksums: Spool,
    /// Messages, each after its UUID, that are not hashed yet. Hashing moves them to `messages`.
    scratch: Vec<u8>,
    unhashed: Unhashed,
    /// The bytes of all messages, which is where the next one begins.
    data_bytes: u64,
    /// The new file. `None` after it could not be renamed.
    new: Option<NewFile>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    Complete,
    Abandoned,
}

impl Writer {
    /// Begins a segment with the path `path`.
    ///
    /// # Errors
    /// [`Error::Io`] if `path` exists without [`IfExists::Overwrite`](crate::format::IfExists::Overwrite), or its
    /// folder is not writable.
    pub fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        options.check(&FORMAT)?;
        let new = NewFile::create(options.on(), path, options.overwrites())?;
        Ok(Self {
            path: path.to_path_buf(),
            key: options.key.unwrap_or(Key::DEFAULT),
            options: options.clone(),
            sequence: Sequence::default(),
            entries: Spool::create(options.on(), path)?,
            messages: Spool::create(options.on(), path)?,
            checksums: Spool::create(options.on(), path)?,
            scratch: Vec::new(),
            unhashed: Unhashed::default(),
            data_bytes: 0,
            new: Some(new),
            stage: Stage::Open,
        })
    }

    /// Adds a message with this UUID, which must be of version 6 and greater than the last one.
    ///
    /// # Errors
    /// [`Error::Usage`] for a UUID that does not ascend or is not of version 6, a type of more than 255 bytes, or
    /// a value of more than 2^32-1 bytes. Nothing is added then. [`Error::Io`] if a full buffer could not be
    /// written. The message is in the buffer then.
    pub fn append(&mut self, uuid: &Uuid, type_: &[u8], value: &[u8]) -> Result<()> {
        self.check_next(uuid)?;
        let start = self.scratch.len();
        self.scratch.extend_from_slice(uuid.as_bytes());
        if let Err(error) = encode_message(&mut self.scratch, type_, value) {
            self.scratch.truncate(start);
            return Err(error);
        }
        self.unhashed.push((start, self.scratch.len() - start));
        self.enter(uuid, self.scratch.len() - start - UUID_BYTES);
        if self.unhashed.is_full() {
            self.hash_pending()?;
        }
        self.flush_if_full()
    }

    /// Adds a record of an active segment with its stored checksum.
    ///
    /// # Errors
    /// The same as [`append`](Self::append).
    pub(crate) fn append_record(&mut self, record: &Record<'_>) -> Result<()> {
        let uuid = Uuid::from_bytes(record.uuid);
        self.check_next(&uuid)?;
        self.hash_pending()?;
        let before = self.messages.buffer().len();
        encode_message(self.messages.buffer(), record.type_, record.value)?;
        let len = self.messages.buffer().len() - before;
        let checksum = record.checksum.to_be_bytes();
        self.checksums.buffer().extend_from_slice(&checksum);
        self.enter(&uuid, len);
        self.flush_if_full()
    }

    fn check_next(&self, uuid: &Uuid) -> Result<()> {
        if self.stage != Stage::Open {
            return Err(Error::Usage(format!(
                "{} is closed: nothing can be written to it any more",
                crate::text::path(&self.path)
            )));
        }
        self.sequence.check(uuid)
    }

    /// Adds a message of `len` bytes to the index.
    fn enter(&mut self, uuid: &Uuid, len: usize) {
        let entries = self.entries.buffer();
        entries.extend_from_slice(uuid.as_bytes());
        entries.extend_from_slice(&self.data_bytes.to_be_bytes());
        self.data_bytes += len as u64;
        self.sequence.set_last(uuid.into_bytes());
    }

    /// Hashes the buffered messages, and appends them to the spilled ones.
    fn hash_pending(&mut self) -> Result<()> {
        let (messages, checksums) = (self.messages.buffer(), self.checksums.buffer());
        for ((start, len), checksum) in self.unhashed.hash_all(&self.key, &self.scratch) {
            let message = self.scratch.get(start + UUID_BYTES..start + len);
            messages.extend_from_slice(message.or_bug("a message within what was laid out")?);
            checksums.extend_from_slice(&checksum.to_be_bytes());
        }
        self.scratch.clear();
        self.scratch.shrink_to(PIECE_BYTES);
        Ok(())
    }

    fn flush_if_full(&mut self) -> Result<()> {
        self.entries.flush_if_full()?;
        self.messages.flush_if_full()?;
        self.checksums.flush_if_full()
    }

    /// Sets the key that carried-over checksums are under.
    ///
    /// # Errors
    /// [`Error::Bug`].
    pub(crate) fn set_key(&mut self, key: Key) -> Result<()> {
        self.hash_pending()?;
        self.key = key;
        Ok(())
    }

    /// Completes the file, and gives it its name. Closing again does nothing.
    ///
    /// # Errors
    /// [`Error::Io`], also if a file of that name has appeared meanwhile and may not be overwritten. Everything
    /// written so far stays, and closing again writes the file anew.
    pub fn close(&mut self) -> Result<()> {
        match self.stage {
            Stage::Open => {
                self.assemble()?;
                self.commit()
            }
            Stage::Complete => Ok(()),
            Stage::Abandoned => Err(Error::Usage(format!(
                "{} was abandoned: there is nothing to complete",
                crate::text::path(&self.path)
            ))),
        }
    }

    /// Writes the whole file, and returns it for reading. It does not have its name yet.
    pub(crate) fn assemble(&mut self) -> Result<FileSource> {
        self.hash_pending()?;
        let mut new = match self.new.take() {
            Some(new) => new,
            None => NewFile::create(self.options.on(), &self.path, self.options.overwrites())?,
        };
        self.lay_out(&mut new)?;
        let source = new.source()?;
        self.new = Some(new);
        Ok(source)
    }

    /// The checksums, in the order of the messages.
    pub(crate) fn checksums(&mut self) -> Result<FileSource> {
        self.hash_pending()?;
        self.checksums.source()
    }

    /// Gives the written file its name.
    pub(crate) fn commit(&mut self) -> Result<()> {
        if let Some(new) = self.new.take() {
            new.commit()?;
            self.stage = Stage::Complete;
        }
        Ok(())
    }

    /// Writes index, terminator, messages and trailer.
    fn lay_out(&mut self, new: &mut NewFile) -> Result<()> {
        let count = self.entries.len() / ENTRY_BYTES as u64;
        let data_start = (count + 1) * ENTRY_BYTES as u64;
        let failed = |error| Error::io(Some(&self.path), "cannot write the new file", error);
        let file = new.file();
        file.set_len(0).map_err(failed)?;
        let mut out = BufWriter::new(file.another());
        let mut index = Incremental::new(&self.key);
        let mut write = |bytes: &[u8], index: Option<&mut Incremental>| {
            if let Some(index) = index {
                index.update(bytes);
            }
            out.write_all(bytes).map_err(failed)
        };
        let (entries, messages, checksums) = (
            self.entries.source()?,
            self.messages.source()?,
            self.checksums.source()?,
        );
        each_piece(&entries, 0, &self.options, |bytes| {
            for entry in bytes.as_chunks_mut::<ENTRY_BYTES>().0 {
                let (_, offset): ([u8; UUID_BYTES], u64) = fields(entry);
                let offset = data_start + offset;
                if let Some(place) = entry.last_chunk_mut() {
                    *place = offset.to_be_bytes();
                }
            }
            write(bytes, Some(&mut index))
        })?;
        write(&[0; ENTRY_BYTES], Some(&mut index))?;
        each_piece(&messages, data_start, &self.options, |bytes| {
            write(bytes, None)
        })?;
        if self.options.flag(&TRAILER) {
            let data_end = data_start + self.data_bytes;
            each_piece(&checksums, data_end, &self.options, |bytes| {
                write(bytes, Some(&mut index))
            })?;
            let foot = Foot::new(&self.key, count, index.finish());
            write(&foot.to_bytes(), None)?;
        }
        out.flush().map_err(failed)
    }
}

/// Passes all bytes of a source to `take`, in pieces. If they are written from `offset` on, every piece but the
/// last ends where a large page of the file ends. From 0 on, pieces are whole entries.
fn each_piece(
    source: &FileSource,
    offset: u64,
    options: &WriteOptions,
    mut take: impl FnMut(&mut [u8]) -> Result<()>,
) -> Result<()> {
    let (mut at, mut buffer) = (0, Vec::new());
    // The first piece begins within a large page.
    let mut piece = PIECE_BYTES as u64 - offset % LARGE_PAGE_BYTES as u64;
    while at < source.len() {
        options.poll()?;
        let left = piece.min(source.len() - at);
        buffer.resize(saturating_usize(left), 0);
        source.read_exact_at(at, &mut buffer)?;
        take(&mut buffer)?;
        (at, piece) = (at + left, PIECE_BYTES as u64);
    }
    Ok(())
}

impl engine::Writer for Writer {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn write(&mut self, fields: &[Value<'_>]) -> Result<Option<RecordId>> {
        let (uuid, type_, value) = self.sequence.record(fields)?;
        self.append(&uuid, type_, value)?;
        Ok(Some(uuid.into_bytes().into()))
    }

    /// Nothing of the file is visible before it is closed. Buffered messages are spilled.
    fn flush(&mut self) -> Result<()> {
        self.hash_pending()?;
        self.entries.flush()?;
        self.messages.flush()?;
        self.checksums.flush()
    }

    /// The same as [`flush`](crate::format::Writer::flush): spilled data does not outlive its writer, on disk or
    /// not.
    fn sync(&mut self) -> Result<()> {
        engine::Writer::flush(self)
    }

    fn close(&mut self) -> Result<()> {
        self.close()
    }

    fn abandon(&mut self) -> Result<()> {
        if self.stage == Stage::Open {
            self.stage = Stage::Abandoned;
            self.new = None;
        }
        Ok(())
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn last(&self) -> Option<RecordId> {
        self.sequence.last().map(RecordId::from)
    }
}
