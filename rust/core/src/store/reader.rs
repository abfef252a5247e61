//! Reading a log: its segments as one, up to the synced mark, and how many records are after it. docs/formats/log.md, "Reading" and "What
//! is after the mark".

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use uuid::Uuid;

use super::end::SegmentExtent;
use super::folder::{Listing, LogFolder, Segment, absolute, check_identity, is_key_of};
use super::lock::Lock;
use super::mark::{Mark, MarkState, Synced};
use super::name::SegmentKind;
use super::skipped::{Skipped, SkippedList, Unread};
#[cfg(feature = "arrow")]
use crate::columns::{Batches, Limits, Selection};
use crate::disk::{DiskRef, Stat};
use crate::engine::Start;
use crate::error::{Error, Result};
use crate::format;
use crate::format::active::{self, ActiveWalk};
use crate::ledger::Kind;
use crate::reader::Records;
use crate::record::{Column, Record, RecordId};
use crate::source::{BytesSource, FileSource, Source, data_end_after};
use crate::spec::{Filter, UuidBounds};
use crate::sync::Mutex;
use crate::uuid6;
use crate::verbs::Report;
use crate::walk::layers::{EmptyWalk, Layered, WalkLayer};
use crate::walk::{Begin, Hits, OnDamage, Options, Step, Walk};

/// A log, to read, also beside its writer. What it gives is on the disk: no loss of power takes it back.
///
/// ```
/// use seglake::format::Filter;
/// use seglake::store::{LogOptions, LogReader, SegmentLog};
/// use seglake::{OnDamage, Options};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("orders");
/// # SegmentLog::open(&path, LogOptions::default())?.write("order.paid", "{}")?;
///
/// let reader = LogReader::open(&path, Options::default().on_damage(OnDamage::Skip))?;
/// for record in reader.range(&Filter::default().among("type", ["order.paid"]))? {
///     assert_eq!(record?.value(), b"{}");
/// }
/// assert!(reader.take_skipped().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LogReader {
    pub(super) folder: LogFolder,
    options: Options,
    known: Arc<LastListing>,
    pub(super) skipped: SkippedList,
}

/// What a look-up listed last, and when the folder was modified before that. Clones share it.
type LastListing = Mutex<Option<(SystemTime, Arc<View>)>>;

/// The segments of a log at one moment, and how far the newest one is on the disk.
#[derive(Debug)]
pub(super) struct View {
    pub(super) segments: Vec<Segment>,
    pub(super) mark: Mark,
    /// What is after the mark, of the newest segment's file as it was then.
    unread: Mutex<Option<(Option<Stat>, Option<Unread>)>>,
}

impl View {
    pub(super) fn get(&self, sequence: u64) -> Option<&Segment> {
        self.segments
            .iter()
            .find(|segment| segment.id.sequence == sequence)
    }
}

