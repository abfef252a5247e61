//! The index beside a segment: a hint where chunks are. Each item is checked when it is used.
//! [`build_index`] makes one, and `IndexRepair` repairs one to append to.
//!
//! ```text
//! index: (offset i64 ‖ file offset i64 ‖ checksum u32)*
//! ```
//! Big-endian. `offset` is the message offset of the first record of the chunk at `file offset`. `checksum` is
//! CRC-32 (IEEE) of the 16 bytes before it. If an index is damaged, the segment is read without it.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::hop;
use super::layout::{ITEM_BYTES, Item};
use super::walk::ChunkedScan;
use super::{FORMAT, judge};
use crate::disk::DiskRef;
use crate::engine::append::survey;
use crate::engine::{Stated, WriteOptions, each_piece};
use crate::error::{Error, Result};
use crate::ledger::{Cause, Fate, Kind, Span, Summary, Tiling};
use crate::limits::LIMITS;
use crate::output::{Appender, Spool};
use crate::saturating::saturating_usize;
use crate::source::{FileSource, Source, Window, data_end};
use crate::walk::input::DataEnd;
use crate::walk::{Begin, Eof, IndexSource, Options};

/// How many items after an offset are of use: chunks may be damaged.
const MAX_AFTER: u64 = 4;

/// The extension of an index's file.
pub const INDEX_EXTENSION: &str = "index";

/// The index that `options` name for a segment, if it can be read.
pub(super) fn find(log: &dyn Source, options: &Options) -> Option<Arc<dyn Source>> {
    match &options.index {
        IndexSource::None => None,
        IndexSource::Source(source) => Some(source.clone()),
        IndexSource::Beside => log.beside(INDEX_EXTENSION).ok().flatten(),
    }
}

/// Whether `options` name an index for a segment and it exists, damaged or not.
///
/// # Errors
/// [`Error::Io`] if that cannot be determined.
pub(super) fn has_index(log: &dyn Source, options: &Options) -> Result<bool> {
    match &options.index {
        IndexSource::None => Ok(false),
        IndexSource::Source(_) => Ok(true),
        IndexSource::Beside => match log.beside(INDEX_EXTENSION) {
            Ok(index) => Ok(index.is_some()),
            // It exists, although it cannot be opened.
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
                Ok(true)
            }
            Err(error) => Err(error),
        },
    }
}

/// The path of the index for the segment at `path`. `None` if the segment itself has that name.
#[must_use]
pub fn beside(path: &Path) -> Option<PathBuf> {
    let index = path.with_extension(INDEX_EXTENSION);
    (index != path).then_some(index)
}

/// The items of an index, each checked against its segment.
struct Items<'a> {
    log: &'a dyn Source,
    index: &'a dyn Source,
    options: &'a Options,
    window: Window,
    last: Option<Item>,
    data_end: DataEnd,
    /// Whether any item's checksum matches.
    verified: bool,
    /// As [`Index::beyond`].
    beyond: Option<Item>,
}

impl Items<'_> {
    /// The item at `at`, or its cause if it is damaged.
    fn examine(&mut self, at: u64) -> Result<std::result::Result<Item, Cause>> {
        let left = saturating_usize(self.index.len() - at).min(ITEM_BYTES);
        let ahead = self.options.window_bytes;
        let item = match judge::item(self.window.exact(self.index, at, left, ahead)?) {
            Ok(item) => item,
            Err(cause) => return Ok(Err(cause)),
        };
        self.verified = true;
        let agrees = hop::chunk_of(item, self.log)?.is_some();
        if !agrees {
            let data_end = self.data_end.of(self.log, self.options)?;
            let is_beyond = u64::try_from(item.file_offset).is_ok_and(|at| at >= data_end);
            let is_last = |known: Item| known.file_offset < item.file_offset;
            if is_beyond && self.beyond.is_none_or(is_last) {
                self.beyond = Some(item);
            }
        }
        Ok(judge::item_verdict(item, agrees, self.last))
    }

    /// Reads ahead after damage, to see whether a good item follows.
    fn look_ahead(&mut self, mut at: u64) -> Result<Fate> {
        while at < self.index.len() {
            self.options.poll()?;
            if self.examine(at)?.is_ok() {
                return Ok(Fate::Corrupt);
            }
            at += ITEM_BYTES as u64;
        }
        Ok(Fate::of_tail(self.verified))
    }
}

