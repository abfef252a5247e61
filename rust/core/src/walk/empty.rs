//! A scan of zero records, for filters that contradict each other (since ≥ until).

use super::{Carry, Step, Walk};
use crate::ledger::Span;
use crate::own::Own;
use crate::record::Checked;
use crate::record::{Rows, Value};
use crate::source::Source;
use crate::spec::Spec;

/// Reads nothing of a file.
pub(crate) struct EmptyWalk {
    checked: Checked,
    len: u64,
}

impl EmptyWalk {
    pub(crate) fn new(format: &Spec, source: &dyn Source) -> Self {
        Self {
            checked: format.checked,
            len: source.len(),
        }
    }
}

struct NoRows;

impl Own for NoRows {}

impl Rows for NoRows {
    fn len(&self) -> usize {
        0
    }

    fn position(&self, _: usize) -> u64 {
        0
    }

    fn value(&self, _: usize) -> &[u8] {
        &[]
    }

    fn field(&self, _: usize, _: usize) -> Value<'_> {
        Value::Null
    }
}

impl Own for EmptyWalk {}

impl Walk for EmptyWalk {
    fn step(&mut self) -> crate::error::Result<Step> {
        Ok(Step::Done)
    }

    fn rows(&self) -> Box<dyn Rows + '_> {
        Box::new(NoRows)
    }

    fn spans(&self) -> &[Span] {
        &[]
    }

    fn checked(&self) -> Checked {
        self.checked
    }

    fn offset(&self) -> u64 {
        self.len
    }

    fn carry(&self) -> Option<Carry> {
        None
    }
}
