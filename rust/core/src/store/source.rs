//! A log as files to read one by one: its segments at one moment, each opened by what it is and not by its name.
//! docs/formats/log.md, "Getting a log into a lake".

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::end::SegmentExtent;
use super::folder::Segment;
use super::mark::Synced;
use super::name::{SegmentId, SegmentKind};
use super::reader::LogReader;
use super::skipped::Unread;
use crate::checksum::Key;
use crate::disk::DiskRef;
use crate::engine::Format;
use crate::error::{Error, Result};
use crate::source::{Bound, BytesSource, Source};
use crate::spec::Filter;
use crate::walk::Options;

/// A segment of a log as it was at one moment. It gives the records of that moment whenever it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSegment {
    /// The log's folder.
    pub folder: PathBuf,
    /// Its place in the log, and its identity.
    pub id: SegmentId,
    /// Its layout at that moment.
    pub kind: SegmentKind,
    /// How many bytes of its file were to be read.
    pub nbytes: u64,
    /// How far it has to reach, if that is known.
    pub bound: Option<Bound>,
    /// It was being written: what is after the bound is not read.
    pub is_open: bool,
    /// It is kept as it is, since it is damaged or cut off.
    pub is_frozen: bool,
}

/// A log at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedLog {
    /// Its segments, in order.
    pub segments: Vec<ListedSegment>,
    /// As [`LogReader::synced`].
    pub synced: Option<Synced>,
    /// As [`LogReader::unread`].
    pub unread: Option<Unread>,
}

/// The file of a listed segment.
#[non_exhaustive]
pub struct OpenedSegment {
    /// Its bytes, as far as they were listed.
    pub source: Arc<dyn Source>,
    /// Its format by now.
    pub format: &'static Format,
    /// What its records have to meet to be among those that were listed.
    pub filter: Filter,
}

impl ListedLog {
    /// Lists a log's folder. The key is the first of `keys` that is the log's.
    ///
    /// # Errors
    /// As [`LogReader::open`].
    pub fn read(folder: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let folder = folder.as_ref();
        let reader = reader(folder, options)?;
        let view = reader.view()?;
        let segments = view.segments.iter().map(|segment| {
            let reach = reader.reach(&view, segment);
            let len = || nbytes(reader.disk(), folder, segment);
            ListedSegment {
                folder: folder.to_path_buf(),
                id: segment.id,
                kind: segment.kind,
                nbytes: match reach.bound {
                    Some(bound) if reach.is_limit => bound.offset,
                    Some(bound) => len().max(bound.offset),
                    None => len(),
                },
                bound: reach.bound,
                is_open: reach.is_limit,
                is_frozen: segment.is_frozen,
            }
        });
        Ok(Self {
            segments: segments.collect(),
            synced: view.mark.place(),
            unread: reader.unread_of(&view)?,
        })
    }
}

/// A reader under the first key that is the log's.
fn reader(folder: &Path, options: &Options) -> Result<LogReader> {
    let with = |key: &Key| LogReader::open(folder, options.clone().keys(vec![*key]));
    let mut refused = None;
    for key in &options.keys {
        match with(key) {
            Err(error @ Error::Damage(_)) => refused = refused.or(Some(error)),
            other => return other,
        }
    }
    match refused {
        Some(error) => Err(error),
        None => Err(Error::Usage(
            "no key was given: give at least one".to_owned(),
        )),
    }
}

/// The size of a segment's file, or of the one that it was sealed into meanwhile; 0 if it was removed.
fn nbytes(disk: &DiskRef, folder: &Path, segment: &Segment) -> u64 {
    for kind in [segment.kind, SegmentKind::Sealed] {
        if let Ok(stat) = disk.stat(&folder.join(segment.id.file_name(kind)), true) {
            return stat.len;
        }
    }
    0
}

impl ListedSegment {
    /// The segment that the name of a file is of, all of which is to be read; `None` if it is another's.
    #[must_use]
    pub fn named(path: &Path) -> Option<Self> {
        let (id, kind) = SegmentId::parse(path.file_name()?.to_str()?)?;
        Some(Self {
            folder: path.parent()?.to_path_buf(),
            id,
            kind,
            nbytes: 0,
            bound: None,
            is_open: false,
            is_frozen: false,
        })
    }

    /// The path of its file at the moment of the listing.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join(self.id.file_name(self.kind))
    }

    /// Its format at the moment of the listing.
    #[must_use]
    pub fn format(&self) -> &'static Format {
        self.kind.format()
    }

    /// Opens it: the file that was listed, or the one that it was sealed into since. With the keys of the options a record of it is checked
    /// where its first one is not that of its name. What the disk cannot read is an error to strict reading, else damage.
    ///
    /// # Errors
    /// [`Error::SegmentGone`] if it was removed; [`Error::Log`] if there is another segment under its name; [`Error::Io`].
    pub fn open(&self, options: &Options) -> Result<OpenedSegment> {
        let reach = SegmentExtent {
            bound: self.bound,
            is_limit: self.is_open,
        };
        let mut filter = Filter::default();
        if reach.is_nothing() {
            // Nobody was told of a record, so that recovery may have removed the file.
            return Ok(OpenedSegment {
                source: Arc::new(BytesSource::new(Vec::new())),
                format: SegmentKind::Active.format(),
                filter,
            });
        }
        let (source, kind) = reach.open(&self.folder, options, (self.id, self.kind))?;
        // What was written before it was sealed, but after it was listed, is not of that moment.
        if let (SegmentKind::Sealed, Some(last)) = (kind, reach.last()) {
            filter = filter.at_most("uuid", last);
        }
        Ok(OpenedSegment {
            source,
            format: kind.format(),
            filter,
        })
    }

    /// Opens it, and refuses a file that ends before it has to.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`Error::Damage`].
    pub fn check(&self, options: &Options) -> Result<()> {
        let source = self.open(options)?.source;
        let len = source.len();
        match source.bound() {
            Some(bound) => bound.check(source.path(), len, None, len),
            None => Ok(()),
        }
    }
}
