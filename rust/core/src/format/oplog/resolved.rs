//! The keys that a step's references resolve to, if the keys are not all in memory.

use super::draft::Reference;
use super::keys::KeyTable;
use super::layout::compact::{Body, Key, Read, Stop};
use super::message::Record;
use crate::bug::OrBug;
use crate::error::Error;

/// The keys that the clock entries of several messages resolve to, concatenated.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    keys: Vec<Option<Key>>,
    /// Where each message's keys begin.
    starts: Vec<usize>,
    /// Why some could not be read, if so.
    pub(super) failure: Option<Error>,
}

impl Resolved {
    /// Resolves the references of these messages. `body` returns a message's bytes.
    pub(super) fn of<'a>(
        records: &[Record],
        table: &KeyTable,
        body: impl Fn(&Record) -> Option<Body<'a>>,
    ) -> Self {
        let mut resolved = Self::default();
        for record in records {
            resolved.starts.push(resolved.keys.len());
            let read = body(record).map_or(Ok(()), |body| resolved.add(record, table, body));
            if let Err(Stop::Error(error)) = read {
                resolved.failure.get_or_insert(*error);
            }
        }
        resolved
    }

    fn add(&mut self, record: &Record, table: &KeyTable, body: Body<'_>) -> Read<()> {
        let Some((_, clock)) = record.message.references() else {
            return Ok(());
        };
        let mut reader = body.reader(clock.at);
        for _ in 0..clock.count {
            let reference = Reference::read(&mut reader)?;
            // The message's own keys are in itself.
            let earlier = record.seq.is_some_and(|own| reference.seq < own);
            self.keys.push(match earlier {
                true => table.get(reference.seq, reference.offset)?,
                false => None,
            });
        }
        Ok(())
    }

    /// The keys of the message in this row.
    pub(super) fn row(&self, row: usize) -> &[Option<Key>] {
        let start = self.starts.get(row);
        let keys = start.and_then(|start| self.keys.get(*start..));
        keys.or_bug_default("a place for each row")
    }
}
