//! What reading past damage leaves out of a log: segments that are missing, or whose file is another's.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::reader::LogReader;
use crate::error::{Error, Result};
use crate::text;

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

impl Skipped {
    pub(super) fn new(path: &Path, reason: impl Into<String>) -> Self {
        Self {
            path: path.to_path_buf(),
            reason: reason.into(),
        }
    }

    /// Segments that are not there, from a place in the log up to another without it.
    pub(super) fn missing(folder: &Path, from: u64, to: u64) -> Self {
        let reason = match to.saturating_sub(from) {
            0 | 1 => format!("segment {from} is missing"),
            _ => format!("segments {from} to {} are missing", to.saturating_sub(1)),
        };
        Self::new(folder, reason)
    }
}

/// Whether reading past damage passes over a segment that cannot be opened for this: it is another one, or gone.
pub(super) fn is_passed_over(error: &Error) -> bool {
    match error {
        Error::Format { .. } | Error::SegmentGone { .. } => true,
        Error::Io { source, .. } => source.kind() == ErrorKind::NotFound,
        _ => false,
    }
}

impl LogReader {
    /// What reading past damage leaves out now beside ranges of segments: segments that are missing, or whose file is that of another.
    /// Strict reading raises an error for each.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn lost(&self) -> Result<Vec<Skipped>> {
        let view = self.view()?;
        let mut lost = Vec::new();
        let mut next = None;
        for segment in &view.segments {
            let sequence = segment.id.sequence;
            if let Some(next) = next.filter(|next| *next < sequence) {
                lost.push(Skipped::missing(self.path(), next, sequence));
            }
            next = Some(sequence + 1);
            match self.file(segment) {
                Err(error) if is_passed_over(&error) => {
                    lost.push(Skipped::new(&segment.path, error.to_string()));
                }
                file => file.map(drop)?,
            }
        }
        match next {
            Some(next) if view.mark.sequence >= next => {
                let end = view.mark.sequence + 1;
                lost.push(Skipped::missing(self.path(), next, end));
            }
            _ => {}
        }
        Ok(lost)
    }
}
