//! A writer for formats whose records are identified by where they begin, and do not depend on those before them.

use std::path::Path;
use std::sync::Arc;

use super::{Format, WriteOptions, Writer, append};
use crate::error::Result;
use crate::ledger::{Kind, Span, Summary};
use crate::output::Appender;
use crate::own::Own;
use crate::record::{Column, RecordId, Value};
use crate::source::Source;
use crate::spec::Dialect;
use crate::spec::settings::ZERO_TORN_TAIL;
use crate::walk::{Begin, Driver, Options, Scan, Walk};

/// Appends a record with these values, one for each column, to a buffer. Leaves the buffer as it is after an error.
pub(crate) type Encode = fn(&mut Vec<u8>, &[Value<'_>]) -> Result<()>;

/// Opens a walk of a format.
type OpenScan<S> = fn(Arc<dyn Source>, &Options, Begin<'_>) -> Result<Driver<S>>;

/// Appends records to a file. An advisory lock (on Unix) excludes a second writer of the same file.
pub(crate) struct Appended {
    format: &'static Format,
    out: Appender,
    encode: Encode,
    last: Option<RecordId>,
    found: Summary,
}

impl Appended {
    /// Opens a file for appending. Scans an existing one first, with walks that `walk` opens.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file exists without [`IfExists::Append`](super::IfExists::Append), is open in another
    /// writer, or cannot be opened. [`Error::Damage`](crate::Error::Damage) if an existing file ends in damage (for a torn tail: only
    /// without `zero_torn_tail`, which cuts it off). Those of `walk`.
    pub(crate) fn open<S: Scan>(
        format: &'static Format,
        path: &Path,
        options: &WriteOptions,
        walk: OpenScan<S>,
        encode: Encode,
    ) -> Result<Self> {
        options.check(format)?;
        let mut writer = Self {
            format,
            out: Appender::open(options.on(), path, options.appends())?,
            encode,
            last: None,
            found: Summary::new(format.checked, Some(path), 0),
        };
        let ready = writer.find_end(options, walk);
        ready.inspect_err(|_| writer.out.discard())?;
        Ok(writer)
    }

    fn find_end<S: Scan>(&mut self, options: &WriteOptions, open: OpenScan<S>) -> Result<()> {
        let source: Arc<dyn Source> = Arc::new(self.out.source()?);
        let lenient = append::reading(options);
        let mut walk = open(source.clone(), &lenient, Begin::Beginning)?;
        self.found = Summary::new(self.format.checked, source.path(), source.len());
        let last = &mut self.last;
        let (mut before, mut latest) = (None, None);
        let end = append::survey(&mut walk, &mut self.found, |walk| {
            let used = |span: &&Span| span.kind != Kind::Unused;
            for span in walk.spans().iter().filter(used) {
                before = latest.replace(*span);
            }
            let rows = walk.rows();
            let row = rows.len().checked_sub(1);
            *last = row.map(|row| rows.position(row).into()).or(last.take());
            Ok(())
        })?;
        let Some(end) = end else { return Ok(()) };
        self.out.go_to(end.end);
        if end.kind == Kind::Record {
            return Ok(());
        }
        let within = Begin::Offset(end.start + 1);
        let follows_damage = before.is_some_and(|own| own.is_damage() && own.end == end.start);
        if end.kind == Kind::TornTail
            && !follows_damage
            && options.flag(&ZERO_TORN_TAIL)
            && let Some(unfinished) = self.format.unfinished
            && unfinished(&*source, &lenient, &end)?
            && append::search_within(open(source.clone(), &lenient, within)?)?
                == append::Within::Nothing
        {
            let name = self.out.quarantine(end.start);
            return self.out.remove_tail(end.start..end.end, false, name);
        }
        let strict = lenient.strict(true);
        let walk = open(source, &strict, Begin::Offset(end.start));
        Err(append::refusal(&self.out, walk))
    }
}

impl Own for Appended {}

impl Writer for Appended {
    fn columns(&self) -> &'static [Column] {
        self.format.columns(Dialect::default())
    }

    fn write(&mut self, fields: &[Value<'_>]) -> Result<Option<RecordId>> {
        self.out.check_open()?;
        let id = RecordId::from(self.out.position());
        (self.encode)(self.out.buffer(), fields)?;
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
