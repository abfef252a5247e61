//! Appends to a new or an existing segment; and what writers of active and sealed segments and of logs share: ascending
//! UUIDs, and the fields of a record.

use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use super::layout::{CHECKSUM_BYTES, MAX_HEADER_BYTES, UUID_BYTES, encode_unhashed, put_checksum};
use super::walk::ActiveWalk;
use super::{COLUMNS, FORMAT, PREALLOCATE, judge};
use crate::checksum::{Key, hash_many};
use crate::disk::{DiskRef, Handle};
use crate::engine::writer::missing;
use crate::engine::{self, WriteOptions, Writer as _, append};
use crate::error::{Error, Result};
use crate::ledger::{Kind, Span, Summary};
use crate::limits::LIMITS;
use crate::output::Appender;
use crate::record::{Column, RecordId, Value};
use crate::saturating::saturating_usize;
use crate::source::{Source, Window, data_end_after};
use crate::spec::settings::ZERO_TORN_TAIL;
use crate::uuid6::{Generator, is_v6, timestamp_micros};
use crate::walk::{Begin, Options, Walk};

/// How many bytes of a torn tail are searched at once for the beginnings of other records.
const SEARCHED_BYTES: usize = 1 << 20;

/// Appends records to a segment. An advisory lock (on Unix) excludes a second writer of the same file.
///
/// Records are buffered: [`flush`](engine::Writer::flush) hands them to the operating system, [`sync`](engine::Writer::sync) to the disk.
/// An error of `flush` loses nothing: call it again. Dropping a writer flushes it without reporting errors.
#[derive(Debug)]
pub struct Writer {
    out: Appender,
    /// Records in the buffer without a checksum. They get it before any byte leaves the buffer.
    unhashed: Unhashed,
    key: Key,
    sequence: Sequence,
    found: Summary,
}

impl Writer {
    /// Opens a segment for appending. Walks an existing one first.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file exists without
    /// [`IfExists::Append`](crate::format::IfExists::Append), is open in another writer, or cannot be opened or
    /// filled. [`Error::Damage`](crate::Error::Damage) if an existing file ends in damage (for a torn tail: only
    /// without `zero_torn_tail`) or is probably under another key.
    pub fn open(path: &Path, options: &WriteOptions) -> Result<Self> {
        options.check(&FORMAT)?;
        let mut writer = Self {
            out: Appender::open(options.on(), path, options.appends())?,
            unhashed: Unhashed::default(),
            key: options.key.unwrap_or(Key::DEFAULT),
            sequence: Sequence::default(),
            found: Summary::new(FORMAT.checked, Some(path), 0),
        };
        let ready = writer.find_end(options);
        let ready = ready.and_then(|()| writer.out.fill(options.bytes(&PREALLOCATE)));
        ready.inspect_err(|_| writer.out.discard())?;
        Ok(writer)
    }

