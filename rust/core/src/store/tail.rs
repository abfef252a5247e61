//! Following a log. docs/formats/log.md, "Following".

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::end::SegmentExtent;
use super::folder::{Segment, open_file};
use super::mark::Mark;
use super::name::{SegmentId, SegmentKind};
use super::reader::{LogReader, View, walk_of};
use super::skipped::Skipped;
use crate::engine::Start;
use crate::error::{Error, Result};
use crate::format::active;
use crate::record::{Record, Rows, Value};
use crate::source::{Bound, FileSource, Source as _};
use crate::spec::Filter;
use crate::sync::{self, Instant};
use crate::walk::{Step, Walk};

/// Where following a log begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TailFrom {
    /// At its first record.
    Start,
    /// After what is on the disk now.
    #[default]
    Now,
    /// After the record of this UUID, whether it is still there or not.
    After(Uuid),
}

/// The first wait for a record, and the longest one: each is half as long again as the one before.
const FIRST_WAIT: Duration = Duration::from_micros(200);
const LONGEST_WAIT: Duration = Duration::from_millis(8);

/// Gives the records of a log as they come to the disk, each once, in order, also while segments end and are sealed.
///
/// ```
/// use std::time::Duration;
///
/// use seglake::Options;
/// use seglake::store::{LogOptions, LogReader, SegmentLog, TailFrom};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("orders");
///
/// let log = SegmentLog::open(&path, LogOptions::default())?;
/// log.write("order.paid", "{}")?;
///
/// let mut tail = LogReader::open(&path, Options::default())?.tail(TailFrom::Start)?;
/// while let Some(record) = tail.next_within(Duration::from_millis(10))? {
///     assert_eq!(record.value(), b"{}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Tail {
    reader: LogReader,
    /// The place in the log of the segment that is read.
    sequence: u64,
    /// How far that is read.
    at: Place,
    /// The UUID of the last record that was given, or after which to begin.
    last: Option<[u8; 16]>,
    wait: Duration,
    /// The identity of the folder, if the system has one.
    node: Option<(u64, u64)>,
    /// The segment that was read last, and its path.
    id: Option<SegmentId>,
    path: PathBuf,
}

/// How far a segment is read.
#[derive(Default)]
struct Place {
    /// The segment's file, while it is an active one: sealing may remove its name, but not the file.
    file: Option<FileSource>,
    /// Up to where that is read.
    offset: u64,
    /// What is left to read of what is known to be there.
    walk: Option<Box<dyn Walk>>,
    /// The rows of the walk's last step that were not given yet.
    rows: Range<usize>,
    /// The segment is read to its end once the walk is.
    is_complete: bool,
    /// The mark up to which all was given.
    seen: Option<Mark>,
}

impl LogReader {
    /// Follows the log: gives the records from there on, and those to come, also of a writer in another process.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn tail(&self, from: TailFrom) -> Result<Tail> {
        Tail::begin(self.anew(), from)
    }
}

impl Tail {
    fn begin(reader: LogReader, from: TailFrom) -> Result<Self> {
        let view = reader.view()?;
        let mut tail = Self {
            sequence: sequence_of(view.segments.first()),
            at: Place::default(),
            last: None,
            wait: FIRST_WAIT,
            node: None,
            id: None,
            path: PathBuf::new(),
            reader,
        };
        tail.node = tail.node_now()?;
        match from {
            TailFrom::Start => {}
            TailFrom::After(uuid) => {
                let is_before = |segment: &&Segment| segment.id.first <= uuid;
                let within = view.segments.iter().rev().find(is_before);
                if let (None, Some(first)) = (within, view.segments.first())
                    && first.id.sequence > 1
                {
                    // Records after that one may have been removed.
                    return Err(Error::SegmentGone {
                        path: tail.reader.path().to_path_buf(),
                        sequence: first.id.sequence - 1,
                    });
                }
                tail.sequence = within.map_or(tail.sequence, |segment| segment.id.sequence);
                tail.last = Some(uuid.into_bytes());
            }
            TailFrom::Now => {
                let newest = view.segments.last();
                tail.sequence = sequence_of(newest);
                if let Some(newest) = newest {
                    tail.at.is_complete = !tail.reader.reach(&view, newest).is_limit;
                }
                tail.last = (view.mark.sequence > 0).then_some(view.mark.last);
            }
        }
        Ok(tail)
    }

    /// The next record that is on the disk, if there is one now.
    ///
    /// # Errors
    /// Those of reading; [`Error::SegmentGone`](crate::Error::SegmentGone) where retention removed a segment before it was read.
    pub fn poll(&mut self) -> Result<Option<Record>> {
        self.next_within(Duration::ZERO)
    }

