//! The synced mark: how far a log is known to be on the disk. docs/formats/log.md, "The synced mark".
//!
//! ```text
//! file: slot 64 ‖ zeros to 4096 ‖ slot 64 ‖ zeros to 8192
//! slot: magic "SEGLMARK" ‖ version u32 = 1 ‖ zero u32 ‖ counter u64 ‖ sequence u64 ‖ offset u64 ‖ last UUID 16 ‖ hash u64
//! ```
//! Integers are unsigned and big-endian. The hash is HighwayHash-64 of the 56 bytes before it, under the log's key.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::folder::LogFolder;
use super::name::MARK;
use crate::checksum::{Key, hash};
use crate::cursor::Cursor;
use crate::disk::{Handle, Opening};
use crate::error::{Damage, Error, Finding, Result};
use crate::ledger::Cause;
use crate::saturating::saturating_usize;

const MAGIC: &[u8; 8] = b"SEGLMARK";
const VERSION: u32 = 1;
pub(super) const SLOT_BYTES: usize = 64;
const HASHED_BYTES: usize = SLOT_BYTES - 8;
/// Magic, version, and zero.
const FRONT_BYTES: usize = 16;
/// Slots are a page apart, so that no sector and no page holds both.
const SLOT_OFFSETS: [u64; 2] = [0, 4096];
const PAGE_BYTES: usize = 4096;
const FILE_BYTES: usize = 2 * PAGE_BYTES;

/// How far a log is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Synced {
    /// The segment's place in the log.
    pub sequence: u64,
    /// The offset in the segment, in bytes.
    pub offset: u64,
    /// The UUID of the last record up to there.
    pub uuid: Uuid,
}

/// How far the log is on the disk. Nothing before it may be lost or damaged without an error; it says nothing of what
/// is after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// Greater in each mark than in the one before.
    pub(super) counter: u64,
    /// The place in the log of the segment that it is in; 0 while nothing was written.
    pub(super) sequence: u64,
    /// The offset in that segment, in bytes, up to which it is on the disk.
    pub(super) offset: u64,
    /// The UUID of the last record up to there.
    pub(super) last: [u8; 16],
}

impl Mark {
    /// The bytes of a slot.
    pub(super) fn encode(&self, key: &Key) -> Vec<u8> {
        let fields: [&[u8]; 7] = [
            MAGIC,
            &VERSION.to_be_bytes(),
            &[0; 4],
            &self.counter.to_be_bytes(),
            &self.sequence.to_be_bytes(),
            &self.offset.to_be_bytes(),
            &self.last,
        ];
        let mut slot = fields.concat();
        let hashed = hash(key, &slot);
        slot.extend(hashed.to_be_bytes());
        slot
    }

    /// What a slot holds; `None` if it is not a whole mark of a known version under this key.
    pub(super) fn decode(slot: &[u8; SLOT_BYTES], key: &Key) -> Option<Self> {
        let mut bytes = Cursor::new(slot.get(FRONT_BYTES..)?);
        let mark = Self {
            counter: bytes.u64_be()?,
            sequence: bytes.u64_be()?,
            offset: bytes.u64_be()?,
            last: *bytes.array()?,
        };
        let hashed = slot.get(..HASHED_BYTES)?;
        let is_whole = is_shaped(slot) && bytes.u64_be()? == hash(key, hashed);
        is_whole.then_some(mark)
    }

    /// How far the log is on the disk; `None` while nothing was written.
    pub(super) fn place(&self) -> Option<Synced> {
        (self.sequence > 0).then(|| Synced {
            sequence: self.sequence,
            offset: self.offset,
            uuid: Uuid::from_bytes(self.last),
        })
    }

    /// The mark of a log's folder; one of nothing where its file is lost.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn read(folder: &LogFolder) -> Result<Self> {
        Self::find(folder).map(|(mark, _)| mark)
    }

    /// The same, and what is in the file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn find(folder: &LogFolder) -> Result<(Self, MarkState)> {
        let path = folder.join(MARK);
        let opened = folder.disk.handle(&path, Opening::ReadOwn);
        match opened.and_then(|file| Slots::read(&file, &folder.key)?.or_unreadable()) {
            Ok(slots) => {
                let mark = match slots.later() {
                    Some((_, mark)) => mark,
                    None => Self::default(),
                };
                Ok((mark, slots.found()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Ok((Self::default(), MarkState::Blank))
            }
            Err(error) => Err(Error::io(Some(&path), "cannot read the synced mark", error)),
        }
    }
}

