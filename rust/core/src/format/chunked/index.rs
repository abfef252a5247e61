//! The index beside a segment: a hint where chunks are. Each item is checked when it is used.
//!
//! ```text
//! index: (offset i64 ‖ file offset i64 ‖ checksum u32)*
//! ```
//! Big-endian. `offset` is the message offset of the first record of the chunk at `file offset`. `checksum` is
//! CRC-32 (IEEE) of the 16 bytes before it. If an index is damaged, the segment is read without it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::FORMAT;
use super::hop::{self, DataEnd};
use super::judge;
use super::layout::{ITEM_BYTES, Item};
use super::walk::ChunkedWalk;
use crate::engine::append::survey;
use crate::error::{Error, Result};
use crate::ledger::Summary;
use crate::ledger::{Cause, Fate, Kind, Span, Tiling};
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};
use crate::spec::Filter;
use crate::walk::{Begin, Eof, IndexSource, Options};

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

/// A range of an index's ledger, and its item if that is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The range. Its kind is [`Kind::Record`] if it is a good item.
    pub span: Span,
    /// The item.
    pub item: Option<Item>,
}

/// An index's ledger, in bounded memory: an iterator over its ranges, each checked against the segment.
pub struct Entries<'a> {
    log: &'a dyn Source,
    index: &'a dyn Source,
    options: Options,
    window: Window,
    at: u64,
    last: Option<Item>,
    /// Whether any item's checksum matched.
    verified: bool,
    fate: Option<Fate>,
    tiling: Tiling,
    spans: Vec<Span>,
    item: Option<Item>,
    failed: bool,
    data_end: DataEnd,
    beyond: Option<Item>,
}

impl<'a> Entries<'a> {
    /// Creates the ledger of an index of the segment `log`.
    #[must_use]
    pub fn new(log: &'a dyn Source, index: &'a dyn Source, options: &Options) -> Self {
        Self {
            log,
            index,
            options: options.clone(),
            window: Window::default(),
            at: 0,
            last: None,
            verified: false,
            fate: None,
            tiling: Tiling::default(),
            spans: Vec::new(),
            item: None,
            failed: false,
            data_end: DataEnd::default(),
            beyond: None,
        }
    }

    /// As [`Index::beyond`], of what was read so far.
    #[must_use]
    pub const fn beyond(&self) -> Option<Item> {
        self.beyond
    }

    /// Whether any item read so far has a matching checksum. After damage, all items up to the next good one are
    /// read.
    pub(super) const fn any_verified(&self) -> bool {
        self.verified
    }

    /// The item at `at`, or its cause if it is damaged.
    fn examine(&mut self, at: u64) -> Result<std::result::Result<Item, Cause>> {
        let left = saturating_usize(self.index.len() - at);
        self.window.load(
            self.index,
            at,
            left.min(ITEM_BYTES),
            self.options.window_bytes,
        )?;
        let item = match judge::item(self.window.bytes(self.index, at)) {
            Ok(item) => item,
            Err(cause) => return Ok(Err(cause)),
        };
        self.verified = true;
        let agrees = hop::chunk_of(item, self.log)?.is_some();
        if !agrees {
            let data_end = self.data_end.of(self.log, &self.options)?;
            let is_beyond = u64::try_from(item.file_offset).is_ok_and(|at| at >= data_end);
            if is_beyond
                && self
                    .beyond
                    .is_none_or(|own| own.file_offset < item.file_offset)
            {
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

    /// Commits the next item, or the damage there.
    fn advance(&mut self) -> Result<()> {
        let at = self.at;
        let end = (at + ITEM_BYTES as u64).min(self.index.len());
        let cause = match self.examine(at)? {
            Ok(item) => {
                self.tiling.cover(end, Kind::Record, None, &mut self.spans);
                (self.last, self.item, self.fate) = (Some(item), Some(item), None);
                self.at = end;
                return Ok(());
            }
            Err(cause) => cause,
        };
        let fate = match self.fate {
            Some(fate) => fate,
            None => {
                let fate = self.look_ahead(end)?;
                *self.fate.insert(fate)
            }
        };
        self.tiling
            .cover(end, fate.kind(cause), Some(cause), &mut self.spans);
        self.at = end;
        Ok(())
    }

    fn next_entry(&mut self) -> Result<Option<Entry>> {
        while self.spans.is_empty() && self.at < self.index.len() {
            self.options.poll()?;
            self.advance()?;
        }
        if self.spans.is_empty() {
            self.tiling.finish(&mut self.spans);
        }
        if self.spans.is_empty() {
            return Ok(None);
        }
        let span = self.spans.remove(0); // two at most
        let item = if span.kind == Kind::Record {
            self.item.take()
        } else {
            None
        };
        Ok(Some(Entry { span, item }))
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let entry = self.next_entry();
        self.failed = entry.is_err();
        entry.transpose()
    }
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
    /// Reads an index of the segment `log`. Memory grows with the index; [`Entries`] returns the same one by one.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::Interrupted`](crate::Error::Interrupted). Damage is in the
    /// ledger.
    pub fn read(log: &dyn Source, index: &dyn Source, options: &Options) -> Result<Self> {
        let mut read = Self {
            size: index.len(),
            ..Self::default()
        };
        let mut entries = Entries::new(log, index, options);
        for entry in &mut entries {
            let Entry { span, item } = entry?;
            read.spans.push(span);
            read.items.extend(item);
        }
        read.beyond = entries.beyond();
        Ok(read)
    }
}

/// The offset of the last chunk that the index of the options names after the end of a segment's data, if there is one.
///
/// # Errors
/// [`Error::Io`], [`Error::Interrupted`].
pub(super) fn beyond(log: &dyn Source, options: &Options) -> Result<Option<u64>> {
    let Some(index) = find(log, options) else {
        return Ok(None);
    };
    let mut entries = Entries::new(log, &*index, options);
    entries.by_ref().try_for_each(|entry| entry.map(drop))?;
    let place = |item: Item| u64::try_from(item.file_offset).ok();
    Ok(entries.beyond().and_then(place))
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
    let options = options
        .clone()
        .format(&FORMAT)
        .strict(false)
        .values(false)
        .filter(Filter::default())
        .eof(Eof::Final);
    let mut found = Summary::new(FORMAT.checked, log.path(), log.len());
    let mut walk = ChunkedWalk::open(log, &options, Begin::Beginning)?;
    survey(&mut walk, &mut found, |walk| {
        let mut chunks = walk.scan().chunks().iter().copied();
        chunks.try_for_each(&mut put)
    })?;
    Ok(found)
}