    /// The next record, waiting for it at most so long.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<Record>> {
        if !self.wait(timeout)? {
            return Ok(None);
        }
        let columns = self.reader.columns();
        Ok(self.take(|rows, row| Record::of(active::FORMAT.identifier, columns, rows, row)))
    }

    /// Waits until there is a record to [take](Self::take), at most so long. Returns whether there is one.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    #[doc(hidden)] // public for the Python extension: `next_within` waits and reads
    pub fn wait(&mut self, timeout: Duration) -> Result<bool> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            // After an error the segment is read from its beginning again, and what was given of it is passed over by its UUID.
            if self.look().inspect_err(|_| self.at = Place::default())? {
                self.wait = FIRST_WAIT;
                return Ok(true);
            }
            let left = match deadline {
                None => self.wait,
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
            };
            if left.is_zero() {
                return Ok(false);
            }
            sync::sleep(left.min(self.wait));
            self.wait = (self.wait * 3 / 2).min(LONGEST_WAIT);
        }
    }

    /// Gives the record that was [waited for](Self::wait), as the rows and the row that it is, without copying it. `None` if none was.
    #[doc(hidden)]
    pub fn take<T>(&mut self, give: impl FnOnce(&dyn Rows, usize) -> T) -> Option<T> {
        let walk = self.at.walk.as_ref()?;
        let row = self.at.rows.next()?;
        let rows = walk.rows();
        if let Value::Uuid(uuid) = rows.field(row, 0) {
            self.last = Some(uuid);
        }
        Some(give(&*rows, row))
    }

    /// Whether there is a record to take, now.
    fn look(&mut self) -> Result<bool> {
        loop {
            if !self.at.rows.is_empty() {
                return Ok(true);
            }
            let Some(walk) = &mut self.at.walk else {
                if !self.advance()? {
                    return Ok(false);
                }
                continue;
            };
            if walk.step()? == Step::More {
                self.at.rows = 0..walk.rows().len();
                if !self.reader.options().strict && walk.record_run().is_none() {
                    for span in walk.spans() {
                        let Some(cause) = span.cause else { continue };
                        let at = format!("{cause} from offset {} to {}", span.start, span.end);
                        self.reader.skipped.add(&self.path, at);
                    }
                }
            } else {
                self.at.walk = None;
            }
        }
    }

    /// The UUID of the last record that was given: where another tail goes on, with [`TailFrom::After`].
    #[must_use]
    pub fn last(&self) -> Option<Uuid> {
        self.last.map(Uuid::from_bytes)
    }

    /// Takes what was passed over since this was called last: nothing, unless the log is read past damage.
    #[must_use]
    pub fn take_skipped(&self) -> Vec<Skipped> {
        self.reader.take_skipped()
    }

    /// The identity of the log's folder, if the system has one.
    fn node_now(&self) -> Result<Option<(u64, u64)>> {
        let folder = self.reader.path();
        let stat = self.reader.disk().stat(folder, true);
        let stat = stat.map_err(|error| Error::io(Some(folder), "cannot follow the log", error))?;
        Ok(stat.node)
    }

    /// Another log has the place of the one that was followed: an error, or past damage what to go on with. That is after the last record that
    /// was given.
    fn replaced(&mut self, found: &str) -> Result<()> {
        let folder = self.reader.path().to_path_buf();
        if self.reader.options().strict {
            return Err(Error::Replaced {
                path: Some(folder),
                offset: 0,
                expected: "the log that is followed".to_owned(),
                found: found.to_owned(),
            });
        }
        let reason = format!("the log that was followed was replaced: found {found}");
        self.reader.skipped.add(&folder, reason);
        self.at = Place::default();
        self.id = None;
        self.node = self.node_now()?;
        let segments = self.reader.view()?.segments;
        let last = self.last.map(Uuid::from_bytes);
        let is_before = |segment: &&Segment| last.is_some_and(|last| segment.id.first <= last);
        let within = segments.iter().rev().find(is_before).or(segments.first());
        self.sequence = sequence_of(within);
        Ok(())
    }

    /// Goes on with a later segment than the one that is missing. Returns whether there is one.
    fn pass_over_missing(&mut self, view: &View) -> bool {
        let mut later = view.segments.iter();
        let Some(next) = later.find(|segment| segment.id.sequence > self.sequence) else {
            return false;
        };
        let (from, to) = (self.sequence, next.id.sequence);
        let reader = &self.reader;
        reader.skipped.add_missing(reader.path(), from, to);
        self.at = Place::default();
        self.sequence = to;
        true
    }

    /// Finds out what there is to read next. Returns whether there may be something.
    fn advance(&mut self) -> Result<bool> {
        let mark = Mark::read(&self.reader.folder)?;
        if self.at.seen == Some(mark) {
            return Ok(false);
        }
        if self.node_now()? != self.node {
            self.replaced("another folder under its path")?;
            return Ok(true);
        }
        // All of the segment that is read is on the disk at least up to here, without looking at the folder.
        if let (Some(_), Some(id)) = (&self.at.file, self.id)
            && !self.at.is_complete
            && mark.sequence == self.sequence
        {
            if mark.offset <= self.at.offset {
                self.at.seen = Some(mark);
                return Ok(false);
            }
            match self.has_its_file()? {
                true => self.read_on(&SegmentExtent::up_to(Bound::of_mark(&mark, id)))?,
                // A repair has put another file in its place.
                false => self.at = Place::default(),
            }
            return Ok(true);
        }
        let view = self.reader.view()?;
        if self.at.is_complete {
            self.at = Place::default();
            self.sequence += 1;
        }
        let is_strict = self.reader.options().strict;
        let Some(segment) = view.get(self.sequence) else {
            let first = view
                .segments
                .first()
                .map_or(self.sequence, |first| first.id.sequence);
            let newest = view.segments.last().map_or(0, |end| end.id.sequence);
            let was_there = self.id.is_some_and(|id| id.sequence == self.sequence);
            let is_gone = was_there && first <= self.sequence;
            if newest + u64::from(!is_gone) < self.sequence {
                let found = format!("no segment {}", newest + 1);
                self.replaced(&found)?;
                return Ok(true);
            }
            if first > self.sequence && self.at.file.is_some() {
                // Removed, but it is open here.
                self.read_on(&SegmentExtent::default())?;
                self.at.is_complete = true;
                return Ok(true);
            }
            if !is_strict && self.pass_over_missing(&view) {
                return Ok(true);
            }
            if first > self.sequence {
                return Err(Error::SegmentGone {
                    path: self.reader.path().to_path_buf(),
                    sequence: self.sequence,
                });
            }
            self.at.seen = Some(view.mark);
            return Ok(false);
        };
        let before = self.id.filter(|id| id.sequence == self.sequence);
        if before.is_some_and(|id| id != segment.id) {
            self.replaced("another segment in its place")?;
            return Ok(true);
        }
        let read = self.read_segment(&view, segment);
        if view.segments.last() == Some(segment) {
            return read; // another one may come
        }
        let LogReader { skipped, .. } = &self.reader;
        let read = skipped.unless_lost(self.reader.options(), &segment.path, read)?;
        self.at.is_complete |= read.is_none();
        Ok(read != Some(false))
    }

    fn read_segment(&mut self, view: &View, segment: &Segment) -> Result<bool> {
        let reach = self.reader.reach(view, segment);
        if reach
            .limit()
            .is_some_and(|bound| bound.offset <= self.at.offset)
        {
            self.at.seen = Some(view.mark);
            return Ok(false);
        }
        self.id = Some(segment.id);
        self.path.clone_from(&segment.path);
        if segment.is_frozen {
            // What was given of it is passed over by its UUID.
            let filter = self.filter();
            self.at.walk = Some(self.reader.walk_segment(segment, &reach, &filter)?);
            self.at.is_complete = true;
            return Ok(true);
        }
        if self.at.file.is_none() {
            let (folder, options) = (self.reader.path(), self.reader.options());
            let (file, kind) = open_file(folder, options, (segment.id, segment.kind))?;
            if kind == SegmentKind::Sealed {
                // By now, so it is complete.
                let (start, filter) = (Start::Beginning, self.filter());
                let walk = walk_of((Arc::new(file), kind), options, start, &filter)?;
                self.at.walk = Some(walk);
                self.at.is_complete = true;
                return Ok(true);
            }
            self.at.file = Some(file);
        }
        self.read_on(&reach)?;
        self.at.is_complete = !reach.is_limit;
        Ok(true)
    }

    /// Whether the active file is still the one under its name. Where there is none, the folder tells.
    fn has_its_file(&self) -> Result<bool> {
        let Some(file) = &self.at.file else {
            return Ok(true);
        };
        let failed = |error| Error::io(file.path(), "cannot follow the log", error);
        let (Some(path), node) = (file.path(), file.handle().stat().map_err(failed)?.node) else {
            return Ok(true);
        };
        self.reader.disk().names(path, true, node).map_err(failed)
    }

    /// Reads the active file on.
    fn read_on(&mut self, reach: &SegmentExtent) -> Result<()> {
        let Some(file) = &self.at.file else {
            return Ok(());
        };
        let file = file.again()?;
        let options = self.reader.options();
        // What was given was on the disk, whatever is said now.
        let (given, len) = (self.at.offset, file.len());
        if options.strict {
            Bound::of_given(given).check(file.path(), len.min(given), None, len)?;
        }
        let end = match reach.limit() {
            Some(bound) => bound.offset,
            None => len.max(given),
        };
        let source = reach.within(file);
        // At the beginning what was given before is passed over by its UUID, later by the offset.
        let (start, filter) = match given {
            0 => (Start::Beginning, self.filter()),
            offset => (Start::Offset(offset), options.filter.clone()),
        };
        let source = (source, SegmentKind::Active);
        self.at.walk = Some(walk_of(source, options, start, &filter)?);
        self.at.offset = end;
        Ok(())
    }

    /// What is wanted, after what was given.
    fn filter(&self) -> Filter {
        let filter = self.reader.options().filter.clone();
        match self.last {
            Some(last) => filter.above("uuid", last),
            None => filter,
        }
    }
}

/// The sequence number of a segment; that of the first one if there is none yet.
fn sequence_of(segment: Option<&Segment>) -> u64 {
    match segment {
        Some(segment) => segment.id.sequence,
        None => 1,
    }
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tail")
            .field("reader", &self.reader)
            .field("sequence", &self.sequence)
            .field("offset", &self.at.offset)
            .finish_non_exhaustive()
    }
}