/// Whether a slot begins as a mark does: a key that is not the log's changes the hash alone.
fn is_shaped(slot: &[u8; SLOT_BYTES]) -> bool {
    let mut bytes = Cursor::new(slot);
    bytes.run_up_to(MAGIC.len()) == MAGIC
        && bytes.u32_be() == Some(VERSION)
        && bytes.u32_be() == Some(0)
}

/// What the slots of a mark's file hold, of whatever length that is.
struct Slots([Slot; 2]);

struct Slot {
    bytes: [u8; SLOT_BYTES],
    mark: Option<Mark>,
    /// Why the disk cannot read it.
    error: Option<io::Error>,
}

impl Slots {
    fn read(file: &Handle, key: &Key) -> io::Result<Self> {
        let len = file.len()?;
        Ok(Self(SLOT_OFFSETS.map(|offset| {
            let mut bytes = [0; SLOT_BYTES];
            let there = saturating_usize(len.saturating_sub(offset)).min(SLOT_BYTES);
            let read = match bytes.get_mut(..there) {
                // Twice, as other pages: what is taken for lost proves nothing any more.
                Some(slot) => file
                    .read_exact_at(slot, offset)
                    .or_else(|_| file.read_exact_at(slot, offset)),
                None => Ok(()),
            };
            let (mark, error) = match read {
                Ok(()) => (Mark::decode(&bytes, key), None),
                Err(error) => (None, Some(error)),
            };
            Slot { bytes, mark, error }
        })))
    }

    /// What can be read, if it has a mark: a slot that the disk cannot read is one without. Where there is no other, the disk may well
    /// have a mark, which must not be taken for none in silence.
    fn or_unreadable(mut self) -> io::Result<Self> {
        match self.0.iter_mut().find_map(|slot| slot.error.take()) {
            Some(error) if self.later().is_none() => Err(error),
            _ => Ok(self),
        }
    }

    fn found(&self) -> MarkState {
        let is_used = |slot: &&Slot| slot.error.is_some() || slot.bytes != [0; SLOT_BYTES];
        match self.0.iter().filter(is_used).count() {
            _ if self.later().is_some() => MarkState::Mark,
            0 => MarkState::Blank,
            1 => MarkState::Begun,
            _ if self.0.iter().any(|slot| is_shaped(&slot.bytes)) => MarkState::Other,
            _ => MarkState::Damaged,
        }
    }

    /// The number of the slot with the later mark, and that mark.
    fn later(&self) -> Option<(usize, Mark)> {
        let slots = self.0.iter().enumerate();
        let whole = slots.filter_map(|(number, slot)| Some((number, slot.mark?)));
        whole.max_by_key(|(_, mark)| mark.counter)
    }
}

/// The file of the mark, open for the log's only writer.
///
/// One slot always holds a mark that is on the disk. Marks that are not synced yet all go into the other one, so that a loss of
/// power, which may leave any bytes in that, never takes the mark away.
#[derive(Debug)]
pub(super) struct MarkFile {
    file: Handle,
    path: PathBuf,
    folder: LogFolder,
    mark: Mark,
    /// What the slot without [`mark`](Self::mark) holds.
    other: Mark,
    /// The slot that the next mark is written to.
    free: usize,
    /// The mark in the free slot was written since the last sync.
    is_unsynced: bool,
    /// The offsets of slots that the disk cannot read.
    unreadable: Vec<u64>,
    found: MarkState,
}

/// What a mark's file held when it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkState {
    /// A mark under this key: so the key is the log's.
    Mark,
    /// Nothing.
    Blank,
    /// One slot alone has bytes, which are not a mark under this key. While a log is begun, before its first record, a loss of power
    /// leaves that of its first mark. After that there are always two.
    Begun,
    /// Marks of which none is right under this key: probably it is another one, but both may be damaged.
    Other,
    /// Bytes that are not a mark under any key.
    Damaged,
}

impl MarkState {
    /// Whether the key may be another one.
    pub(super) const fn is_foreign(self) -> bool {
        matches!(self, Self::Begun | Self::Other | Self::Damaged)
    }

    /// The error where neither the mark nor any record says that the key is the log's. `is_suspected`: the segment at this path is sound
    /// but for its checksums.
    pub(super) fn unknown_key(self, path: &Path, is_suspected: bool) -> Error {
        let found = match self {
            _ if is_suspected => "neither",
            Self::Other => {
                "no record that is whole, and a mark that is under another key or damaged. If the key is right, nothing of this file \
                 can be read: move it and _mark elsewhere"
            }
            _ => {
                "no record that is whole, and no mark. If the key is right, nothing of this file can be read: move it and _mark elsewhere"
            }
        };
        let expected = "a synced mark or records under this key";
        let finding = Finding::words(Cause::ChecksumMismatch, expected, found);
        Error::Damage(Box::new(Damage {
            wrong_key: is_suspected || self == Self::Other,
            ..Damage::new(Some(path), 0, finding)
        }))
    }

