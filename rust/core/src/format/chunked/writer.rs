//! Appends to a new or an existing segment, and keeps its index up to date.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::hop::{self, Gap};
use super::index::{IndexRepair, index_path, refuse_existing};
use super::layout::{ALIGNMENT, HEADER_BYTES, Header, Item, RECORD_HEADER_BYTES, align};
use super::walk::ChunkedScan;
use super::{CHUNK_BYTES, CHUNK_RECORDS, COLUMNS, FORMAT, LEVEL, MAX_CHUNK_BYTES, WITH_INDEX};
use crate::bug::OrBug;
use crate::compress::{Encoder, bound};
use crate::engine::{self, WriteOptions, Writer as _, append};
use crate::error::{Error, Result};
use crate::ledger::{Kind, Span, Summary};
use crate::output::Appender;
use crate::record::{Column, RecordId, Value};
use crate::saturating::saturating_usize;
use crate::source::{Source, data_end};
use crate::spec::settings::ZERO_TORN_TAIL;
use crate::walk::{Begin, Options, Walk};

/// Appends records to a segment, and items to the index beside it. An advisory lock (on Unix) excludes a second
/// writer of the same file.
///
/// Records are collected into chunks. [`flush`](engine::Writer::flush) closes the current chunk and hands everything to the
/// operating system, [`sync`](engine::Writer::sync) to the disk: the segment first, then the index, so that the index never
/// names a chunk that is not there. An error of `flush` loses nothing: call it again. Dropping a writer flushes it
/// without reporting errors.
#[derive(Debug)]
pub struct Writer {
    out: Appender,
    index: Option<Appender>,
    encoder: Encoder,
    chunk_bytes: usize,
    chunk_records: u32,
    /// The records of the current chunk, their number, and the first one's message offset.
    content: Vec<u8>,
    records: u32,
    start: i64,
    /// A chunk's compressed records. The buffer is reused.
    frame: Vec<u8>,
    /// The smallest message offset that the next record can have. 2^63 if there is none.
    next: u64,
    found: Summary,
}

impl Writer {
    /// Opens a segment for appending. Walks an existing one first, and repairs its index: after a loss of power, either may have what
    /// the other lacks. The trait's `quarantined` names the files that have what was removed.
    ///
    /// # Errors
    /// [`Error::Usage`] for invalid options. [`Error::Io`] if the file exists without
    /// [`IfExists::Append`](crate::format::IfExists::Append), is open in another writer, cannot be opened, or is
    /// beside a file that has the index's name and is not an index. [`Error::Damage`] if an existing file ends in
    /// damage (for a torn tail: only without `zero_torn_tail`).
    pub fn open(path: &Path, options: &WriteOptions) -> Result<Self> {
        options.check(&FORMAT)?;
        let level = i32::try_from(options.number(&LEVEL)).or_bug("a level of zstd")?;
        let encoder = Encoder::new(level).ok_or_else(|| {
            let error = std::io::ErrorKind::OutOfMemory.into();
            Error::io(Some(path), "cannot compress", error)
        })?;
        let index = options
            .flag(&WITH_INDEX)
            .then(|| index_path(path))
            .transpose()?;
        if let Some(index) = index.as_deref().filter(|_| !options.appends()) {
            refuse_existing(options.on(), index)?;
        }
        let out = Appender::open(options.on(), path, options.appends())?;
        let mut writer = Self {
            out,
            index: None,
            encoder,
            chunk_bytes: saturating_usize(options.bytes(&CHUNK_BYTES)),
            chunk_records: u32::try_from(options.number(&CHUNK_RECORDS))
                .or_bug("a number of records")?,
            content: Vec::new(),
            records: 0,
            start: 0,
            frame: Vec::new(),
            next: 0,
            found: Summary::new(FORMAT.checked, Some(path), 0),
        };
        let ready = writer.prepare(index, options);
        ready.inspect_err(|_| writer.out.discard())?;
        Ok(writer)
    }

    fn prepare(&mut self, index: Option<PathBuf>, options: &WriteOptions) -> Result<()> {
        let mut repair = index
            .map(|index| IndexRepair::new(options.on(), index))
            .transpose()?;
        self.find_end(options, repair.as_mut())?;
        if let Some(repair) = repair {
            self.index = Some(repair.repair(&self.out.source()?, options)?);
        }
        Ok(())
    }

