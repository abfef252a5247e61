//! What was found in a file.

use std::path::{Path, PathBuf};

use super::Diagnosis;
use crate::engine::{Checked, Format, Walk};
use crate::ledger::{Span, Stretches, Totals};
use crate::source::Source;

/// What was found in a file, or in the part of it that has been read: sums, and the first damaged ranges.
#[derive(Clone, Debug)]
pub struct Report {
    /// The file, if it has a name.
    pub path: Option<PathBuf>,
    /// The format.
    pub format: &'static Format,
    /// How records were checked.
    pub checked: Checked,
    /// The length of the whole file, in bytes.
    pub size: u64,
    /// How many bytes the ranges below cover.
    pub bytes: u64,
    /// How many records are good.
    pub records: u64,
    /// The least time of a record that was given out, in microseconds since 1970-01-01 UTC.
    pub first_timestamp: Option<i64>,
    /// The greatest.
    pub last_timestamp: Option<i64>,
    /// Bytes and ranges by kind and cause.
    pub totals: Totals,
    /// The first [`MAX_DAMAGE`](Self::MAX_DAMAGE) damaged ranges, in file order.
    pub damage: Vec<Span>,
    /// Whether there are more damaged ranges than `damage` holds; `totals` count them all.
    pub truncated: bool,
    /// What the first of them probably come from, in the same order: empty unless [`diagnose`](super::diagnose) was asked.
    pub diagnoses: Vec<Diagnosis>,
    suspects_key: bool,
    stretches: Stretches,
}

impl Report {
    /// How many damaged ranges a report names.
    pub const MAX_DAMAGE: usize = 10_000;

    /// An empty report on a file of `size` bytes.
    #[must_use]
    pub fn new(format: &'static Format, path: Option<&Path>, size: u64) -> Self {
        Self {
            path: path.map(Into::into),
            format,
            checked: format.checked,
            size,
            bytes: 0,
            records: 0,
            first_timestamp: None,
            last_timestamp: None,
            totals: Totals::default(),
            damage: Vec::new(),
            truncated: false,
            diagnoses: Vec::new(),
            suspects_key: false,
            stretches: Stretches::default(),
        }
    }

    /// An empty report on this source.
    #[must_use]
    pub fn of(format: &'static Format, source: &dyn Source) -> Self {
        Self::new(format, source.path(), source.len())
    }

    /// Adds what the last step of a walk found.
    pub fn add(&mut self, walk: &dyn Walk) {
        self.note(walk);
        if let Some(run) = walk.record_run() {
            self.stretches.extend(&[run.span()]);
            self.totals.add_records(&run);
        } else {
            let spans = walk.spans();
            self.stretches.extend(spans);
            if self.totals.add_all(spans) {
                for span in spans.iter().filter(|span| span.is_damage()) {
                    self.name(*span);
                }
            }
        }
        self.bytes = self.totals.bytes();
        let rows = walk.rows();
        self.records += rows.len() as u64;
        let (least, greatest) = rows.times().unzip();
        self.widen(least, greatest);
    }

    /// Takes over what a walk knows of the whole of what it has read.
    pub(super) fn note(&mut self, walk: &dyn Walk) {
        self.checked = walk.checked();
        self.suspects_key = walk.suspects_key();
    }

    /// Adds what was found in another [part](crate::format::Part) of the same file. The reports on all parts, in any order, make
    /// the report on the whole.
    pub fn merge(&mut self, part: &Self) {
        self.records += part.records;
        self.widen(part.first_timestamp, part.last_timestamp);
        self.totals.merge(&part.totals);
        self.truncated |= part.truncated;
        let joined = self.stretches.merge(&part.stretches);
        joined.iter().for_each(|span| self.totals.join(span));
        let is_whole = |span: &&Span| {
            let holds = |one: &Span| one.start <= span.start && span.end <= one.end;
            !joined.iter().any(holds)
        };
        self.damage.retain(|span| is_whole(&span));
        // Two halves are not to count as two where no more can be named.
        for span in part.damage.iter().filter(is_whole).chain(&joined) {
            if span.is_damage() {
                self.name(*span);
            }
        }
        self.bytes = self.totals.bytes();
        self.checked = part.checked;
        self.suspects_key |= part.suspects_key;
    }

    /// Takes in the least and the greatest time of other records.
    fn widen(&mut self, least: Option<i64>, greatest: Option<i64>) {
        let first = self.first_timestamp.into_iter().chain(least);
        self.first_timestamp = first.min();
        self.last_timestamp = self.last_timestamp.max(greatest);
    }

    /// Names a damaged range, in its place: those of an index come last though they are first in the file.
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

    /// Whether nothing is damaged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.totals.is_sound()
    }

    /// Whether nothing checked though the structure is sound to the end: the key is probably not the file's.
    #[must_use]
    pub const fn wrong_key(&self) -> bool {
        self.suspects_key
    }
}
