//! A file that is appended to, and the buffer of its bytes.

use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{NewFile, folder, refuse_irregular};
use crate::bug::OrBug;
use crate::disk::{DiskRef, Handle, Opening};
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::prefetch::CACHE_LINE_BYTES;
use crate::saturating::saturating_usize;
use crate::source::FileSource;
use crate::text;

/// Appends bytes to a file. Only one appender can have a file open (by an advisory lock, on Unix).
///
/// Bytes are buffered: [`flush`](Self::flush) hands them to the operating system, [`sync`](Self::sync) to the disk.
/// After an error of `flush` all bytes are still buffered, and it can be called again. A fork of the process that
/// opened the file writes nothing.
#[derive(Debug)]
pub(crate) struct Appender {
    file: Handle,
    disk: DiskRef,
    path: PathBuf,
    buffer: WriteBuffer,
    /// Whether the file was created by opening it.
    is_new: bool,
    /// Whether the file's name was synced to the disk.
    is_named: bool,
    /// Where the end of the file was put.
    quarantined: Option<PathBuf>,
    stage: Stage,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Open,
    /// A sync failed, so that the disk's state is unknown.
    Unsynced,
    Closed,
}

impl Appender {
    /// Opens a file for writing, at its beginning. [`go_to`](Self::go_to) sets another position.
    ///
    /// # Errors
    /// [`Error::Io`] if the file exists and `append` is not set, if another writer has it open, or if it cannot be
    /// opened.
    pub(crate) fn open(disk: &DiskRef, path: &Path, append: bool) -> Result<Self> {
        if append {
            refuse_irregular(disk, path)?;
        }
        let mut is_new = false;
        let opened = disk.locked(path, true, Handle::lock_beside_readers, || {
            loop {
                let created = disk.handle(path, Opening::New);
                is_new = created.is_ok();
                match created {
                    Err(error) if append && error.kind() == ErrorKind::AlreadyExists => {}
                    created => return created,
                }
                match disk.handle(path, Opening::Write) {
                    // Another writer removed it in between. A link that leads nowhere stays.
                    Err(error) if error.kind() == ErrorKind::NotFound && !disk.is_taken(path) => {}
                    opened => return opened,
                }
            }
        });
        let file = opened.map_err(|error| {
            // If another writer has the lock of the file that was created here, it appends to it. Otherwise nobody needs it.
            if is_new && error.kind() != ErrorKind::ResourceBusy {
                let _ = disk.unlink(path); // the first error is reported
            }
            Error::io(Some(path), "cannot open for writing", error)
        })?;
        Ok(Self {
            file,
            disk: disk.clone(),
            path: path.to_path_buf(),
            buffer: WriteBuffer::new(0),
            is_new,
            is_named: false,
            quarantined: None,
            stage: Stage::Open,
        })
    }

    /// Marks it as inherited by a fork of the process that opened it.
    #[cfg(test)]
    pub(crate) const fn disown(&mut self) {
        self.file.disown();
    }

    /// Removes the file if opening it has created it. Otherwise an empty file would remain after a failure.
    pub(crate) fn discard(&mut self) {
        self.forget();
        if self.is_new && self.file.is_own() {
            let _ = self.disk.unlink(&self.path); // the next writer meets the same error and reports it
        }
    }

