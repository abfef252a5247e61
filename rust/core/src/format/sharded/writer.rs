//! Appends to a new or an existing file.

use std::path::Path;
use std::sync::Arc;

use super::layout::{Header, encode};
use super::walk::ShardedWalk;
use super::{BODY_BYTES, COLUMNS, FORMAT};
use crate::engine::settings::ZERO_TORN_TAIL;
use crate::engine::writer::missing;
use crate::engine::{self, Options, Start, Walk, WriteOptions, append};
use crate::error::{Error, Result};
use crate::ledger::{Cause, Kind, Span, Summary};
use crate::output::Appender;
use crate::record::{Column, RecordId, Value};
use crate::source::Source;

/// Appends records to a file. An advisory lock (on Unix) excludes a second writer of the same file.
#[derive(Debug)]
pub(crate) struct Writer {
    out: Appender,
    body_bytes: u64,
    last: Option<RecordId>,
    found: Summary,
}

impl Writer {
    /// Opens a file for appending. Scans an existing one first.
    ///
    /// # Errors
    /// [`Error::Io`] if the file exists without [`IfExists::Append`](crate::format::IfExists::Append), is open in
    /// another writer, or cannot be opened. [`Error::Damage`] if an existing file ends in damage (for a torn tail:
    /// only without `zero_torn_tail`, which cuts it off).
    pub(crate) fn open(path: &Path, options: &WriteOptions) -> Result<Self> {
        options.check(&FORMAT)?;
        let mut writer = Self {
            out: Appender::open(options.on(), path, options.appends())?,
            body_bytes: options.bytes(&BODY_BYTES),
            last: None,
            found: Summary::new(FORMAT.checked, Some(path), 0),
        };
        let ready = writer.find_end(options);
        ready.inspect_err(|_| writer.out.discard())?;
        Ok(writer)
    }

    fn find_end(&mut self, options: &WriteOptions) -> Result<()> {
        let source: Arc<dyn Source> = Arc::new(self.out.source()?);
        let lenient = append::reading(options);
        let mut walk = ShardedWalk::open(source.clone(), &lenient, Start::Beginning)?;
        self.found = Summary::new(FORMAT.checked, source.path(), source.len());
        let last = &mut self.last;
        let end = append::survey(&mut walk, &mut self.found, |walk| {
            let rows = walk.rows();
            let places = FORMAT.identifying_places(&Options::default());
            if let Some(row) = rows.len().checked_sub(1) {
                *last = RecordId::of_row(&*rows, row, &places);
            }
            Ok(())
        })?;
        let Some(end) = end else { return Ok(()) };
        self.out.go_to(end.end);
        if end.kind == Kind::Record {
            return Ok(());
        }
        let within = || ShardedWalk::open(source.clone(), &lenient, Start::Offset(end.start + 1));
        if end.kind == Kind::TornTail
            && options.flag(&ZERO_TORN_TAIL)
            && is_unfinished(&end)
            && self.last.is_some()
            && append::search_within(within()?)? == append::Within::Nothing
        {
            let name = self.out.quarantine(end.start);
            return self.out.remove_tail(end.start..end.end, false, name);
        }
        let strict = lenient.strict(true);
        let walk = ShardedWalk::open(source, &strict, Start::Offset(end.start));
        Err(append::refusal(&self.out, walk))
    }
}

/// Whether a torn tail is one record that was not written to its end.
pub(super) const fn is_unfinished(tail: &Span) -> bool {
    matches!(
        tail.cause,
        Some(Cause::TruncatedHeader | Cause::LengthOutOfBounds)
    )
}

impl engine::Writer for Writer {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn write(&mut self, fields: &[Value<'_>]) -> Result<Option<RecordId>> {
        self.out.check_open()?;
        let [time, shard, sequence, level, value] = fields else {
            return Err(missing("a column"));
        };
        let (Value::Timestamp(time), Value::UInt64(sequence), Value::Binary(value)) =
            (time, sequence, value)
        else {
            return Err(missing("timestamp, sequence or value"));
        };
        let header = Header {
            length: 0,
            time: *time,
            shard: number(shard, "shard")?,
            sequence: *sequence,
            level: number(level, "level")?,
            checksum: 0,
        };
        if value.len() as u64 > self.body_bytes {
            return Err(Error::Usage(format!(
                "value has {} bytes: body_bytes allows {}",
                value.len(),
                self.body_bytes
            )));
        }
        encode(self.out.buffer(), &header, value)?;
        let id = RecordId::new([u32::from(header.shard).into(), header.sequence.into()]);
        self.last = Some(id.clone());
        self.out.flush_if_full()?;
        Ok(Some(id))
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush()
    }

    fn sync(&mut self) -> Result<()> {
        self.out.sync()
    }

    fn close(&mut self) -> Result<()> {
        self.out.close()
    }

    fn abandon(&mut self) -> Result<()> {
        self.out.abandon()
    }

    fn path(&self) -> &Path {
        self.out.path()
    }

    fn position(&self) -> Option<u64> {
        Some(self.out.position())
    }

    fn last(&self) -> Option<RecordId> {
        self.last.clone()
    }

    fn found(&self) -> Option<&Summary> {
        Some(&self.found)
    }

    fn quarantined(&self) -> Vec<&Path> {
        self.out.quarantined().into_iter().collect()
    }
}

/// A number that fits into the field of this name.
fn number<T: TryFrom<i64>>(value: &Value<'_>, name: &str) -> Result<T> {
    let Value::Int64(number) = value else {
        return Err(missing(name));
    };
    T::try_from(*number).map_err(|_| {
        let bytes = size_of::<T>();
        Error::Usage(format!(
            "{name} is {number}: a record holds 0 to {}",
            (1_u64 << (8 * bytes)) - 1
        ))
    })
}
