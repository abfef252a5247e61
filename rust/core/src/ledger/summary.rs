//! Sums over the records and ranges of a walk.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Covered, RecordRun, Span, Totals};
use crate::os_paths as paths;
use crate::record::{Checked, Rows};

/// A summary of a file, or of the part of it that was read: sums, and the first damaged ranges.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Summary {
    /// The file, if it has a name.
    #[serde(with = "paths::optional")]
    pub path: Option<PathBuf>,
    /// How records were checked.
    pub checked: Checked,
    /// The length of the whole file, in bytes.
    pub size: u64,
    /// How many bytes were read.
    pub bytes: u64,
    /// The number of sound records.
    pub records: u64,
    /// The number of records with bytes that a parity sidecar restores. They are among the sound ones only if that was
    /// asked for ([`Options::repair`](crate::Options::repair)).
    pub repaired: u64,
    /// The least time of an emitted record, in microseconds since 1970-01-01 UTC.
    pub first_timestamp: Option<i64>,
    /// The greatest time of an emitted record, in the same unit.
    pub last_timestamp: Option<i64>,
    /// Bytes and number of ranges by kind and cause.
    pub totals: Totals,
    /// The first [`MAX_DAMAGE`](Self::MAX_DAMAGE) damaged ranges, in file order.
    pub damage: Vec<Span>,
    /// Whether there are more damaged ranges than `damage` lists. `totals` include all of them.
    pub truncated: bool,
    suspects_key: bool,
    covered: Covered,
}

impl Summary {
    /// The most damaged ranges that a summary lists.
    pub const MAX_DAMAGE: usize = 10_000;

    /// An empty summary of a file of `size` bytes.
    #[must_use]
    #[doc(hidden)]
    pub fn new(checked: Checked, path: Option<&Path>, size: u64) -> Self {
        Self {
            path: path.map(Into::into),
            checked,
            size,
            bytes: 0,
            records: 0,
            repaired: 0,
            first_timestamp: None,
            last_timestamp: None,
            totals: Totals::default(),
            damage: Vec::new(),
            truncated: false,
            suspects_key: false,
            covered: Covered::default(),
        }
    }

    /// Adds a walk's step: its ranges, as a run if they are one, and its sound records.
    #[doc(hidden)]
    pub fn add(&mut self, run: Option<&RecordRun>, spans: &[Span], rows: &dyn Rows) {
        if let Some(run) = run {
            self.covered.extend(&[run.span()]);
            self.totals.add_records(run);
        } else {
            self.covered.extend(spans);
            if self.totals.add_all(spans) {
                for span in spans.iter().filter(|span| span.is_damage()) {
                    self.name(*span);
                }
            }
        }
        self.bytes = self.totals.bytes();
        self.records += rows.len() as u64;
        let (least, greatest) = rows.times().unzip();
        self.widen(least, greatest);
    }

    /// Sets what applies to everything read: how records are checked, and whether the key is probably wrong.
    #[doc(hidden)]
    pub const fn note(&mut self, checked: Checked, suspects_key: bool) {
        self.checked = checked;
        self.suspects_key = suspects_key;
    }

    /// Adds the summary of another [part](crate::format::Part) of the same file. The summaries of all parts, in any
    /// order, add up to that of the whole file.
    #[doc(hidden)]
    pub fn merge(&mut self, part: &Self) {
        self.records += part.records;
        self.repaired += part.repaired;
        self.widen(part.first_timestamp, part.last_timestamp);
        self.totals.merge(&part.totals);
        self.truncated |= part.truncated;
        self.join(&part.covered, &part.damage);
        self.bytes = self.totals.bytes();
        self.checked = part.checked;
        self.suspects_key |= part.suspects_key;
    }

    /// Ends a walk: it emits the ranges of an index or table of contents last, and the last of them may go on with its first.
    pub(crate) fn close(&mut self) {
        self.join(&Covered::default(), &[]);
    }

    /// Adds what was read elsewhere and is damaged there: where two ranges meet, two spans may be one.
    fn join(&mut self, covered: &Covered, damage: &[Span]) {
        let joined = self.covered.merge(covered);
        joined.iter().for_each(|span| self.totals.join(span));
        let is_whole = |span: &&Span| {
            let holds = |one: &Span| one.start <= span.start && span.end <= one.end;
            !joined.iter().any(holds)
        };
        self.damage.retain(|span| is_whole(&span));
        // The two halves of a merged range are left out, so that they do not use two places of a full list.
        for span in damage.iter().filter(is_whole).chain(&joined) {
            if span.is_damage() {
                self.name(*span);
            }
        }
    }

    /// Extends the range of times.
    fn widen(&mut self, least: Option<i64>, greatest: Option<i64>) {
        let first = self.first_timestamp.into_iter().chain(least);
        self.first_timestamp = first.min();
        self.last_timestamp = self.last_timestamp.max(greatest);
    }

    /// Lists a damaged range at its place. Ranges of an index come last although they are first in the file.
    fn name(&mut self, span: Span) {
        let is_last = self
            .damage
            .last()
            .is_none_or(|last| (last.start, last.end) <= (span.start, span.end));
        let place = if is_last {
            self.damage.len()
        } else {
            let before = |named: &Span| (named.start, named.end) <= (span.start, span.end);
            self.damage.partition_point(before)
        };
        self.truncated |= self.damage.len() == Self::MAX_DAMAGE;
        if place < Self::MAX_DAMAGE {
            self.damage.truncate(Self::MAX_DAMAGE - 1);
            self.damage.insert(place, span);
        }
    }

    /// Whether no range is damaged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.totals.is_sound()
    }

    /// Whether no record was verified although the structure is sound to the end: the key is probably not the file's.
    #[must_use]
    pub const fn wrong_key(&self) -> bool {
        self.suspects_key
    }
}