    /// Opens a segment whose end is known, to append at this offset. The last record before it has this UUID.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub(crate) fn resume(
        disk: &DiskRef,
        path: &Path,
        key: Key,
        offset: u64,
        last: [u8; 16],
    ) -> Result<Self> {
        let mut out = Appender::open(disk, path, true)?;
        out.go_to(offset);
        let mut sequence = Sequence::default();
        sequence.set_last(last);
        Ok(Self {
            out,
            unhashed: Unhashed::default(),
            key,
            sequence,
            found: Summary::new(FORMAT.checked, Some(path), 0),
        })
    }

    /// The file, to be synced or read while records are appended.
    pub(crate) fn handle(&self) -> Handle {
        self.out.handle()
    }

    /// Whether it is time to flush.
    pub(crate) const fn is_full(&self) -> bool {
        self.out.is_full()
    }

    /// Fills the file with zeros up to this length.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io): the file is as long as it was.
    pub(crate) fn fill(&mut self, len: u64) -> Result<()> {
        self.out.fill(len)
    }

    /// Takes back all records from this offset on, in the buffer and in the file, also after a loss of power. The last record
    /// before it has this UUID.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io): some of the records may be in the file.
    pub(crate) fn roll_back(&mut self, offset: u64, last: Option<[u8; 16]>) -> Result<()> {
        self.unhashed = Unhashed::default();
        self.out.go_to(offset);
        self.sequence.last = last;
        self.out.truncate(offset)?;
        self.out.sync()
    }

    /// Drops the records that are not in the file yet.
    pub(crate) fn forget(&mut self) {
        self.unhashed = Unhashed::default();
        self.out.forget();
    }

    /// Walks the existing records, to find the last UUID and where to append.
    fn find_end(&mut self, options: &WriteOptions) -> Result<()> {
        let source = Arc::new(self.out.source()?);
        let lenient = append::reading(options);
        let mut walk = ActiveWalk::open(source.clone(), &lenient, Begin::Beginning)?;
        self.found = Summary::new(FORMAT.checked, source.path(), source.len());
        let end = append::survey(&mut walk, &mut self.found, |walk| {
            let rows = walk.rows();
            if let Some(Value::Uuid(uuid)) = rows.len().checked_sub(1).map(|row| rows.field(row, 0))
            {
                self.sequence.set_last(uuid);
            }
            Ok(())
        })?;
        let Some(end) = end else { return Ok(()) };
        self.out.go_to(end.end);
        if end.kind == Kind::Record {
            return Ok(());
        }
        let last = self.sequence.last();
        let within = || ActiveWalk::from(source.clone(), &lenient, end.start + 1, last);
        // Where nothing is sound, the first record may have been being written, or it is whole and under another key: then its checksum
        // is there, though that may end in zeros.
        let missing = match end.kind {
            Kind::TornTail => 1,
            _ => CHECKSUM_BYTES as u64,
        };
        if (end.kind == Kind::TornTail || end.start == 0)
            && options.flag(&ZERO_TORN_TAIL)
            && is_unfinished(&*source, &lenient, &end, last, missing)?
            && append::search_within(within()?)? == append::Within::Nothing
        {
            return self.out.quarantine(end.start..end.end, true);
        }
        let strict = lenient.strict(true);
        let walk = ActiveWalk::from(source, &strict, end.start, last);
        Err(append::refusal(&self.out, walk))
    }

    /// Appends a record with this UUID, which must be of version 6 and greater than the last one.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) for a UUID that does not ascend or is not of version 6, a type of
    /// more than 255 bytes, or a value of more than 2^32-1 bytes. Nothing is appended then.
    /// [`Error::Io`](crate::Error::Io) if a full buffer could not be written. The record is in the buffer then.
    pub fn append(&mut self, uuid: &Uuid, type_: &[u8], value: &[u8]) -> Result<()> {
        self.push(uuid, type_, value)?;
        if self.out.is_full() {
            self.flush()?;
        }
        Ok(())
    }

    /// As [`append`](Self::append), to the buffer alone, which may grow beyond what is flushed at once.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage): nothing is appended.
    #[inline]
    fn push(&mut self, uuid: &Uuid, type_: &[u8], value: &[u8]) -> Result<()> {
        self.sequence.check(uuid)?;
        self.push_next(uuid, type_, value)
    }

    /// As [`push`](Self::push), where it is known that the UUID comes next.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) for a type or a value that is too long: nothing is appended.
    #[inline]
    pub(crate) fn push_next(&mut self, uuid: &Uuid, type_: &[u8], value: &[u8]) -> Result<()> {
        self.out.check_open()?;
        let record = encode_unhashed(self.out.buffer(), uuid.as_bytes(), type_, value)?;
        self.unhashed.push(record);
        self.sequence.set_last(uuid.into_bytes());
        if self.unhashed.is_full() {
            self.hash_all();
        }
        Ok(())
    }

    /// Fills in the checksums of all records in the buffer.
    fn hash_all(&mut self) {
        let buffer = self.out.buffer();
        for ((start, len), checksum) in self.unhashed.hash_all(&self.key, buffer) {
            put_checksum(buffer, start + len, checksum);
        }
    }

    /// The next UUID for [`append`](Self::append): of the present time, or the smallest one after the last.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) if the last UUID has the latest time that a UUID can have.
    pub fn next_uuid(&mut self) -> Result<Uuid> {
        self.sequence.next()
    }

    /// Where the next record will begin, in bytes from the beginning of the file.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.out.position()
    }

    /// The last UUID in the segment.
    #[must_use]
    pub fn last_uuid(&self) -> Option<Uuid> {
        self.sequence.last().map(Uuid::from_bytes)
    }
}