    /// The content of the file, to be walked before anything is appended.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn source(&self) -> Result<FileSource> {
        FileSource::of(self.file.another(), &self.disk, &self.path)
    }

    /// The file, for another thread.
    pub(crate) fn handle(&self) -> Handle {
        self.file.another()
    }

    /// Sets the position. The buffer must be empty.
    pub(crate) fn go_to(&mut self, offset: u64) {
        self.buffer.go_to(offset);
    }

    /// Drops the bytes that are not in the file yet.
    pub(crate) fn forget(&mut self) {
        self.buffer.go_to(self.buffer.start());
    }

    /// The bytes that are not in the file yet, to append to. There may be padding before them.
    pub(crate) const fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.bytes()
    }

    /// Whether the buffer should be flushed.
    pub(crate) const fn is_full(&self) -> bool {
        self.buffer.is_full()
    }

    /// Flushes a full buffer.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub(crate) fn flush_if_full(&mut self) -> Result<()> {
        if self.is_full() { self.flush() } else { Ok(()) }
    }

    /// Fills the file with zeros up to `len` bytes. They are written, not only reserved, so a full disk is noticed now.
    /// On failure the file gets its old length.
    pub(crate) fn fill(&mut self, len: u64) -> Result<()> {
        let present = self
            .file
            .len()
            .map_err(|error| self.failed("cannot stat", error))?;
        let filled = pieces(present, len).try_for_each(|piece| self.zero_piece(piece));
        if filled.is_err() {
            let _ = self.file.set_len(present); // the first error is reported
        }
        filled
    }

    /// Overwrites the bytes from `start` to `end` with zeros, the last ones first. If this is interrupted, a shorter
    /// torn tail remains, whose beginning is intact.
    fn zero(&self, start: u64, end: u64) -> Result<()> {
        pieces(start, end)
            .rev()
            .try_for_each(|piece| self.zero_piece(piece))
    }

    fn zero_piece(&self, piece: Range<u64>) -> Result<()> {
        let (at, bytes) = (piece.start, piece.end - piece.start);
        let zeros = vec![0; saturating_usize(bytes)];
        let action = format!("cannot write {bytes} zeros at offset {at}");
        let written = self.file.write_all_at(&zeros, at);
        written.map_err(|error| self.failed(&action, error))
    }

    /// Cuts the file off at this length.
    pub(crate) fn truncate(&self, len: u64) -> Result<()> {
        self.file
            .set_len(len)
            .map_err(|error| self.failed(&format!("cannot cut off at offset {len}"), error))
    }

    /// Removes a range at the end of the data, after it is in a file of its own, synced. What is appended next begins there. The file
    /// keeps its length if `zeros` take the place of the range; otherwise it is cut off. `name` gives the path of the other file: of
    /// the first number, from 0 on, whose path is free. What was put aside before stays, as it may be what this range was before its
    /// removal was interrupted.
    pub(crate) fn remove_tail(
        &mut self,
        torn: Range<u64>,
        zeros: bool,
        name: impl Fn(u64) -> PathBuf,
    ) -> Result<()> {
        let mut paths = (0..).map(name);
        let free = paths.find(|path| !self.disk.is_taken(path));
        let aside = free.or_bug("a name that is free")?;
        let mut new = NewFile::create_like(&self.disk, &aside, true, &self.path)?;
        for piece in pieces(torn.start, torn.end) {
            let mut bytes = vec![0; saturating_usize(piece.end - piece.start)];
            let read = self.file.read_exact_at(&mut bytes, piece.start);
            read.map_err(|error| self.failed("cannot read the torn tail", error))?;
            let written = new.file().write_all_at(&bytes, piece.start - torn.start);
            written.map_err(|error| Error::io(Some(&aside), "cannot write", error))?;
        }
        new.commit()?;
        self.quarantined = Some(aside);
        if zeros {
            self.zero(torn.start, torn.end)?;
        } else {
            self.truncate(torn.start)?;
        }
        self.go_to(torn.start);
        self.sync()
    }

    /// [Removes a range](Self::remove_tail), after it is in a file beside this one.
    pub(crate) fn quarantine(&mut self, torn: Range<u64>, zeros: bool) -> Result<()> {
        let (path, offset) = (self.path.clone(), torn.start);
        self.remove_tail(torn, zeros, |number| {
            let mut name = path.clone().into_os_string();
            name.push(quarantine_suffix(offset, number));
            name.into()
        })
    }

    /// The file that has what [`remove_tail`](Self::remove_tail) removed last.
    pub(crate) fn quarantined(&self) -> Option<&Path> {
        self.quarantined.as_deref()
    }

    /// Hands all bytes to the operating system. They survive the end of this process.
    ///
    /// # Errors
    /// [`Error::Io`]. Unwritten bytes stay buffered, and flushing again writes them to their place.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.stage == Stage::Unsynced {
            return Err(self.refusal());
        }
        let (bytes, at) = (self.buffer.len(), self.buffer.start());
        self.buffer.write_to(&self.file).map_err(|error| {
            let action = format!(
                "cannot write {bytes} bytes at offset {at}: they stay buffered, so flush again"
            );
            self.failed(&action, error)
        })
    }

    /// Flushes, and ends the lock. Nothing can be appended afterwards.
    ///
    /// # Errors
    /// As [`flush`](Self::flush): it is open then, and can be closed again, except after a failed sync.
    pub(crate) fn close(&mut self) -> Result<()> {
        if self.stage == Stage::Unsynced {
            return self.abandon();
        }
        self.flush()?;
        self.end();
        Ok(())
    }

    /// Writes what it can, and ends the lock in any case. Nothing can be appended afterwards.
    ///
    /// # Errors
    /// As [`flush`](Self::flush): what could not be written is lost.
    pub(crate) fn abandon(&mut self) -> Result<()> {
        let flushed = self.flush();
        self.end();
        flushed
    }

    fn end(&mut self) {
        self.buffer.go_to(self.buffer.end());
        if self.stage == Stage::Open {
            self.stage = Stage::Closed;
        }
        self.file.unlock();
    }

    /// Hands all bytes to the disk. They survive a loss of power.
    ///
    /// # Errors
    /// [`Error::Io`]. After a failed sync the disk's state is unknown, so every later call fails too. Open the file
    /// again, which walks it.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.flush()?;
        let synced = self.file.sync_data().and_then(|()| {
            if self.is_named {
                return Ok(());
            }
            self.disk.sync_folder(folder(&self.path))
        });
        self.is_named = synced.is_ok();
        if synced.is_err() {
            self.stage = Stage::Unsynced;
        }
        synced.map_err(|error| {
            let action =
                "cannot sync, so the state of the disk is unknown: check the disk, then open the file again";
            self.failed(action, error)
        })
    }

    /// Whether all bytes were handed to the operating system.
    pub(crate) const fn is_flushed(&self) -> bool {
        self.buffer.len() == 0
    }

    /// The offset of the next byte in the file.
    pub(crate) const fn position(&self) -> u64 {
        self.buffer.end()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses to append after it was closed, or after a failed sync.
    ///
    /// # Errors
    /// [`Error::Usage`]; [`Error::Io`].
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.stage != Stage::Open {
            return Err(self.refusal());
        }
        Ok(())
    }

    #[cold]
    fn refusal(&self) -> Error {
        if self.stage == Stage::Closed {
            return Error::Usage(format!(
                "{}: the writer is closed: open the file again to append to it",
                text::path(&self.path)
            ));
        }
        let error = std::io::Error::other(
            "an earlier sync failed, so the state of the disk is unknown: check the disk, then open the file again",
        );
        self.failed("cannot write", error)
    }

    /// The error if damage that should prevent appending is gone.
    pub(crate) fn changed(&self) -> Error {
        let error = std::io::Error::new(
            ErrorKind::InvalidData,
            "the file changed while it was walked",
        );
        self.failed("cannot append", error)
    }

    pub(crate) fn failed(&self, action: &str, error: std::io::Error) -> Error {
        Error::io(Some(&self.path), action, error)
    }
}