/// Goes through an index of the segment `log` in bounded memory. `take` gets each range of its ledger, and the item there if it is good.
fn go_through<'a>(
    log: &'a dyn Source,
    index: &'a dyn Source,
    options: &'a Options,
    mut take: impl FnMut(Span, Option<Item>),
) -> Result<Items<'a>> {
    let mut items = Items {
        log,
        index,
        options,
        window: Window::default(),
        last: None,
        data_end: DataEnd::default(),
        verified: false,
        beyond: None,
    };
    let (mut tiling, mut spans, mut fate) = (Tiling::default(), Vec::new(), None);
    while tiling.end() < index.len() {
        options.poll()?;
        let at = tiling.end();
        let end = (at + ITEM_BYTES as u64).min(index.len());
        let item = match items.examine(at)? {
            Ok(item) => {
                (items.last, fate) = (Some(item), None);
                tiling.cover(end, Kind::Record, None, &mut spans);
                Some(item)
            }
            Err(cause) => {
                let known = match fate {
                    Some(known) => known,
                    None => items.look_ahead(end)?,
                };
                fate = Some(known);
                tiling.cover(end, known.kind(cause), Some(cause), &mut spans);
                None
            }
        };
        for span in spans.drain(..) {
            take(span, item.filter(|_| span.kind == Kind::Record));
        }
    }
    tiling.finish(&mut spans);
    spans.into_iter().for_each(|span| take(span, None));
    Ok(items)
}

/// As [`Index::beyond`], in bounded memory.
///
/// # Errors
/// As [`Index::read`].
pub(crate) fn beyond(
    log: &dyn Source,
    index: &dyn Source,
    options: &Options,
) -> Result<Option<Item>> {
    Ok(go_through(log, index, options, |_, _| {})?.beyond)
}

/// An index, read whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// The index's length, in bytes.
    pub size: u64,
    /// The good items, in order.
    pub items: Vec<Item>,
    /// The index's own ledger.
    pub spans: Vec<Span>,
    /// Of the items whose checksums match, and whose chunks would begin after the last byte of the segment that is not zero, the one
    /// whose chunk would be the last. Then the index knows more than the segment has: the segment was cut off, or is another one.
    pub beyond: Option<Item>,
}

impl Index {
    /// Reads an index of the segment `log`. Memory grows with the index.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::Interrupted`](crate::Error::Interrupted). Damage is in the
    /// ledger.
    pub fn read(log: &dyn Source, index: &dyn Source, options: &Options) -> Result<Self> {
        let (mut items, mut spans) = (Vec::new(), Vec::new());
        let found = go_through(log, index, options, |span, item| {
            spans.push(span);
            items.extend(item);
        })?;
        Ok(Self {
            size: index.len(),
            items,
            spans,
            beyond: found.beyond,
        })
    }
}

/// The offset of the last chunk that the index of the options names after the end of a segment's data, if there is one.
///
/// # Errors
/// [`Error::Io`], [`Error::Interrupted`].
pub(super) fn stated(log: &Arc<dyn Source>, options: &Options) -> Result<Option<Stated>> {
    let Some(index) = find(&**log, options) else {
        return Ok(None);
    };
    let beyond = beyond(&**log, &*index, options)?;
    Ok(beyond.map(|item| Stated {
        end: item.file_offset.cast_unsigned(),
        records: None,
        front: 0,
    }))
}

/// The last item of an index that is before an offset in the log, and the first few after it.
///
/// # Errors
/// [`Error::Interrupted`].
pub(super) fn around(index: &dyn Source, at: u64) -> Result<(Option<Item>, Vec<Item>)> {
    let place = |item: Item| u64::try_from(item.file_offset);
    let low = partition(index, |item| place(item).is_ok_and(|place| place < at))?;
    let before = match low.checked_sub(1) {
        Some(last) => first_item(index, last..low)?.map(|(_, item)| item),
        None => None,
    };
    let mut after = Vec::new();
    for number in low..low.saturating_add(MAX_AFTER) {
        let item = first_item(index, number..number + 1)?.map(|(_, item)| item);
        after.extend(item.filter(|item| place(*item).is_ok_and(|place| place > at)));
    }
    Ok((before, after))
}

/// The number of the first item that is not before something, if the index is right: items ascend.
pub(super) fn partition(index: &dyn Source, is_before: impl Fn(Item) -> bool) -> Result<u64> {
    let (mut low, mut high) = (0, index.len() / ITEM_BYTES as u64);
    while low < high {
        let middle = low.midpoint(high);
        let near = middle..high.min(middle + LIMITS.near_index_items);
        match first_item(index, near)? {
            Some((place, item)) if is_before(item) => low = place + 1,
            _ => high = middle,
        }
    }
    Ok(low)
}

