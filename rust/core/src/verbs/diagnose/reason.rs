//! A reason and its evidence.

use std::ops::Range;

use crate::ledger::{Cause, Span};
use crate::source::{Change, Fill};
use crate::verbs::diagnosis::{Certainty, Diagnosis, Edit, Missing, Neighbour, Reason, Repair};

/// A reason and its evidence.
#[derive(Clone, Debug)]
pub(super) struct Explanation {
    pub(super) reason: Reason,
    pub(super) certainty: Option<Certainty>,
    pub(super) evidence: String,
    pub(super) against: String,
    pub(super) repairs: Vec<Repair>,
    /// Where it happened; `None`: in the damaged range.
    pub(super) place: Option<Range<u64>>,
    /// What undoes it.
    pub(super) changes: Vec<Change>,
    pub(super) regained: u64,
    pub(super) is_sound: bool,
    pub(super) missing: Option<Missing>,
}

impl Explanation {
    pub(super) fn new(reason: Reason, certainty: Certainty, evidence: impl Into<String>) -> Self {
        Self {
            certainty: Some(certainty),
            ..Self::unknown(evidence).of(reason)
        }
    }

    pub(super) fn unknown(evidence: impl Into<String>) -> Self {
        Self {
            reason: Reason::Unknown,
            certainty: None,
            evidence: evidence.into(),
            against: String::new(),
            repairs: Vec::new(),
            place: None,
            changes: Vec::new(),
            regained: 0,
            is_sound: false,
            missing: None,
        }
    }

    pub(super) fn diagnosis(
        self,
        span: Span,
        ranges: Vec<Span>,
        before: Option<Neighbour>,
        after: Option<Neighbour>,
    ) -> Diagnosis {
        let edit = |(range, fill): &Change| Edit {
            start: range.start,
            end: range.end,
            bytes: fill.len(),
            from: match fill {
                Fill::From(offset, _) => Some(*offset),
                Fill::Zeros(_) | Fill::Byte(_) => None,
            },
        };
        Diagnosis {
            place: self.place(&span),
            span,
            reason: self.reason,
            certainty: self.certainty,
            evidence: self.evidence,
            against: self.against,
            ranges,
            edits: self.changes.iter().map(edit).collect(),
            regained: self.regained,
            is_sound: self.is_sound,
            missing: self.missing,
            before,
            after,
            repairs: self.repairs,
        }
    }

    /// Where it happened.
    pub(super) fn place(&self, span: &Span) -> Range<u64> {
        self.place.clone().unwrap_or(span.start..span.end)
    }

    fn of(self, reason: Reason) -> Self {
        Self { reason, ..self }
    }

    pub(super) fn at(self, place: Range<u64>) -> Self {
        Self {
            place: Some(place),
            ..self
        }
    }

    /// With these bytes taken out it is undone.
    pub(super) fn without(self, place: Range<u64>) -> Self {
        Self {
            changes: vec![(place.clone(), Fill::Zeros(0))],
            ..self.at(place)
        }
    }

    /// As it is said where its changes could not be shown to undo it.
    pub(super) fn unweighed(self) -> Self {
        Self {
            changes: Vec::new(),
            ..self
        }
    }

    pub(super) fn but(self, against: impl Into<String>) -> Self {
        Self {
            against: against.into(),
            ..self
        }
    }
}

/// The diagnosis of bytes that a parity sidecar has.
pub(super) fn restorable(span: &Span) -> Explanation {
    let evidence = match span.len() {
        1 => "the parity sidecar has another byte, by its hash the right one".to_owned(),
        bytes => {
            format!("the parity sidecar has {bytes} other bytes, by their hash the right ones")
        }
    };
    Explanation::new(Reason::Restorable, Certainty::Proven, evidence)
}

impl Diagnosis {
    /// Makes it one of a range that another one's explains, unless its bytes are known otherwise.
    pub(super) fn follow_from(&mut self, main: &Self) {
        if self.repairs.is_empty() && self.reason != Reason::Restorable {
            let (before, after) = (self.before.take(), self.after.take());
            *self = follows_from(main).diagnosis(self.span, vec![self.span], before, after);
        }
    }
}

/// The diagnosis of a range that another one's explains.
pub(super) fn follows_from(main: &Diagnosis) -> Explanation {
    let evidence = format!("it is explained by what happened at {}", main.place.start);
    Explanation {
        certainty: main.certainty,
        ..Explanation::unknown(evidence).of(Reason::Consequence)
    }
}

/// The diagnosis of a range without a sound record between it and one where bytes were written over: what is left of the records there.
pub(super) fn beside(
    found: &mut [Diagnosis],
    span: &Span,
    adjacent: &[Span],
) -> Option<Explanation> {
    let is_over = |own: &Diagnosis| {
        matches!(
            own.reason,
            Reason::StaleData
                | Reason::ForeignSector
                | Reason::DuplicatedSector
                | Reason::MovedSector
                | Reason::ZeroedSector
                | Reason::ErasedSector
                | Reason::InsertedBytes
                | Reason::MissingBytes
        )
    };
    let mut over = found.iter_mut().filter(|own| is_over(own));
    let main = over.find(|own| own.ranges.iter().any(|own| adjacent.contains(own)))?;
    main.ranges.push(*span);
    main.ranges.sort_by_key(|own| own.start);
    Some(follows_from(main))
}

/// The diagnosis that follows from the cause alone. A UUID is checked only after the checksum matched, if there is one.
pub(super) fn of_cause(span: &Span, has_checksums: bool) -> Option<Explanation> {
    let as_written = |what: &str| {
        let evidence =
            format!("its checksum matches, so the bytes are as they were written: {what}");
        Some(Explanation::new(
            Reason::AsWritten,
            Certainty::Proven,
            evidence,
        ))
    };
    match span.cause? {
        Cause::UnsupportedFlags => {
            as_written("a header with flags that this version does not know")
        }
        Cause::BadUuid if has_checksums => as_written("a UUID that is not of version 6"),
        Cause::DanglingReference => Some(Explanation::new(
            Reason::LostReference,
            Certainty::Likely,
            "the message is complete, but no earlier message declares the key that it names",
        )),
        Cause::SearchLimit => Some(Explanation::unknown(
            "the search for sound records ended here by its budget; later bytes were not searched",
        )),
        _ => None,
    }
}
