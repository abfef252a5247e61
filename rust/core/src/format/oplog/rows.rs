//! The messages of one step, as slices of the walk's window.

use std::sync::{Arc, OnceLock};

use super::compact::{Body, Run};
use super::keys::KeyTable;
use super::message::Record;
use crate::error::{Error, Result};
use crate::format::{Rows, Value};
use crate::ledger::Cause;
use crate::source::Source;

/// A message that is too large to be kept for nothing, in a walk that does not want values: what it has beside its value is
/// read when somebody asks for it.
pub(super) struct Large {
    source: Arc<dyn Source>,
    record: Record,
    /// How many bytes may be read then.
    limit: u64,
    loaded: OnceLock<Result<Vec<u8>>>,
    /// It does not decode any more: the file has changed.
    changed: OnceLock<()>,
}

impl Large {
    pub(super) const fn new(source: Arc<dyn Source>, record: Record, limit: u64) -> Self {
        Self {
            source,
            record,
            limit,
            loaded: OnceLock::new(),
            changed: OnceLock::new(),
        }
    }

    fn body(&self) -> Option<Body<'_>> {
        let cut = self.record.message.value();
        let loaded = self.loaded.get_or_init(|| self.load(cut));
        let bytes = loaded.as_ref().ok()?;
        Some(Body::without(bytes, cut))
    }

    /// All but the value.
    fn load(&self, cut: Run) -> Result<Vec<u8>> {
        let (front, back) = (cut.at, self.record.len.saturating_sub(cut.end()));
        let needed = front.saturating_add(back);
        let fits = |len| usize::try_from(len).ok().filter(|_| needed <= self.limit);
        let (Some(front), Some(back)) = (fits(front), fits(back)) else {
            let what = format!(
                "the message at offset {} without its value",
                self.record.position
            );
            return Err(Error::record_too_large(
                self.source.path(),
                what,
                needed,
                self.limit,
            ));
        };
        let mut bytes = vec![0; front.saturating_add(back)];
        let (front, back) = bytes.split_at_mut(front);
        let start = self.record.start();
        self.source.read_exact_at(start, front)?;
        self.source
            .read_exact_at(start.saturating_add(cut.end()), back)?;
        Ok(bytes)
    }

    /// Why fields could not be given out, if that was so.
    pub(super) fn into_failure(self) -> Option<Error> {
        if self.changed.get().is_some() {
            return Some(changed(&*self.source, self.record.position));
        }
        self.loaded.into_inner()?.err()
    }
}

pub(super) fn changed(source: &dyn Source, position: u64) -> Error {
    Error::changed(source.path(), &format!("the message at offset {position}"))
}

/// Where the bytes of messages are.
#[derive(Clone, Copy)]
pub(super) enum Bodies<'a> {
    /// In memory, from this offset of the file on.
    From(u64, &'a [u8]),
    /// In the file, there being one message only.
    Large(&'a Large),
}

/// Messages, and the keys that they may refer to.
pub(super) struct OplogRows<'a> {
    pub(super) records: &'a [Record],
    pub(super) bodies: Bodies<'a>,
    pub(super) keys: &'a KeyTable,
}

impl<'a> OplogRows<'a> {
    #[allow(
        clippy::indexing_slicing,
        reason = "a row beyond the rows is the caller's mistake, as with any slice"
    )]
    fn record(&self, row: usize) -> &'a Record {
        &self.records[row]
    }

    fn body(&self, record: &Record) -> Option<Body<'a>> {
        match self.bodies {
            Bodies::Large(large) => large.body(),
            Bodies::From(base, bytes) => {
                let start = usize::try_from(record.start().checked_sub(base)?).ok()?;
                let len = usize::try_from(record.len).ok()?;
                Some(Body::new(bytes.get(start..start.checked_add(len)?)?))
            }
        }
    }
}

impl Rows for OplogRows<'_> {
    fn len(&self) -> usize {
        self.records.len()
    }

    fn position(&self, row: usize) -> u64 {
        self.record(row).position
    }

    fn value(&self, row: usize) -> &[u8] {
        let record = self.record(row);
        match self.bodies {
            Bodies::Large(_) => &[],
            Bodies::From(..) => self
                .body(record)
                .map_or(&[], |body| body.get(record.message.value())),
        }
    }

    fn weight(&self, row: usize) -> usize {
        usize::try_from(self.record(row).len).unwrap_or(usize::MAX)
    }

    fn cause(&self, row: usize) -> Option<Cause> {
        self.record(row).cause()
    }

    fn field(&self, row: usize, column: usize) -> Value<'_> {
        let record = self.record(row);
        if column == 0 {
            return record
                .field(Body::new(&[]), column, self.keys)
                .unwrap_or(Value::Null);
        }
        let Some(body) = self.body(record) else {
            return Value::Null;
        };
        match (record.field(body, column, self.keys), self.bodies) {
            (Ok(value), _) => value,
            (Err(_), Bodies::Large(large)) => {
                // The walk's next step says so.
                let _ = large.changed.set(());
                Value::Null
            }
            (Err(_), Bodies::From(..)) => Value::Null,
        }
    }
}
