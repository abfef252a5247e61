//! The messages of one step, as slices of the walk's window.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::keys::KeyTable;
use super::layout::columns::{
    ABI, BATCH, CHECKPOINT, CHECKPOINTER, CLOCK, DIGEST, FLAGS, KEYS, MAX_SUPPORTED_VERSION, SEQ,
    TRACE, VALUE, VERSION,
};
use super::layout::{Body, Run};
use super::message::Record;
use crate::bug::OrBug;
use crate::error::{Error, Result};
use crate::ledger::Cause;
use crate::private::Sealed;
use crate::record::{ColumnBuffer, Rows, Value};
use crate::saturating::saturating_usize;
use crate::source::Source;
use crate::walk::input::Input;

/// A message that is too large to keep unless it is needed, in a walk without values. Its other fields are read on
/// first use.
pub(super) struct Large {
    source: Arc<dyn Source>,
    record: Record,
    /// How many bytes may be read then.
    limit: u64,
    loaded: OnceLock<Result<Vec<u8>>>,
    /// Set if it no longer decodes, because the file has changed.
    changed: OnceLock<()>,
}

impl Large {
    pub(super) fn new(input: &Input, record: Record) -> Self {
        Self {
            source: input.source().clone(),
            record,
            limit: input.options.record_bytes,
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

    /// Reads everything except the value.
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

    /// Why fields could not be read, if so.
    pub(super) fn into_failure(self) -> Option<Error> {
        if self.changed.get().is_some() {
            let what = format!("the message at offset {}", self.record.position);
            return Some(Error::changed(self.source.path(), &what));
        }
        self.loaded.into_inner()?.err()
    }
}

/// Where the bytes of messages are.
#[derive(Clone, Copy)]
pub(super) enum Bodies<'a> {
    /// In memory, from this offset of the file on.
    From(u64, &'a [u8]),
    /// In the file. There is one message only.
    Large(&'a Large),
}

/// The body of a message. `bytes` begin at the offset `base` of the file.
fn body_in<'a>(base: u64, bytes: &'a [u8], record: &Record) -> Body<'a> {
    let start = record.start().checked_sub(base);
    let rest = start.and_then(|start| bytes.get(saturating_usize(start)..));
    let body = rest.and_then(|rest| rest.get(..saturating_usize(record.len)));
    Body::new(body.or_bug_default("the bytes of each message"))
}

/// Messages, and the keys that they may refer to.
pub(super) struct OplogRows<'a> {
    pub(super) records: &'a [Record],
    pub(super) bodies: Bodies<'a>,
    /// Whether values are wanted.
    pub(super) values: bool,
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
            Bodies::From(base, bytes) => Some(body_in(base, bytes, record)),
        }
    }
}

impl Sealed for OplogRows<'_> {}

impl Rows for OplogRows<'_> {
    fn len(&self) -> usize {
        self.records.len()
    }

    fn position(&self, row: usize) -> u64 {
        self.record(row).position
    }

    fn end(&self, row: usize) -> u64 {
        self.record(row).end()
    }

    fn value(&self, row: usize) -> &[u8] {
        let record = self.record(row);
        match self.bodies {
            Bodies::Large(_) => &[],
            Bodies::From(base, bytes) => body_in(base, bytes, record).get(record.message.value()),
        }
    }

    fn weight(&self, row: usize) -> usize {
        let record = self.record(row);
        let unwanted = if self.values {
            0
        } else {
            record.message.value().len
        };
        let bytes = record.len.saturating_sub(unwanted);
        saturating_usize(bytes.saturating_add(record.message.spread()))
    }

    fn cause(&self, row: usize) -> Option<Cause> {
        self.record(row).cause()
    }

    fn field(&self, row: usize, column: usize) -> Value<'_> {
        let record = self.record(row);
        if column == SEQ {
            return record.seq();
        }
        let Some(body) = self.body(record) else {
            return Value::Null;
        };
        let field = record.field(body, column, self.keys);
        match (field, self.bodies) {
            (Ok(value), _) => value,
            (Err(_), Bodies::Large(large)) => {
                // The walk's next step reports it.
                let _ = large.changed.set(());
                Value::Null
            }
            (Err(_), Bodies::From(..)) => Value::Null,
        }
    }

    fn fill(&self, rows: Range<usize>, column: usize, buffer: &mut ColumnBuffer) {
        let message = |row| &self.record(row).message;
        match (column, self.bodies) {
            (VERSION | CHECKPOINTER | ABI | BATCH | MAX_SUPPORTED_VERSION | FLAGS, _) => {
                buffer.extend_optional_uint64(rows.map(|row| message(row).number(column)));
            }
            (VALUE, Bodies::From(..)) if rows.clone().all(|row| message(row).has_value()) => {
                buffer.extend_bytes(rows.map(|row| self.value(row)));
            }
            (CHECKPOINT | KEYS | DIGEST | TRACE, _) => {
                let mut nulls = 0;
                for row in rows {
                    if message(row).lacks(column) {
                        nulls += 1;
                        continue;
                    }
                    buffer.push_nulls(std::mem::take(&mut nulls));
                    buffer.push(&self.field(row, column));
                }
                buffer.push_nulls(nulls);
            }
            (CLOCK, _) => {
                for row in rows {
                    match message(row).clock_count() {
                        0 => buffer.push(&Value::List(Vec::new())),
                        _ => buffer.push(&self.field(row, column)),
                    }
                }
            }
            _ => self.push_fields(rows, column, buffer),
        }
    }
}
