//! Opens files for appending, for the writers of all formats that are appended to; and the whole writer of those whose records are
//! identified by where they begin, and do not depend on those before them.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::{Format, WriteOptions, Writer};
use crate::error::{Error, Result};
use crate::ledger::{Cause, Kind, Span, Summary};
use crate::output::Appender;
use crate::private::Sealed;
use crate::record::{Column, RecordId, Value};
use crate::saturating::saturating_usize;
use crate::source::Source;
use crate::spec::Dialect;
use crate::spec::settings::ZERO_TORN_TAIL;
use crate::walk::{Begin, Driver, Options, Scan, Step, Walk, sum_up};

/// Appends a record with these values, one for each column, to a buffer. Leaves the buffer as it is after an error.
type Encode = fn(&mut Vec<u8>, &[Value<'_>]) -> Result<()>;

/// Opens a walk of a format.
type OpenScan<S> = fn(Arc<dyn Source>, &Options, Begin<'_>) -> Result<Driver<S>>;

/// What [`Writer`] asks of an [`Appender`] in the field `out`, of a writer that buffers nothing else, with what was `found` in the file.
macro_rules! by_its_appender {
    () => {
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

        fn found(&self) -> Option<&Summary> {
            Some(&self.found)
        }

        fn quarantined(&self) -> Vec<&Path> {
            self.out.quarantined().into_iter().collect()
        }
    };
}
pub(crate) use by_its_appender;

/// Appends records to a file. An advisory lock (on Unix) excludes a second writer of the same file.
pub(crate) struct AppendedFile {
    format: &'static Format,
    out: Appender,
    encode: Encode,
    last: Option<RecordId>,
    found: Summary,
}

impl AppendedFile {
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
        let lenient = reading(options);
        let mut walk = open(source.clone(), &lenient, Begin::Beginning)?;
        self.found = Summary::new(self.format.checked, source.path(), source.len());
        let last = &mut self.last;
        let (mut before, mut latest) = (None, None);
        let end = survey(&mut walk, &mut self.found, |walk| {
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
        let follows_damage = before.is_some_and(|span| span.is_damage() && span.end == end.start);
        if end.kind == Kind::TornTail
            && !follows_damage
            && options.flag(&ZERO_TORN_TAIL)
            && let Some(unfinished) = self.format.unfinished
            && unfinished(&*source, &lenient, &end)?
            && search_within(open(source.clone(), &lenient, within)?)? == Within::Nothing
        {
            return self.out.quarantine(end.start..end.end, false);
        }
        let strict = lenient.strict(true);
        let walk = open(source, &strict, Begin::Offset(end.start));
        Err(refusal(&self.out, walk))
    }
}

impl Sealed for AppendedFile {}

impl Writer for AppendedFile {
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

    fn last(&self) -> Option<RecordId> {
        self.last.clone()
    }

    by_its_appender!();
}

/// The options to scan a file with before appending to it: lenient, and without values.
pub(crate) fn reading(options: &WriteOptions) -> Options {
    let mut reading = Options::default()
        .on_disk(options.on())
        .for_ledger()
        .interrupt(options.interrupt.clone());
    if let Some(key) = options.key {
        reading = reading.keys(vec![key]);
    }
    if let Some(dialect) = options.dialect {
        reading = reading.dialect(dialect);
    }
    reading
}

/// Scans the file to its end and adds what it has to `found`. `look` is called after each step.
///
/// Returns the last range that is not unused space.
pub(crate) fn survey<S: Scan>(
    walk: &mut Driver<S>,
    found: &mut Summary,
    mut look: impl FnMut(&Driver<S>) -> Result<()>,
) -> Result<Option<Span>> {
    let mut end = None;
    while walk.step()? == Step::More {
        sum_up(walk, found);
        let mut used = walk.spans().iter().rev();
        end = used.find(|span| span.kind != Kind::Unused).copied().or(end);
        look(walk)?;
    }
    Ok(end)
}

/// What a search of a torn tail for sound records found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    /// None: all of the tail was searched.
    Nothing,
    Records,
    /// Nobody knows: the search ended at its budget.
    Unknown,
}

/// Looks for a sound record with a walk that begins within a torn tail. Only [`Within::Nothing`] allows clearing the tail.
///
/// The torn record's length may reach to the end of the tail; then the search for later records is skipped, and clearing the tail
/// would destroy a sound one.
pub(crate) fn search_within<S: Scan>(mut walk: Driver<S>) -> Result<Within> {
    let mut found = Within::Nothing;
    while walk.step()? == Step::More {
        if !walk.rows().is_empty() {
            return Ok(Within::Records);
        }
        let mut causes = walk.spans().iter().map(|span| span.cause);
        if causes.any(|cause| cause == Some(Cause::SearchLimit)) {
            found = Within::Unknown;
        }
    }
    Ok(found)
}

/// The first bytes of a torn tail, at most as many.
pub(crate) fn beginning(source: &dyn Source, tail: &Range<u64>, most: usize) -> Result<Vec<u8>> {
    let len = tail.end.saturating_sub(tail.start);
    let mut bytes = vec![0; saturating_usize(len).min(most)];
    source.read_exact_at(tail.start, &mut bytes)?;
    Ok(bytes)
}

/// The error for damage that prevents appending. `strict` scans from the damage on and raises it with all its fields.
pub(crate) fn refusal<S: Scan>(out: &Appender, strict: Result<Driver<S>>) -> Error {
    let walked = strict.and_then(|mut walk| {
        while walk.step()? == Step::More {}
        Ok(())
    });
    match walked {
        Err(error) => error,
        Ok(()) => out.changed(),
    }
}