impl LogReader {
    /// Opens a log to read, with these options. Nothing is locked, and nothing is written. The format, the index and the sidecar of
    /// `options` are not used.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be read; [`Error::Log`] where segments are missing; [`Error::Format`] for a folder of other
    /// files. An empty folder is an empty log. [`Error::Usage`] for more than one key.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let [key] = *options.keys else {
            return Err(Error::Usage("a log has one key: give one".to_owned()));
        };
        let reader = Self {
            folder: LogFolder {
                disk: options.on().clone(),
                path: absolute(path.as_ref())?,
                key,
            },
            options,
            known: Arc::default(),
            skipped: SkippedList::default(),
        };
        reader.check_key()?;
        Ok(reader)
    }

    /// The same log, with this choice of what happens at damage. What this one passes over is [taken](Self::take_skipped) from it alone.
    #[must_use]
    pub fn on_damage(&self, on_damage: OnDamage) -> Self {
        Self {
            options: self.options.clone().on_damage(on_damage),
            known: Arc::default(), // it lists otherwise
            ..self.anew()
        }
    }

    /// The same log, of which nothing is skipped yet.
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub fn anew(&self) -> Self {
        Self {
            skipped: SkippedList::default(),
            ..self.clone()
        }
    }

    /// Takes what reading past damage passed over since this was called last, beside ranges of segments: segments that are missing, or
    /// whose file is that of another. Strict reading raises an error for each. Clones share it.
    #[must_use]
    pub fn take_skipped(&self) -> Vec<Skipped> {
        self.skipped.take()
    }

    /// Refuses a key under which neither the mark nor the first record of any segment is right, or the mark of a log without records.
    fn check_key(&self) -> Result<()> {
        let (view, found) = self.look()?;
        let Some(first) = view.segments.first() else {
            return found.check_empty(self.path());
        };
        if !found.is_foreign() {
            return Ok(());
        }
        let options = self.options.clone().strict(true);
        let source = self.source(first, &SegmentExtent::default())?;
        let start = Start::Beginning;
        let mut walk = walk_of(source, &options, start, &Filter::default())?;
        match walk.step() {
            Err(Error::Damage(_)) if is_key_of(&self.folder, &view.segments) => Ok(()),
            Err(Error::Damage(damage)) => Err(found.unknown_key(&first.path, damage.wrong_key)),
            other => other.map(drop),
        }
    }

    /// The log's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.folder.path
    }

    /// What each record has.
    #[must_use]
    pub fn columns(&self) -> &'static [Column] {
        active::FORMAT.columns(self.options.dialect)
    }

    /// The segments that are there now, in order.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn segments(&self) -> Result<Vec<Segment>> {
        Ok(self.view()?.segments)
    }

    /// How far the log is on the disk. `None` while nothing is, or where the mark is lost.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn synced(&self) -> Result<Option<Synced>> {
        Ok(Mark::read(&self.folder)?.place())
    }

    /// How far the last record that is on the disk is ahead of the clock; `None` by less than a second.
    ///
    /// # Errors
    /// As [`synced`](Self::synced).
    pub fn clock_ahead(&self) -> Result<Option<Duration>> {
        let last = self.synced()?;
        Ok(last.and_then(|last| uuid6::ahead(last.uuid.as_bytes())))
    }

    /// All records that are on the disk now, in order: an iterator that opens one segment after the other.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn records(&self) -> Result<Records> {
        self.range(&Filter::default())
    }

    /// The records that a filter lets through, beside that of the options. Segments whose UUIDs show that they have none are not
    /// opened.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn range(&self, filter: &Filter) -> Result<Records> {
        let report = Report::new(&active::FORMAT, Some(self.path()), 0);
        Ok(Records::new(self.columns(), Ok(self.walk(filter)?), report))
    }

    /// A walk through all segments, for readers that take batches. Offsets count from the beginning of each segment's file.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[doc(hidden)]
    pub fn walk(&self, filter: &Filter) -> Result<Box<dyn Walk>> {
        let nothing = BytesSource::new(Vec::new());
        let view = self.view()?;
        let mark = view.mark.sequence;
        let mut next = match view.segments.first() {
            Some(first) => first.id.sequence,
            None => mark.max(1),
        };
        let found = view.segments.iter().map(|segment| segment.id.sequence);
        for sequence in found.chain([mark.saturating_add(1)]) {
            self.skipped.add_missing(self.path(), next, sequence);
            next = sequence.saturating_add(1);
        }
        Ok(Box::new(Layered(LogWalk {
            view,
            next: 0,
            reader: self.clone(),
            filter: self.options.filter.clone().both(filter),
            walk: Box::new(EmptyWalk::new(&active::FORMAT, &nothing)),
        })))
    }

    /// The records that a filter lets through, beside that of the options, as Arrow record batches. The column `path` is the log's
    /// folder, `position` counts from the beginning of each segment's file.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`Error::Usage`] for a selection of another format.
    #[cfg(feature = "arrow")]
    pub fn batches(
        &self,
        filter: &Filter,
        selection: Selection,
        limits: Limits,
    ) -> Result<Batches> {
        selection.check(self.columns())?;
        let record_bytes = self.options.record_bytes.min(Options::RECORD_BYTES);
        let options = self.options.clone().values(selection.values);
        let reader = Self {
            options: options.record_bytes(record_bytes),
            ..self.clone()
        };
        let report = Report::new(&active::FORMAT, Some(self.path()), 0);
        let walk = reader.walk(filter)?;
        Ok(Batches::of_walk(walk, report, selection, limits))
    }

    /// Finds a record by its UUID; `None` if it is not in the log.
    ///
    /// # Errors
    /// Those of reading the segment that it would be in.
    pub fn get(&self, uuid: &Uuid) -> Result<Option<Record>> {
        Ok(self.get_many(std::slice::from_ref(uuid))?.pop().flatten())
    }

    /// Finds several records by their UUIDs, which may come in any order and repeat; `None` for each that is not in the log.
    ///
    /// # Errors
    /// Those of reading the segments that they would be in.
    pub fn get_many(&self, uuids: &[Uuid]) -> Result<Vec<Option<Record>>> {
        let (columns, mut found) = (self.columns(), Vec::with_capacity(uuids.len()));
        self.hits(uuids)?.each(|hit| {
            let identifier = active::FORMAT.identifier;
            found.push(hit.map(|(rows, row)| Record::of(identifier, columns, rows, row)));
        });
        Ok(found)
    }

    /// The same without copying the records.
    ///
    /// # Errors
    /// As [`get_many`](Self::get_many).
    #[doc(hidden)]
    pub fn hits(&self, uuids: &[Uuid]) -> Result<Hits> {
        match self.hits_in(&*self.known()?, uuids) {
            // It was removed so soon after it was listed that the time of the folder is the same.
            Err(Error::SegmentGone { .. }) => self.hits_in(&self.view()?, uuids),
            hits => hits,
        }
    }

    /// The segments, not listed again if neither the mark nor the folder has changed.
    pub(super) fn known(&self) -> Result<Arc<View>> {
        let stat = self.disk().stat(self.path(), true);
        let stat = stat.map_err(|error| Error::io(Some(self.path()), "cannot stat", error))?;
        let mark = Mark::read(&self.folder)?;
        // Never waited for: a thread that a fork left behind may have it.
        if let Ok(known) = self.known.try_lock()
            && let Some((modified, view)) = &*known
            && (Some(*modified), view.mark) == (stat.modified, mark)
        {
            return Ok(view.clone());
        }
        let view = Arc::new(self.view()?);
        if let Ok(mut known) = self.known.try_lock() {
            *known = stat.modified.map(|modified| (modified, view.clone()));
        }
        Ok(view)
    }

    fn hits_in(&self, view: &View, uuids: &[Uuid]) -> Result<Hits> {
        // Each segment is opened once: by its place, the places in `uuids` of those that it may have.
        let mut asked: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, uuid) in uuids.iter().enumerate() {
            let is_before = |segment: &Segment| segment.id.first <= *uuid;
            let after = view.segments.partition_point(is_before);
            if let Some(segment) = after.checked_sub(1) {
                asked.entry(segment).or_default().push(place);
            }
        }
        let mut all = Hits {
            places: vec![None; uuids.len()],
            columns: Some(self.columns()),
            ..Hits::default()
        };
        for (segment, places) in asked {
            let Some(segment) = view.segments.get(segment) else {
                continue;
            };
            let reach = self.reach(view, segment);
            let last = reach.last();
            let id = |place: usize| {
                let uuid = uuids.get(place).filter(|_| !reach.is_nothing())?;
                let is_there = last.is_none_or(|last| *uuid.as_bytes() <= last);
                is_there.then(|| (place, RecordId::from(uuid.into_bytes())))
            };
            let (places, ids): (Vec<_>, Vec<_>) = places.into_iter().filter_map(id).unzip();
            if ids.is_empty() {
                continue;
            }
            let (source, kind) = self.source(segment, &reach)?;
            let options = self.options.clone().format(kind.format());
            let options = options.filter(Filter::default());
            let hits = format::lookup(source, &options)?.get(&ids)?;
            for (place, hit) in places.into_iter().zip(hits.places) {
                if let Some(place) = all.places.get_mut(place) {
                    *place = hit.map(|(set, row)| (set + all.sets.len(), row));
                }
            }
            all.sets.extend(hits.sets);
            all.unproven = all.unproven.or(hits.unproven);
        }
        Ok(all)
    }

    pub(super) fn view(&self) -> Result<View> {
        self.look().map(|(view, _)| view)
    }

    /// What is there now, and what was found in the file of the mark.
    fn look(&self) -> Result<(View, MarkState)> {
        // The mark first: what it says is on the disk is in the listing that follows.
        let (mark, found) = Mark::find(&self.folder)?;
        let list = match self.options.strict {
            true => Listing::read,
            false => Listing::read_past_gaps,
        };
        let view = View {
            segments: list(self.disk(), self.path(), mark.sequence)?.segments,
            mark,
            unread: Mutex::default(),
        };
        Ok((view, found))
    }

    pub(super) const fn disk(&self) -> &DiskRef {
        &self.folder.disk
    }

    /// What it reads with.
    #[must_use]
    #[doc(hidden)]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Opens a segment, sealed or not: while it is being sealed, its file is replaced by another.
    ///
    /// # Errors
    /// [`Error::SegmentGone`] where it was removed; [`Error::Io`].
    fn source(&self, segment: &Segment, reach: &SegmentExtent) -> Result<SegmentSource> {
        reach.open(self.path(), &self.options, (segment.id, segment.kind))
    }

    /// How much of a segment is read, and how far it has to reach.
    pub(super) fn reach(&self, view: &View, segment: &Segment) -> SegmentExtent {
        let newest = view.segments.last().map(|newest| newest.id);
        let is_newest = newest == Some(segment.id);
        SegmentExtent::of(&self.folder, &view.mark, segment, is_newest)
    }

    /// The records of a segment that a filter lets through.
    pub(super) fn walk_segment(
        &self,
        segment: &Segment,
        reach: &SegmentExtent,
        filter: &Filter,
    ) -> Result<Box<dyn Walk>> {
        let source = self.source(segment, reach)?;
        walk_of(source, &self.options, Start::Beginning, filter)
    }

    /// What readers leave out now, since it is after the synced mark and no writer has the log open: `None` if that is nothing, and while
    /// a writer has it open.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn unread(&self) -> Result<Option<Unread>> {
        self.unread_of(&*self.known()?)
    }

    /// The same, of a log that was listed.
    pub(super) fn unread_of(&self, view: &View) -> Result<Option<Unread>> {
        let Some(newest) = view.segments.last() else {
            return Ok(None);
        };
        let reach = self.reach(view, newest);
        let Some(bound) = reach.limit() else {
            return Ok(None);
        };
        let is_pending = || Lock::is_held(self.disk(), self.path());
        // Not by its name: of what is another segment nothing is read either.
        let stat = self.disk().stat(&newest.path, true).ok();
        // A writer that comes and goes moves the mark, with which all is listed again.
        if let Ok(known) = view.unread.try_lock()
            && let Some((_, unread)) = known.filter(|(of, _)| *of == stat)
        {
            return Ok(unread.filter(|_| !is_pending()));
        }
        if stat.is_some_and(|stat| bound.offset >= stat.len) || is_pending() {
            return Ok(None);
        }
        let file = match FileSource::open_on(self.disk(), &newest.path) {
            // Sealed or removed since it was listed.
            Err(error) if error.is_not_found() => return Ok(None),
            file => file?,
        };
        // Reading reports another segment under this name.
        let of = (newest.id, newest.kind);
        if check_identity(&self.options, of, (&newest.path, &file)).is_err() {
            return Ok(None);
        }
        let file = Arc::new(file.around_unreadable());
        let options = self.options().for_ledger();
        let (mut end, mut records) = (bound.offset, 0);
        if data_end_after(&*file, end, || options.poll())? > end {
            let mut walk = ActiveWalk::open(file, &options, Begin::Offset(end))?;
            while walk.step()? == Step::More {
                let used = walk.spans().iter().filter(|span| span.kind != Kind::Unused);
                end = used.map(|span| span.end).fold(end, u64::max);
                records += walk.rows().len() as u64;
            }
        }
        if is_pending() || Mark::read(&self.folder)? != view.mark {
            return Ok(None);
        }
        let unread = (end > bound.offset).then_some(Unread {
            id: newest.id,
            offset: bound.offset,
            nbytes: end - bound.offset,
            records,
            marked: view.mark.sequence,
        });
        if let Ok(mut known) = view.unread.try_lock() {
            *known = Some((stat, unread));
        }
        Ok(unread)
    }
}

