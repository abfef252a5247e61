//! What was found in a file.

use std::ops::Deref;
use std::path::Path;

use super::diagnosis::Diagnosis;
use crate::engine::{Format, Walk, sum_up};
use crate::ledger::Summary;
use crate::source::Source;

/// What was found in a file, or in the part of it that has been read: its [`Summary`], whose fields are the report's as well, and
/// what damage probably comes from.
#[derive(Clone, Debug)]
pub struct Report {
    /// The format.
    pub format: &'static Format,
    /// Sums, and the first damaged ranges.
    pub summary: Summary,
    /// What the first of them probably come from, in the same order: empty unless [`diagnose`](super::diagnose) was asked.
    pub diagnoses: Vec<Diagnosis>,
}

impl Deref for Report {
    type Target = Summary;

    fn deref(&self) -> &Summary {
        &self.summary
    }
}

impl Report {
    /// How many damaged ranges a report names.
    pub const MAX_DAMAGE: usize = Summary::MAX_DAMAGE;

    /// An empty report on a file of `size` bytes.
    #[must_use]
    pub fn new(format: &'static Format, path: Option<&Path>, size: u64) -> Self {
        Self::from_summary(format, Summary::new(format.checked, path, size))
    }

    /// An empty report on this source.
    #[must_use]
    pub fn of(format: &'static Format, source: &dyn Source) -> Self {
        Self::new(format, source.path(), source.len())
    }

    /// A report of which no more is known than a summary.
    #[must_use]
    pub const fn from_summary(format: &'static Format, summary: Summary) -> Self {
        Self {
            format,
            summary,
            diagnoses: Vec::new(),
        }
    }

    /// Adds what the last step of a walk found.
    pub fn add(&mut self, walk: &dyn Walk) {
        sum_up(walk, &mut self.summary);
    }

    /// Takes over what a walk knows of the whole of what it has read.
    pub(crate) fn note(&mut self, walk: &dyn Walk) {
        self.summary.note(walk.checked(), walk.suspects_key());
    }

    /// Adds what was found in another [part](crate::format::Part) of the same file. The reports on all parts, in any order, make
    /// the report on the whole.
    pub fn merge(&mut self, part: &Self) {
        self.summary.merge(&part.summary);
    }
}