/// The first of these items whose checksum matches, and its number.
pub(super) fn first_item(index: &dyn Source, places: Range<u64>) -> Result<Option<(u64, Item)>> {
    let items = index.len() / ITEM_BYTES as u64;
    for place in places.start..places.end.min(items) {
        let mut bytes = [0; ITEM_BYTES];
        match index.read_exact_at(place * ITEM_BYTES as u64, &mut bytes) {
            Ok(()) => {}
            // An unreadable index is treated as absent.
            Err(Error::Io { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
        if let Ok(item) = judge::item(&bytes) {
            return Ok(Some((place, item)));
        }
    }
    Ok(None)
}

/// Walks a segment, damaged or not, and passes to `put` the item of each good chunk that has records, in order.
/// That is the segment's index as a writer would have written it. Returns a summary of the segment.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io), [`Error::Limit`](crate::Error::Limit),
/// [`Error::Interrupted`](crate::Error::Interrupted), and the errors of `put`.
pub fn build_index(
    log: Arc<dyn Source>,
    options: &Options,
    mut put: impl FnMut(Item) -> Result<()>,
) -> Result<Summary> {
    let options = options.for_ledger().format(&FORMAT).eof(Eof::Final);
    let mut found = Summary::new(FORMAT.checked, log.path(), log.len());
    let mut walk = ChunkedScan::open(log, &options, Begin::Beginning)?.into_walk();
    survey(&mut walk, &mut found, |walk| {
        let mut chunks = walk.scan().chunks().iter().copied();
        chunks.try_for_each(&mut put)
    })?;
    Ok(found)
}

/// How much of an index is read at a time.
const READ_BYTES: usize = 64 << 10;

/// The path of the index for the segment at `path`.
pub(super) fn index_path(path: &Path) -> Result<PathBuf> {
    beside(path).ok_or_else(|| {
        Error::Usage(format!(
            "{} has the name of its own index: give the segment another extension, or write it without an index (`index`)",
            crate::text::path(path)
        ))
    })
}

/// Refuses to replace a file that happens to have the name of a new segment's index.
pub(super) fn refuse_existing(disk: &DiskRef, index: &Path) -> Result<()> {
    match disk.stat(index, false) {
        Ok(stat) if stat.len > 0 => Err(Error::io(
            Some(index),
            "a new segment's index would replace this file: move it away, or write the segment without an index (`index`)",
            ErrorKind::AlreadyExists.into(),
        )),
        _ => Ok(()),
    }
}

/// Compares an index with what it should be, and spills what it lacks.
pub(super) struct IndexRepair {
    disk: DiskRef,
    path: PathBuf,
    existing: Option<FileSource>,
    window: Window,
    /// How many bytes of the index are right.
    right: u64,
    /// What must follow them. Created when there is anything.
    missing: Option<Spool>,
}

impl IndexRepair {
    pub(super) fn new(disk: &DiskRef, path: PathBuf) -> Result<Self> {
        let existing = match FileSource::open_on(disk, &path) {
            Ok(file) => Some(file),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        Ok(Self {
            disk: disk.clone(),
            path,
            existing,
            window: Window::default(),
            right: 0,
            missing: None,
        })
    }

    /// Takes the next item that the index should have.
    pub(super) fn expect(&mut self, item: &Item) -> Result<()> {
        let bytes = item.encode();
        let missing = match self.missing.take() {
            Some(missing) => missing,
            None if self.is_next(&bytes)? => {
                self.right += ITEM_BYTES as u64;
                return Ok(());
            }
            None => Spool::create(&self.disk, &self.path)?,
        };
        let missing = self.missing.insert(missing);
        missing.buffer().extend_from_slice(&bytes);
        missing.flush_if_full()
    }

    fn is_next(&mut self, item: &[u8; ITEM_BYTES]) -> Result<bool> {
        match &self.existing {
            Some(existing) if existing.len() >= self.right + ITEM_BYTES as u64 => {
                let found = self
                    .window
                    .exact(existing, self.right, ITEM_BYTES, READ_BYTES)?;
                Ok(found == item)
            }
            _ => Ok(false),
        }
    }

    /// Writes what is missing, puts aside what is wrong or too much, and returns the index for appending.
    pub(super) fn repair(mut self, log: &dyn Source, options: &WriteOptions) -> Result<Appender> {
        let mut len = 0;
        if let Some(existing) = &self.existing {
            len = existing.len();
            if self.right == 0 && len > 0 {
                self.refuse_foreign(log, existing, options)?;
            }
        }
        let mut out = Appender::open(&self.disk, &self.path, true)?;
        let written = self.write(&mut out, len);
        written.inspect_err(|_| out.discard())?;
        Ok(out)
    }

    fn write(&mut self, out: &mut Appender, len: u64) -> Result<()> {
        out.go_to(self.right);
        if self.right < len {
            out.quarantine(self.right..len, false)?;
        }
        if let Some(missing) = &mut self.missing {
            let missing = missing.source()?;
            each_piece(&missing, &Options::default(), 0..missing.len(), |piece| {
                out.buffer().extend_from_slice(piece);
                out.flush_if_full()
            })?;
        }
        out.flush()
    }

    /// Refuses a file that is not empty and has no index item: it is not an index.
    fn refuse_foreign(
        &self,
        log: &dyn Source,
        existing: &FileSource,
        options: &WriteOptions,
    ) -> Result<()> {
        let reading = Options::default().interrupt(options.interrupt.clone());
        let has_item = go_through(log, existing, &reading, |_, _| {})?.verified;
        let is_short = existing.len() < ITEM_BYTES as u64;
        let is_zero = data_end(existing, || reading.poll())? == 0;
        if has_item || is_short || is_zero {
            return Ok(());
        }
        Err(Error::io(
            Some(&self.path),
            "nothing in this file is an index item, so it is not replaced: move it away, or write the segment without an index (`index`)",
            ErrorKind::InvalidData.into(),
        ))
    }
}
