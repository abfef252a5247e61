//! What readers leave out of a log: records after the synced mark, and past damage segments that are missing or another's.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::name::SegmentId;
use crate::error::{Error, Result};
use crate::sync::Mutex;
use crate::text;
use crate::walk::Options;

/// Something of a log that was passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// The file that it is of, or the log's folder.
    pub path: PathBuf,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", text::path(&self.path), self.reason)
    }
}

/// What is after the synced mark of a log that no writer has open: readers leave it out, as nothing says that it is on the disk. With a
/// writer such bytes are on their way there, so there is nothing to say of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unread {
    /// The segment that it is in: the newest one.
    pub id: SegmentId,
    /// Up to where that is read, in bytes.
    pub offset: u64,
    /// How many bytes after that are not read, without zeros at the end.
    pub nbytes: u64,
    /// How many sound records these have.
    pub records: u64,
    /// The place in the log of the segment that the mark is in; 0 if there is no mark.
    pub marked: u64,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sequence, nbytes, offset) = (self.id.sequence, self.nbytes, self.offset);
        let records = match self.records {
            1 => "1 record is".to_owned(),
            records => format!("{records} records are"),
        };
        let mark = match self.marked {
            0 => "expected a synced mark in it, found none".to_owned(),
            marked if marked == sequence => "the synced mark ends there".to_owned(),
            marked => format!("expected a synced mark in it, found one in segment {marked}"),
        };
        write!(
            f,
            "{records} not read, in {nbytes} bytes of segment {sequence} from offset {offset} on: {mark}, and no writer has the log open. Open it for writing, which takes them in: `seglake log write` with no input does"
        )
    }
}

/// What was passed over and not taken yet. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct SkippedList(Arc<Mutex<Vec<Skipped>>>);

impl SkippedList {
    pub(super) fn add(&self, path: &Path, reason: impl Into<String>) {
        let skipped = Skipped {
            path: path.to_path_buf(),
            reason: reason.into(),
        };
        if let Ok(mut list) = self.0.lock() {
            list.push(skipped);
        }
    }

    /// Adds segments that are not there, from a place in the log up to another without it.
    pub(super) fn add_missing(&self, folder: &Path, from: u64, to: u64) {
        let reason = match to.saturating_sub(from) {
            0 => return,
            1 => format!("segment {from} is missing"),
            _ => format!("segments {from} to {} are missing", to.saturating_sub(1)),
        };
        self.add(folder, reason);
    }

    /// What opening a segment gave; `None` if reading past damage passes over it, since it is another one, or gone.
    pub(super) fn unless_lost<T>(
        &self,
        options: &Options,
        path: &Path,
        opened: Result<T>,
    ) -> Result<Option<T>> {
        let is_lost = |error: &Error| {
            matches!(error, Error::Log { .. } | Error::SegmentGone { .. }) || error.is_not_found()
        };
        match opened {
            Err(error) if is_lost(&error) && !options.strict => {
                self.add(path, error.to_string());
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }

    pub(super) fn take(&self) -> Vec<Skipped> {
        // Never waited for: a thread that a fork left behind may have it.
        match self.0.try_lock() {
            Ok(mut list) => std::mem::take(&mut *list),
            Err(_) => Vec::new(),
        }
    }
}
