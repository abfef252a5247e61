//! What walks of files with an index in front share: sealed segments and tenant segments.
//!
//! An index, or table of contents, can only be verified by what its entries name. So a walk takes entry by entry, and its ledger
//! ([`Ranges`]) has two parts: ranges of the data in file order, with gaps that no entry's unit takes, and after them those of the front,
//! in which damaged entries are marked. A strict walk that meets damage goes on without records, since the first damage in the file may
//! be a mark.

mod notes;
mod ranges;

use std::sync::Arc;

use super::Options;
use crate::source::Source;

pub(crate) use notes::{Note, Notes, Place};
pub(crate) use ranges::{Fields, Ranges, kind};

/// One open segment: its bytes, its options, and what its front says.
#[derive(Clone)]
pub(crate) struct Segment<F> {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) options: Options,
    pub(crate) front: F,
}

impl<F: Clone> Segment<F> {
    /// The same segment with other options.
    pub(crate) fn with(&self, options: Options) -> Self {
        Self {
            options,
            ..self.clone()
        }
    }
}