/// The file of a segment, as far as it is read, and its kind.
type SegmentSource = (Arc<dyn Source>, SegmentKind);

/// The records of a segment's file from `start` on that a filter lets through.
pub(super) fn walk_of(
    (source, kind): SegmentSource,
    options: &Options,
    start: Start<'_>,
    filter: &Filter,
) -> Result<Box<dyn Walk>> {
    let options = options.clone().format(kind.format()).filter(filter.clone());
    match kind {
        SegmentKind::Sealed if !filter.is_empty() => {
            format::lookup(source, &options)?.range(filter)
        }
        _ => format::open(source, &options, start),
    }
}

/// A walk through the segments of a log, one after the other. Offsets count from the beginning of each segment's file.
struct LogWalk {
    reader: LogReader,
    view: View,
    /// The place in the view of the next segment.
    next: usize,
    filter: Filter,
    walk: Box<dyn Walk>,
}

impl LogWalk {
    /// Whether the UUIDs of a segment show that none of its records is wanted.
    fn is_passed(&self, segment: &Segment) -> bool {
        let after = self.view.segments.get(self.next + 1);
        let bounds = UuidBounds::of(&self.filter);
        let is_below = after
            .zip(bounds.since())
            .is_some_and(|(after, since)| after.id.first.into_bytes() <= since);
        is_below || bounds.is_past(segment.id.first.as_bytes())
    }
}

impl WalkLayer for LogWalk {
    fn walk(&self) -> &dyn Walk {
        &*self.walk
    }

    fn step(&mut self) -> Result<Step> {
        loop {
            if self.walk.step()? == Step::More {
                return Ok(Step::More);
            }
            let Some(segment) = self.view.segments.get(self.next) else {
                return Ok(Step::Done);
            };
            if !self.is_passed(segment) {
                let reach = self.reader.reach(&self.view, segment);
                if !reach.is_nothing() {
                    let LogReader {
                        skipped, options, ..
                    } = &self.reader;
                    let opened = self.reader.walk_segment(segment, &reach, &self.filter);
                    let opened = skipped.unless_lost(options, &segment.path, opened)?;
                    opened.into_iter().for_each(|walk| self.walk = walk);
                }
            }
            self.next += 1;
        }
    }
}