    /// Walks the existing chunks, to find the last message offset, the index, and where to append.
    fn find_end(
        &mut self,
        options: &WriteOptions,
        mut repair: Option<&mut IndexRepair>,
    ) -> Result<()> {
        let source: Arc<dyn Source> = Arc::new(self.out.source()?);
        let lenient = append::reading(options);
        let mut walk = ChunkedScan::open(source.clone(), &lenient, Begin::Beginning)?.into_walk();
        self.found = Summary::new(FORMAT.checked, source.path(), source.len());
        // The first damage after the last good chunk, and whether all there is torn.
        let mut tail: Option<(Span, bool)> = None;
        let end = append::survey(&mut walk, &mut self.found, |walk| {
            for span in walk.spans() {
                match span.kind {
                    Kind::Chunk => tail = None,
                    Kind::TornTail => _ = tail.get_or_insert((*span, true)),
                    Kind::Corrupt => tail.get_or_insert((*span, true)).1 = false,
                    _ => {}
                }
            }
            let mut chunks = walk.scan().chunks().iter();
            match repair.as_deref_mut() {
                Some(repair) => chunks.try_for_each(|item| repair.expect(item)),
                None => Ok(()),
            }
        })?;
        let end = match end {
            Some(used) => used.end,
            None => 0,
        };
        self.next = walk.scan().state.end;
        if let Some((damage, is_torn)) = tail {
            let at = damage.start;
            let is_removed = is_torn && options.flag(&ZERO_TORN_TAIL);
            if is_removed && is_unfinished(&*source, &lenient, &damage)? {
                return self.out.quarantine(at..source.len(), false);
            }
            return Err(self.refuse(source, lenient, at));
        }
        // The rest of the last padding is written with the next chunk.
        self.out.go_to(end);
        Ok(())
    }

    /// The error of damage that nothing can be appended after.
    fn refuse(&self, source: Arc<dyn Source>, lenient: Options, at: u64) -> Error {
        let strict = lenient.strict(true);
        let gap = Gap { at, end: self.next };
        let scan = ChunkedScan::after_gap(source, &strict, gap);
        append::refusal(&self.out, scan.map(ChunkedScan::into_walk))
    }

    /// Appends a record. `offset` is its message offset, `None` means the next one. `timestamp` is in microseconds
    /// since 1970-01-01 UTC, `None` means now. Returns the message offset.
    ///
    /// # Errors
    /// [`Error::Usage`] for a message offset that does not ascend or is negative, and for a value that fits into
    /// no chunk. Nothing is appended then. [`Error::Io`] if a full chunk could not be written. The record is in
    /// the buffer then.
    pub fn append(
        &mut self,
        offset: Option<i64>,
        timestamp: Option<i64>,
        value: &[u8],
    ) -> Result<i64> {
        self.out.check_open()?;
        if let Some(index) = &self.index {
            index.check_open()?;
        }
        let offset = self.offset_of(offset)?;
        let record_bytes = value.len().saturating_add(RECORD_HEADER_BYTES);
        let length = u32::try_from(value.len())
            .ok()
            .filter(|_| record_bytes <= MAX_CHUNK_BYTES)
            .ok_or_else(|| {
                Error::Usage(format!(
                    "the value has {} bytes: at most {} fit into a chunk",
                    value.len(),
                    MAX_CHUNK_BYTES - RECORD_HEADER_BYTES
                ))
            })?;
        let timestamp = match timestamp {
            Some(timestamp) => timestamp,
            None => now_micros()?,
        };
        let gap = offset.cast_unsigned() != self.next;
        // A large record gets a chunk of its own, so that readers of the small ones before it need not wait for
        // its decompression.
        let is_large = record_bytes >= self.chunk_bytes;
        if gap || is_large {
            self.close_chunk()?;
        }
        if self.records == 0 {
            self.start = offset;
        }
        self.content.extend_from_slice(&timestamp.to_be_bytes());
        self.content.extend_from_slice(&length.to_be_bytes());
        self.content.extend_from_slice(value);
        self.records += 1;
        self.next = offset.cast_unsigned() + 1;
        if self.content.len() >= self.chunk_bytes || self.records >= self.chunk_records {
            self.close_chunk()?;
            self.out.flush_if_full()?;
            self.flush_index()?;
        }
        Ok(offset)
    }

    /// The message offset of the next record.
    fn offset_of(&self, given: Option<i64>) -> Result<i64> {
        let next = i64::try_from(self.next).map_err(|_| {
            let taken = "the last message offset, 2^63-1, is taken: begin another segment";
            Error::Usage(taken.to_owned())
        })?;
        match given {
            None => Ok(next),
            Some(offset) if offset >= next => Ok(offset),
            Some(offset) => Err(Error::Usage(format!(
                "the message offset {offset} does not ascend: it is {next} or greater. Sort by offset first, or leave offset out"
            ))),
        }
    }