/// Whether a torn tail is one record that was not written to its end. `last` is the UUID of the last record before it.
pub(crate) fn is_unfinished(
    source: &dyn Source,
    options: &Options,
    tail: &Span,
    last: Option<[u8; UUID_BYTES]>,
    missing: u64,
) -> Result<bool> {
    let data_end = data_end_after(source, tail.start, || options.poll())?;
    let tail = tail.start..data_end;
    let beginning = append::beginning(source, &tail, MAX_HEADER_BYTES)?;
    let len = tail.end.saturating_sub(tail.start);
    if !judge::is_unfinished(&beginning, len, last, missing) {
        return Ok(false);
    }
    let Some(uuid) = beginning.first_chunk() else {
        return Ok(true);
    };
    let (mut window, mut at) = (Window::default(), 1);
    while at < len {
        options.poll()?;
        let left = saturating_usize(len - at).min(SEARCHED_BYTES);
        let bytes = window.exact(source, tail.start + at, left, left)?;
        if judge::begins_later(bytes, len - at, uuid) {
            return Ok(false);
        }
        // Beginnings that the end of these bytes cuts are looked at again.
        let is_last = left < SEARCHED_BYTES;
        at += (if is_last {
            left
        } else {
            left - MAX_HEADER_BYTES
        }) as u64;
    }
    Ok(true)
}

impl Drop for Writer {
    /// The appender writes what is left in the buffer.
    fn drop(&mut self) {
        self.hash_all();
    }
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

    fn flush(&mut self) -> Result<()> {
        self.hash_all();
        self.out.flush()
    }

    fn sync(&mut self) -> Result<()> {
        self.hash_all();
        self.out.sync()
    }

    fn close(&mut self) -> Result<()> {
        self.hash_all();
        self.out.close()
    }

    fn abandon(&mut self) -> Result<()> {
        self.hash_all();
        self.out.abandon()
    }

    fn path(&self) -> &Path {
        self.out.path()
    }

    fn position(&self) -> Option<u64> {
        Some(self.position())
    }

    fn last(&self) -> Option<RecordId> {
        self.sequence.last().map(RecordId::from)
    }

    fn found(&self) -> Option<&Summary> {
        Some(&self.found)
    }

    fn quarantined(&self) -> Vec<&Path> {
        self.out.quarantined().into_iter().collect()
    }
}

/// Which records of a buffer are still to be hashed. Hashing many together is much faster than one by one.
#[derive(Debug, Default)]
pub(in crate::format) struct Unhashed {
    /// Offset and length within the buffer.
    extents: Vec<(usize, usize)>,
    bytes: usize,
    hashes: Vec<u64>,
}

impl Unhashed {
    /// Adds the record at `extent` (offset, length) in the buffer.
    pub(in crate::format) fn push(&mut self, extent: (usize, usize)) {
        self.bytes += extent.1;
        self.extents.push(extent);
    }

    /// Whether enough records wait to be hashed together.
    pub(in crate::format) const fn is_full(&self) -> bool {
        self.extents.len() >= LIMITS.unhashed_messages || self.bytes >= LIMITS.unhashed_bytes
    }

    /// Hashes all of them. Returns (offset, length) and checksum of each, and leaves none.
    pub(in crate::format) fn hash_all<'a>(
        &'a mut self,
        key: &Key,
        buffer: &[u8],
    ) -> impl Iterator<Item = ((usize, usize), u64)> + use<'a> {
        hash_many(key, buffer, &self.extents, &mut self.hashes);
        self.bytes = 0;
        self.extents.drain(..).zip(self.hashes.drain(..))
    }
}

