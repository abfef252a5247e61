//! The report on a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::diagnosis::Diagnosis;
use super::serialized::format;
use crate::error::Result;
use crate::ledger::Summary;
use crate::os_paths as paths;
use crate::parity::{self, FileKind, Outcome, ProtectedSource};
use crate::source::{Source, expected_len, uncompared};
use crate::spec::Spec;
use crate::walk::{Options, Walk, sum_up};

/// The report on a file, or on the part of it that was read: its [`Summary`], and diagnoses of its damage.
///
/// It can be serialized for another process of the same version.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// The format.
    #[serde(with = "format")]
    pub format: &'static Spec,
    /// Records, bytes, times and totals, and the first damaged ranges.
    pub summary: Summary,
    /// The diagnoses of the first of them, in the same order. Empty unless [`diagnose`](super::diagnose) was called.
    pub diagnoses: Vec<Diagnosis>,
    /// What the file's parity sidecar says. `None` unless the file was verified [by one](parity::ProtectedSource).
    pub parity: Option<ParityReport>,
}

/// What a parity sidecar says of a file and of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ParityReport {
    /// The sidecar, if it has a name.
    #[serde(with = "paths")]
    pub sidecar: Option<PathBuf>,
    /// Whether it is of an earlier state of the file: it has other bytes for a record that its own checksum proves.
    /// Then nothing of it counted.
    pub is_of_an_earlier_state: bool,
    /// The ledgers of both.
    pub report: parity::Report,
}

impl ParityReport {
    /// Reads what was not read yet of a file and its sidecar.
    pub(super) fn of(protected: &ProtectedSource, options: &Options) -> Result<Self> {
        Ok(Self {
            report: protected.report(|| options.poll())?,
            sidecar: protected.sidecar().map(Path::to_path_buf),
            is_of_an_earlier_state: false,
        })
    }

    /// The result as a whole. A sidecar of an earlier state of the file is refused.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self.is_of_an_earlier_state {
            true => Outcome::Refused,
            false => self.report.outcome,
        }
    }

    /// How many bytes of the file are, or were, covered. 0 also if nothing is left of the sidecar: by that alone it is sound.
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub fn covered(&self) -> u64 {
        let spans = self.report.file.iter();
        let covered = spans.filter(|span| span.kind != FileKind::Uncovered);
        covered.map(|span| span.end - span.start).sum()
    }

    /// How many bytes of the file are of this kind.
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub fn bytes(&self, kind: FileKind) -> u64 {
        let spans = self.report.file.iter().filter(|span| span.kind == kind);
        spans.map(|span| span.end - span.start).sum()
    }
}

impl Report {
    /// Whether no range is damaged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.summary.is_sound()
    }

    /// An empty report on a file of `size` bytes.
    #[must_use]
    #[doc(hidden)]
    pub fn new(format: &'static Spec, path: Option<&Path>, size: u64) -> Self {
        Self::from_summary(format, Summary::new(format.checked, path, size))
    }

    /// An empty report on this source.
    #[must_use]
    #[doc(hidden)]
    pub fn of(format: &'static Spec, source: &dyn Source) -> Self {
        Self::new(format, source.path(), expected_len(source))
    }

    /// A report with a summary only.
    #[must_use]
    #[doc(hidden)]
    pub const fn from_summary(format: &'static Spec, summary: Summary) -> Self {
        Self {
            format,
            summary,
            diagnoses: Vec::new(),
            parity: None,
        }
    }

    /// Adds the last step of a walk.
    #[doc(hidden)]
    pub fn add(&mut self, walk: &dyn Walk) {
        sum_up(walk, &mut self.summary);
    }

    /// Sets what a walk knows about everything it read, at its end.
    pub(crate) fn note(&mut self, walk: &dyn Walk) {
        self.summary.note(walk.checked(), walk.suspects_key());
        self.summary.close();
    }

    /// The bytes that the report is on, of the source that was verified.
    pub(super) fn as_it_was_read(&self, source: &Arc<dyn Source>) -> Arc<dyn Source> {
        let is_earlier = |parity: &ParityReport| parity.is_of_an_earlier_state;
        match ProtectedSource::of(&**source) {
            Some(protected) if self.parity.as_ref().is_some_and(is_earlier) => {
                protected.file().clone()
            }
            _ => uncompared(source),
        }
    }

    /// Adds the report on another [part](crate::format::Part) of the same file. The reports on all parts, in any order,
    /// add up to that on the whole file.
    #[doc(hidden)]
    pub fn merge(&mut self, part: &Self) {
        self.summary.merge(&part.summary);
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::error::Result;
    use crate::format::sealed;
    use crate::ledger::{Cause, Kind, Span};
    use crate::record::{Checked, Rows};
    use crate::source::BytesSource;
    use crate::walk::layers::EmptyWalk;
    use crate::walk::{Carry, Settle, Step};

    /// Emits these ranges. Its rows are those of a walk that has not begun.
    struct Ranges(Vec<Span>, EmptyWalk);

    impl Settle for Ranges {}

    impl Walk for Ranges {
        fn step(&mut self) -> Result<Step> {
            Ok(Step::Done)
        }
        fn rows(&self) -> Box<dyn Rows + '_> {
            self.1.rows()
        }
        fn spans(&self) -> &[Span] {
            &self.0
        }
        fn checked(&self) -> Checked {
            Checked::Checksum
        }
        fn offset(&self) -> u64 {
            0
        }
        fn carry(&self) -> Option<Carry> {
            None
        }
    }

    /// A range whose halves are in two parts is one range, also if it is the last that a report can list.
    #[test]
    fn reports_on_parts_name_as_many_ranges_as_one_on_the_whole() {
        let empty = BytesSource::new(Vec::new());
        let most = Summary::MAX_DAMAGE as u64;
        let span = |start, end, cause: Option<Cause>| Span {
            start,
            end,
            kind: cause.map_or(Kind::Record, |_| Kind::Corrupt),
            cause,
        };
        let bad = Some(Cause::ChecksumMismatch);
        for (number, is_truncated) in [(most, false), (most + 1, true)] {
            let pair = |at: u64| [span(at, at + 2, bad), span(at + 2, at + 3, None)];
            let all: Vec<_> = (0..number).flat_map(|number| pair(number * 3)).collect();
            for half in [0, number / 2, number - 1].map(|number| number * 3 + 1) {
                let before = all.iter().filter(|span| span.start < half);
                let behind = all.iter().filter(|span| span.end > half);
                let parts = [
                    before
                        .map(|part| span(part.start, part.end.min(half), part.cause))
                        .collect(),
                    behind
                        .map(|part| span(part.start.max(half), part.end, part.cause))
                        .collect(),
                ];
                let of = |spans| {
                    let mut report = Report::new(&sealed::FORMAT, None, number * 3);
                    let walk = EmptyWalk::new(&sealed::FORMAT, &empty);
                    report.add(&Ranges(spans, walk));
                    report
                };
                let [mut report, other] = parts.map(of);
                report.merge(&other);
                let whole = of(all.clone());
                assert_eq!(report.summary.damage, whole.summary.damage);
                assert_eq!(report.summary.totals, whole.summary.totals);
                assert_eq!(report.summary.truncated, is_truncated);
                assert_eq!(whole.summary.truncated, is_truncated);
            }
        }
    }
}