    /// Refuses the key of a log that has no segment.
    ///
    /// # Errors
    /// [`Error::Damage`].
    pub(super) fn check_empty(self, folder: &Path) -> Result<()> {
        if !matches!(self, Self::Other | Self::Damaged) {
            return Ok(());
        }
        let finding = Finding::words(
            Cause::ChecksumMismatch,
            "a synced mark under this key",
            "one under another key or a damaged one, and no segment: with the log's key nothing of it can be lost. If that is not known \
             and the log had no records, remove this file",
        );
        Err(Error::Damage(Box::new(Damage {
            wrong_key: self == Self::Other,
            ..Damage::new(Some(&folder.join(MARK)), 0, finding)
        })))
    }
}

impl MarkFile {
    /// Opens a log's mark, or creates its file. [`begin`](Self::begin) comes before the first mark.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn open(folder: &LogFolder) -> Result<Self> {
        let path = folder.join(MARK);
        let failed = |error| Error::io(Some(&path), "cannot open the synced mark", error);
        let file = match folder.disk.handle(&path, Opening::WriteOwn) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                folder.disk.handle(&path, Opening::New)
            }
            opened => opened,
        };
        let file = file.map_err(failed)?;
        let slots = Slots::read(&file, &folder.key).map_err(failed)?;
        let found = slots.found();
        let (used, mark) = match slots.later() {
            Some(later) => later,
            None => (1, Mark::default()),
        };
        let unreadable = slots.0.iter().zip(SLOT_OFFSETS);
        let unreadable = unreadable.filter(|(slot, _)| slot.error.is_some());
        let unreadable = unreadable.map(|(_, offset)| offset).collect();
        Ok(Self {
            file,
            path,
            folder: folder.clone(),
            mark,
            other: Mark::default(),
            free: 1 - used,
            is_unsynced: false,
            unreadable,
            found,
        })
    }

    /// What the file held when it was opened.
    pub(super) const fn found(&self) -> MarkState {
        self.found
    }

    /// Makes the file ready to write marks to: it has its length and a mark on the disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn begin(&mut self) -> Result<()> {
        let failed = |error| Error::io(Some(&self.path), "cannot begin the synced mark", error);
        let len = self.file.len().map_err(failed)?;
        if len < FILE_BYTES as u64 {
            // Written, not only reserved, so that writing a mark later never lacks room.
            let zeros = vec![0; FILE_BYTES - saturating_usize(len)];
            self.file.write_all_at(&zeros, len).map_err(failed)?;
        }
        for offset in std::mem::take(&mut self.unreadable) {
            // All of its page, which need not be read for that: the drive puts it elsewhere.
            let page = [0; PAGE_BYTES];
            self.file.write_all_at(&page, offset).map_err(failed)?;
        }
        if self.found != MarkState::Mark {
            self.advance(self.mark.sequence, self.mark.offset, self.mark.last)?;
            self.sync()?;
        }
        // What was found may be in memory alone: the mark of a process that was killed.
        self.advance(self.mark.sequence, self.mark.offset, self.mark.last)?;
        self.sync()?;
        let synced = self.folder.disk.sync_folder(&self.folder.path);
        synced.map_err(|error| self.failed("cannot sync the folder of", error))
    }

    /// The last mark that was written.
    pub(super) const fn mark(&self) -> Mark {
        self.mark
    }

    /// Writes that the log is on the disk up to this offset of a segment, whose last record up to there has this UUID. Readers
    /// see it at once; [`sync`](Self::sync) makes it survive a loss of power.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn advance(&mut self, sequence: u64, offset: u64, last: [u8; 16]) -> Result<()> {
        let mark = Mark {
            counter: self.next_counter()?,
            sequence,
            offset,
            last,
        };
        let [first, second] = SLOT_OFFSETS;
        let at = if self.free == 0 { first } else { second };
        let written = self.file.write_all_at(&mark.encode(&self.folder.key), at);
        written.map_err(|error| self.failed("cannot write the synced mark", error))?;
        if !self.is_unsynced {
            self.other = self.mark;
        }
        self.mark = mark;
        self.is_unsynced = true;
        Ok(())
    }

    /// Makes the last mark survive a loss of power, and the loss of either slot: both are synced, one after the other, and have the same
    /// place.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn finish(&mut self) -> Result<()> {
        self.sync()?;
        let (mark, other) = (self.mark, self.other);
        if (mark.sequence, mark.offset) != (other.sequence, other.offset) {
            self.advance(mark.sequence, mark.offset, mark.last)?;
        }
        self.sync()
    }

    fn next_counter(&self) -> Result<u64> {
        self.mark.counter.checked_add(1).ok_or_else(|| {
            let error = io::Error::other(
                "its counter has the greatest number, so no mark can follow. Remove it while no writer has the log open: the log then begins a new one",
            );
            self.failed("cannot write the synced mark", error)
        })
    }

    /// Makes the last mark survive a loss of power.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn sync(&mut self) -> Result<()> {
        if !self.is_unsynced {
            return Ok(());
        }
        let synced = self.file.sync_data();
        synced.map_err(|error| self.failed("cannot sync the synced mark", error))?;
        self.is_unsynced = false;
        self.free = 1 - self.free;
        Ok(())
    }

    fn failed(&self, action: &str, error: io::Error) -> Error {
        Error::io(Some(&self.path), action, error)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::disk::DiskRef;

    const KEY: Key = Key::DEFAULT;
    const LAST: [u8; 16] = [7; 16];

    fn log(folder: &Path, key: Key) -> LogFolder {
        LogFolder {
            disk: DiskRef::default(),
            path: folder.to_path_buf(),
            key,
        }
    }

    fn opened(folder: &Path) -> MarkFile {
        let mut file = MarkFile::open(&log(folder, KEY)).unwrap();
        file.begin().unwrap();
        file
    }

    fn read(folder: &Path) -> Mark {
        Mark::read(&log(folder, KEY)).unwrap()
    }

    #[test]
    fn a_slot_is_what_the_layout_says() {
        let mark = Mark {
            counter: 3,
            sequence: 2,
            offset: 0x0102,
            last: LAST,
        };
        let slot: [u8; SLOT_BYTES] = mark.encode(&KEY).try_into().unwrap();
        let mut expected =
            b"SEGLMARK\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\x01\x02"
                .to_vec();
        expected.extend(LAST);
        assert_eq!(slot[..HASHED_BYTES], expected);
        assert_eq!(Mark::decode(&slot, &KEY), Some(mark));
        assert_eq!(Mark::decode(&slot, &Key::new(&[1; 32])), None);
        for bit in 0..SLOT_BYTES * 8 {
            let mut flipped = slot;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Mark::decode(&flipped, &KEY), None, "bit {bit}");
        }
    }

    #[test]
    fn a_mark_that_is_synced_is_never_overwritten_by_one_that_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(MARK);
        assert_eq!(read(folder.path()), Mark::default());
        let mut file = opened(folder.path());
        for round in 1..5 {
            file.advance(1, round * 10, LAST).unwrap();
            file.sync().unwrap();
            let synced = std::fs::read(&path).unwrap();
            for offset in [round * 10 + 1, round * 10 + 2] {
                file.advance(1, offset, LAST).unwrap();
                assert_eq!(read(folder.path()), file.mark());
            }
            // Whatever became of the unsynced slot, the synced one is there.
            let mut torn = std::fs::read(&path).unwrap();
            for (byte, before) in torn.iter_mut().zip(&synced) {
                if byte != before {
                    *byte = !*byte;
                }
            }
            let elsewhere = tempfile::tempdir().unwrap();
            std::fs::write(elsewhere.path().join(MARK), &torn).unwrap();
            assert_eq!(read(elsewhere.path()).offset, round * 10);
        }
    }

    #[test]
    fn no_mark_follows_the_greatest_counter() {
        let folder = tempfile::tempdir().unwrap();
        drop(opened(folder.path()));
        let mark = Mark {
            counter: u64::MAX,
            ..Mark::default()
        };
        let path = folder.path().join(MARK);
        std::fs::write(&path, mark.encode(&KEY)).unwrap();
        let mut file = MarkFile::open(&log(folder.path(), KEY)).unwrap();
        let error = file.begin().unwrap_err().to_string();
        assert!(error.contains("greatest number"), "{error}");
        assert_eq!(read(folder.path()), mark);
    }

    #[test]
    fn what_is_found_tells_whether_the_key_is_the_logs() {
        let folder = tempfile::tempdir().unwrap();
        let found = |key: Key| MarkFile::open(&log(folder.path(), key)).unwrap().found();
        assert_eq!(found(KEY), MarkState::Blank);
        let mut file = opened(folder.path());
        assert_eq!(
            std::fs::read(folder.path().join(MARK)).unwrap().len(),
            FILE_BYTES
        );
        assert_eq!(found(KEY), MarkState::Mark);
        assert_eq!(found(Key::new(&[1; 32])), MarkState::Other);
        file.advance(2, 3, LAST).unwrap();
        drop(file);
        let again = opened(folder.path());
        assert_eq!((again.mark().sequence, again.mark().offset), (2, 3));
    }
}