/// The UUIDs of a segment or a log that is being written.
#[derive(Debug)]
pub(crate) struct Sequence {
    generator: Generator,
    last: Option<[u8; UUID_BYTES]>,
    /// What they are of, for errors: `segment` or `log`.
    of: &'static str,
}

impl Default for Sequence {
    /// Those of a new segment.
    fn default() -> Self {
        Self {
            generator: Generator::default(),
            last: None,
            of: "segment",
        }
    }
}

impl Sequence {
    /// Those of a log, the last of which was this.
    pub(crate) fn of_log(last: Option<[u8; UUID_BYTES]>) -> Self {
        Self {
            last,
            of: "log",
            ..Self::default()
        }
    }

    /// The last UUID, in network byte order.
    pub(crate) const fn last(&self) -> Option<[u8; UUID_BYTES]> {
        self.last
    }

    /// Sets the last UUID.
    pub(crate) const fn set_last(&mut self, uuid: [u8; UUID_BYTES]) {
        self.last = Some(uuid);
    }

    /// Refuses a UUID that cannot come next.
    ///
    /// # Errors
    /// [`Error::Usage`] for a UUID that is not of version 6 or does not ascend.
    pub(crate) fn check(&self, uuid: &Uuid) -> Result<()> {
        let bytes = uuid.as_bytes();
        if !is_v6(bytes) {
            return Err(Error::Usage(format!(
                "the UUID {uuid} is not of version 6, variant 10: use a generator of version 6"
            )));
        }
        // Compared in place: a copy would wait until the last record's UUID leaves the store buffer.
        match &self.last {
            Some(last) if bytes <= last => Err(Error::Usage(format!(
                "the UUID {uuid} does not ascend: the last one of the {} is {}. Write records sorted by uuid, each once",
                self.of,
                Uuid::from_bytes(*last)
            ))),
            _ => Ok(()),
        }
    }

    /// The next UUID: of the present time, or the smallest one after the last.
    ///
    /// # Errors
    /// [`Error::Usage`] if the last UUID has the latest time that a UUID can have.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Uuid> {
        let next = self.generator.next_alone(self.last.as_ref());
        next.ok_or_else(|| self.exhausted())
    }

    #[cold]
    fn exhausted(&self) -> Error {
        Error::Usage(format!(
            "the last UUID of the {}, {}, has the latest time that UUIDs of version 6 have, in the year 5236: no record can follow. Begin \
             another one",
            self.of,
            Uuid::from_bytes(self.last.unwrap_or_default())
        ))
    }

    /// The UUID, type and value of a record given by its columns. A UUID that is null is generated: of the timestamp, or of the present
    /// time.
    ///
    /// # Errors
    /// [`Error::Usage`] if a field is missing, or the timestamp differs from the UUID's.
    pub(in crate::format) fn record<'a>(
        &mut self,
        fields: &[Value<'a>],
    ) -> Result<(Uuid, &'a [u8], &'a [u8])> {
        let (uuid, timestamp, type_, value) = match fields {
            [uuid, timestamp, Value::Text(type_), Value::Binary(value)] => {
                (uuid, timestamp, *type_, *value)
            }
            [_, _, Value::Text(_), _] => return Err(missing("value")),
            _ => return Err(missing("type")),
        };
        let uuid = match uuid {
            Value::Uuid(uuid) => Uuid::from_bytes(*uuid),
            _ => match timestamp {
                Value::Timestamp(micros) => self.generator.at(*micros).ok_or_else(|| {
                    Error::Usage(format!(
                        "timestamp {micros} gives no UUID: those of version 6 cannot hold that time, or all of that microsecond are used"
                    ))
                })?,
                _ => self.next()?,
            },
        };
        let of_uuid = timestamp_micros(uuid.as_bytes());
        match timestamp {
            Value::Timestamp(given) if *given != of_uuid => Err(Error::Usage(format!(
                "timestamp {given} is not that of the UUID {uuid}, which is {of_uuid}: leave timestamp out"
            ))),
            _ => Ok((uuid, type_, value)),
        }
    }
}