    /// Ends the current chunk, if it has any records, and buffers it and its index item.
    fn close_chunk(&mut self) -> Result<()> {
        if self.records == 0 {
            return Ok(());
        }
        self.encoder
            .encode(&self.content, &mut self.frame)
            .map_err(|error| self.out.failed("cannot compress a chunk", error))?;
        let length = u32::try_from(self.frame.len()).map_err(|_| {
            Error::Usage(format!(
                "a chunk has {} bytes compressed: at most 2^32-1 fit",
                self.frame.len()
            ))
        })?;
        let header = Header {
            flags: 0,
            length,
            start: self.start,
            records: self.records,
        };
        pad(&mut self.out);
        let position = self.out.position();
        self.out.buffer().extend_from_slice(&header.encode());
        self.out.buffer().extend_from_slice(&self.frame);
        pad(&mut self.out);
        if let (Some(index), Some(item)) = (&mut self.index, Item::of(&header, position)) {
            index.buffer().extend_from_slice(&item.encode());
        }
        self.records = 0;
        self.content.clear();
        self.content.shrink_to(self.chunk_bytes.saturating_mul(2));
        self.frame.clear();
        self.frame
            .shrink_to(bound(self.chunk_bytes).saturating_mul(2));
        Ok(())
    }

    /// Writes the index's items whose chunks have been written.
    fn flush_index(&mut self) -> Result<()> {
        match &mut self.index {
            Some(index) if self.out.is_flushed() => index.flush(),
            _ => Ok(()),
        }
    }

    fn on_index(&mut self, call: impl FnOnce(&mut Appender) -> Result<()>) -> Result<()> {
        match &mut self.index {
            Some(index) => call(index),
            None => Ok(()),
        }
    }
}

/// Writes zeros up to the next offset at which a chunk can begin.
fn pad(out: &mut Appender) {
    let position = out.position();
    let padding = saturating_usize(align(position) - position);
    let len = out.buffer().len();
    out.buffer().resize(len + padding, 0);
}

fn now_micros() -> Result<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since
        .ok()
        .and_then(|since| i64::try_from(since.as_micros()).ok())
        .ok_or_else(|| Error::Usage("the clock is before 1970: give a timestamp".to_owned()))
}

/// Whether a torn tail is one chunk that was not written to its end: its header is not all there, or is verified and says that the
/// payload goes on after the last byte that is not zero.
pub(super) fn is_unfinished(log: &dyn Source, options: &Options, tail: &Span) -> Result<bool> {
    if !tail.start.is_multiple_of(ALIGNMENT) {
        return Ok(false); // padding
    }
    let data_end = data_end(log, || options.poll())?;
    if data_end.saturating_sub(tail.start) < HEADER_BYTES as u64 {
        let beginning = append::beginning(log, &(tail.start..data_end), HEADER_BYTES)?;
        return Ok(beginning.first() == Some(&0)); // no flags are defined
    }
    let header = hop::read(log, tail.start)?.verified();
    Ok(header.is_some_and(|header| header.payload_end(tail.start) > data_end))
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Errors are reported by `flush` only. If it failed, no item may name a chunk that is not there.
        if self.flush().is_err()
            && let Some(index) = &mut self.index
        {
            index.forget();
        }
    }
}

impl engine::Writer for Writer {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn write(&mut self, fields: &[Value<'_>]) -> Result<Option<RecordId>> {
        let [offset, timestamp, Value::Binary(value)] = fields else {
            return Err(Error::Usage("value is needed".to_owned()));
        };
        let offset = match offset {
            Value::Int64(offset) => Some(*offset),
            _ => None,
        };
        let timestamp = match timestamp {
            Value::Timestamp(timestamp) => Some(*timestamp),
            _ => None,
        };
        let offset = self.append(offset, timestamp, value)?;
        Ok(Some(offset.into()))
    }

    fn flush(&mut self) -> Result<()> {
        self.close_chunk()?;
        self.out.flush()?;
        self.flush_index()
    }

    fn sync(&mut self) -> Result<()> {
        self.close_chunk()?;
        self.out.sync()?;
        self.on_index(Appender::sync)
    }

    fn close(&mut self) -> Result<()> {
        self.close_chunk()?;
        self.out.close()?;
        self.on_index(Appender::close)
    }

    fn abandon(&mut self) -> Result<()> {
        let ended = self.close_chunk().and_then(|()| self.out.flush());
        let index = self.on_index(Appender::abandon);
        ended.and(self.out.abandon()).and(index)
    }

    fn path(&self) -> &Path {
        self.out.path()
    }

    fn position(&self) -> Option<u64> {
        Some(align(self.out.position()))
    }

    fn last(&self) -> Option<RecordId> {
        self.next.checked_sub(1).map(RecordId::from)
    }

    fn found(&self) -> Option<&Summary> {
        Some(&self.found)
    }

    fn quarantined(&self) -> Vec<&Path> {
        let files = [Some(&self.out), self.index.as_ref()];
        let kept = files.into_iter().flatten().map(Appender::quarantined);
        kept.flatten().collect()
    }
}