/// How the name ends of a file that keeps what was removed at this offset of another one.
pub(crate) fn quarantine_suffix(offset: u64, number: u64) -> String {
    match number {
        0 => format!(".{offset}.quarantine"),
        _ => format!(".{offset}-{number}.quarantine"),
    }
}

/// Whether this part of a name is what [`quarantine_suffix`] has before the extension.
pub(crate) fn is_quarantine_offset(part: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    part.splitn(2, '-').all(is_number)
}

/// Splits the bytes from `start` to `end` into pieces that are written at once.
pub(crate) fn pieces(start: u64, end: u64) -> impl DoubleEndedIterator<Item = Range<u64>> {
    const PIECE_BYTES: u64 = BUFFER_BYTES as u64;
    let count = end.saturating_sub(start).div_ceil(PIECE_BYTES);
    (0..count).map(move |number| {
        let at = start + number * PIECE_BYTES;
        at..end.min(at.saturating_add(PIECE_BYTES))
    })
}

impl Drop for Appender {
    fn drop(&mut self) {
        if !self.is_flushed() {
            let _ = self.flush(); // call `flush` to see errors
        }
        self.file.unlock();
    }
}

/// [`Limits::write_buffer_bytes`](crate::limits::Limits::write_buffer_bytes).
const BUFFER_BYTES: usize = LIMITS.write_buffer_bytes;

