//! A reason and its evidence.

use crate::ledger::{Cause, Span};
use crate::verbs::diagnosis::{Certainty, Reason, Repair};

/// A reason and its evidence.
#[derive(Clone, Debug)]
pub(super) struct Explanation {
    pub(super) reason: Reason,
    pub(super) certainty: Option<Certainty>,
    pub(super) evidence: String,
    pub(super) repairs: Vec<Repair>,
}

impl Explanation {
    pub(super) fn new(reason: Reason, certainty: Certainty, evidence: impl Into<String>) -> Self {
        Self {
            reason,
            certainty: Some(certainty),
            evidence: evidence.into(),
            repairs: Vec::new(),
        }
    }

    pub(super) fn unknown(evidence: impl Into<String>) -> Self {
        Self {
            reason: Reason::Unknown,
            certainty: None,
            evidence: evidence.into(),
            repairs: Vec::new(),
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