/// Consecutive bytes of a file, written [`BUFFER_BYTES`] at a time.
#[derive(Debug)]
pub(crate) struct WriteBuffer {
    /// The offset of the first byte.
    at: u64,
    /// The bytes, after `padding` zeros. With padding, they have the same place in their cache lines as in the file,
    /// which makes copying into the page cache fastest.
    bytes: Vec<u8>,
    padding: usize,
}

impl WriteBuffer {
    /// An empty buffer; the first byte will be at this offset.
    pub(crate) const fn new(at: u64) -> Self {
        Self {
            at,
            bytes: Vec::new(),
            padding: 0,
        }
    }

    /// The bytes that are not in the file yet, after padding, to append to.
    pub(crate) const fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The pending bytes.
    pub(crate) fn pending(&self) -> Result<&[u8]> {
        let pending = self.bytes.get(self.padding..);
        pending.or_bug("bytes that are only appended to")
    }

    /// The number of pending bytes.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len() - self.padding
    }

    /// The offset of the first pending byte.
    pub(crate) const fn start(&self) -> u64 {
        self.at
    }

    /// The offset of the next byte.
    pub(crate) const fn end(&self) -> u64 {
        self.at + self.len() as u64
    }

    /// Whether the buffer should be written.
    pub(crate) const fn is_full(&self) -> bool {
        self.len() >= BUFFER_BYTES
    }

    /// Writes all pending bytes. On failure they stay, and writing again puts them in their place.
    pub(crate) fn write_to(&mut self, file: &Handle) -> io::Result<()> {
        let pending = self.pending().map_err(io::Error::other)?;
        file.write_all_at(pending, self.at)?;
        self.go_to(self.end());
        Ok(())
    }

    /// Drops the pending bytes; the next byte will be at this offset.
    pub(crate) fn go_to(&mut self, at: u64) {
        self.at = at;
        self.bytes.clear();
        self.bytes.shrink_to(BUFFER_BYTES * 2);
        let within_line = saturating_usize(at % CACHE_LINE_BYTES as u64);
        self.padding = if self.bytes.capacity() < CACHE_LINE_BYTES {
            0 // no memory yet that would have an address
        } else {
            within_line.wrapping_sub(self.bytes.as_ptr().addr()) % CACHE_LINE_BYTES
        };
        self.bytes.resize(self.padding, 0);
    }

    /// Overwrites earlier bytes, whether they are in the file or pending. All of them must be on the same side.
    pub(crate) fn patch(&mut self, file: &Handle, at: u64, bytes: [u8; 4]) -> io::Result<()> {
        let place = at
            .checked_sub(self.at)
            .and_then(|place| usize::try_from(place).ok());
        let pending = place.and_then(|place| self.bytes.get_mut(self.padding + place..));
        match pending.and_then(<[u8]>::first_chunk_mut) {
            Some(pending) => *pending = bytes,
            None => file.write_all_at(&bytes, at)?,
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn its_lock_ends_with_it_though_a_fork_has_the_file_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let open = |append| Appender::open(&DiskRef::default(), &path, append);
        let writer = open(false).unwrap();
        let fork = writer.handle();
        assert!(open(true).is_err());
        drop(writer);
        open(true).unwrap();
        drop(fork);
    }

    #[test]
    fn pieces_lie_side_by_side() {
        const MIB: u64 = 1 << 20;
        let laid = |start, end| {
            let ends = pieces(start, end).map(|piece| (piece.start, piece.end));
            ends.collect::<Vec<_>>()
        };
        assert_eq!(laid(5, 5), []);
        assert_eq!(laid(6, 5), []);
        assert_eq!(laid(5, 6), [(5, 6)]);
        assert_eq!(laid(5, 5 + MIB), [(5, 5 + MIB)]);
        assert_eq!(laid(5, 6 + MIB), [(5, 5 + MIB), (5 + MIB, 6 + MIB)]);
        assert_eq!(laid(0, 2 * MIB), [(0, MIB), (MIB, 2 * MIB)]);
        let backwards = pieces(7, 2 * MIB + 9).rev().map(|piece| piece.start);
        assert!(backwards.eq([7 + 2 * MIB, 7 + MIB, 7]));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod buffer_tests {
    use super::*;
    use crate::disk::{Disk, System};

    fn nameless() -> Handle {
        Handle::new(System.nameless(&std::env::temp_dir()).unwrap())
    }

    /// Memory is reused for later bytes, except that of one large record.
    #[test]
    fn two_mebibytes_are_kept_at_most() {
        let file = nameless();
        let mut buffer = WriteBuffer::new(0);
        buffer.bytes().resize(BUFFER_BYTES * 3 / 2, 1);
        let usual = buffer.bytes.capacity();
        buffer.write_to(&file).unwrap();
        assert_eq!(buffer.bytes.capacity(), usual);
        buffer.bytes().resize(BUFFER_BYTES * 8, 1);
        buffer.write_to(&file).unwrap();
        assert_eq!(buffer.bytes.capacity(), BUFFER_BYTES * 2);
    }

    proptest::proptest! {
        #[test]
        fn what_is_given_is_written_to_where_it_belongs(start in 0..200_u64, pieces: Vec<(Vec<u8>, bool)>) {
            let file = nameless();
            let (mut buffer, mut expected) = (WriteBuffer::new(start), Vec::new());
            for (bytes, is_flushed) in pieces {
                buffer.bytes().extend_from_slice(&bytes);
                expected.extend_from_slice(&bytes);
                if is_flushed {
                    buffer.write_to(&file).unwrap();
                    proptest::prop_assert_eq!(buffer.len(), 0);
                    // After memory was allocated, the next byte has the same place in its cache line as in the file's
                    // page.
                    let next = buffer.bytes.as_ptr().addr() + buffer.bytes.len();
                    let distance = next.abs_diff(usize::try_from(buffer.end()).unwrap());
                    proptest::prop_assert!(
                        distance.is_multiple_of(CACHE_LINE_BYTES) || buffer.bytes.capacity() < CACHE_LINE_BYTES
                    );
                }
                proptest::prop_assert_eq!(buffer.end(), start + expected.len() as u64);
                proptest::prop_assert!(expected.ends_with(buffer.pending().unwrap()));
            }
            buffer.write_to(&file).unwrap();
            let mut written = vec![0; expected.len()];
            file.read_exact_at(&mut written, start).unwrap();
            proptest::prop_assert_eq!(written, expected);
        }

        #[test]
        fn bytes_are_forgotten_and_changed_on_either_side(flushed: [u8; 100], kept: [u8; 50], place in 0..47_u64) {
            let file = nameless();
            let mut buffer = WriteBuffer::new(3);
            buffer.bytes().extend_from_slice(&flushed);
            buffer.write_to(&file).unwrap();
            buffer.bytes().extend_from_slice(&kept);
            buffer.patch(&file, 3 + place, [1, 2, 3, 4]).unwrap();
            buffer.patch(&file, 103 + place, [5, 6, 7, 8]).unwrap();
            let at = usize::try_from(place).unwrap();
            proptest::prop_assert_eq!(buffer.pending().unwrap().get(at..at + 4), Some(&[5, 6, 7, 8][..]));
            let mut written = [0; 4];
            file.read_exact_at(&mut written, 3 + place).unwrap();
            proptest::prop_assert_eq!(written, [1, 2, 3, 4]);
            buffer.go_to(buffer.start());
            proptest::prop_assert_eq!((buffer.len(), buffer.end()), (0, 103));
        }
    }
}
