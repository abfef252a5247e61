//! Finding records without reading a whole file.

use std::sync::Arc;

use super::{Bound, Format, Options, Rows, Start, Step, Value, Walk, Wanted, open};
use crate::error::{Error, Result};
use crate::source::Source;

/// What one record is found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordId {
    /// Its UUID, in network byte order: active, sealed.
    Uuid([u8; 16]),
    /// Its message offset: chunked.
    Offset(i64),
    /// Its place among the messages of a tenant in a partition, the first being 0: tenant.
    Message {
        /// The partition's ID.
        partition: u32,
        /// The tenant's ID.
        tenant: Vec<u8>,
        /// The place within the tenant's block.
        index: u64,
    },
    /// Its sequence number: oplog.
    Seq(u64),
}

/// Records that own what they are made of.
pub trait Found: Send {
    /// The records.
    fn rows(&self) -> Box<dyn Rows + '_>;
}

/// What looking up several records gave.
#[derive(Default)]
pub struct Hits {
    /// Records that were found, in any order and number of sets.
    pub sets: Vec<Box<dyn Found>>,
    /// For each that was asked for the set and the row in it; `None` where there is no such record.
    pub places: Vec<Option<(usize, usize)>>,
}

impl Hits {
    /// Calls `look` with each record that was asked for, in that order.
    pub fn each(&self, mut look: impl FnMut(Option<(&dyn Rows, usize)>)) {
        let sets: Vec<_> = self.sets.iter().map(|set| set.rows()).collect();
        for place in &self.places {
            let found = place.and_then(|(set, row)| sets.get(set).map(|rows| (&**rows, row)));
            look(found);
        }
    }
}

/// Finds records of one open file. What has been proven of an index once holds as long as this lives.
pub trait Lookup: Send + Sync {
    /// Finds records, in any order, also the same one twice. What is found has been checked like by a walk, and what is not
    /// found is not there, as far as the format can prove that.
    ///
    /// # Errors
    /// [`Error::Usage`] for an identifier that the format does not have; as [`open`] and [`Walk::step`]. Reading strictly,
    /// damage at which a record might have stood is an error.
    fn get(&self, ids: &[RecordId]) -> Result<Hits>;

    /// A walk over the wanted records that reads no more of the file than it must, and so gives no ledger of the rest.
    ///
    /// # Errors
    /// As [`open`].
    fn range(&self, wanted: &Wanted) -> Result<Box<dyn Walk>>;
}

/// A look-up in formats without an index: by walking.
pub(super) struct Scan {
    format: &'static Format,
    source: Arc<dyn Source>,
    options: Options,
}

impl Scan {
    pub(super) fn new(format: &'static Format, source: Arc<dyn Source>, options: &Options) -> Self {
        let options = Options {
            format: Some(format),
            ..options.clone()
        };
        Self {
            format,
            source,
            options,
        }
    }

    /// The walk and the row at which a record is, if it is there.
    fn find(&self, id: &RecordId) -> Result<Option<(Box<dyn Walk>, usize)>> {
        let (column, wanted_value, wanted) = match *id {
            RecordId::Uuid(uuid) => {
                let since = Some(Bound::Uuid(uuid));
                (
                    "uuid",
                    Value::Uuid(uuid),
                    Wanted {
                        since,
                        ..Wanted::default()
                    },
                )
            }
            RecordId::Seq(seq) => {
                let seq = i64::try_from(seq).unwrap_or(i64::MAX);
                ("seq", Value::Int64(seq), Wanted::default())
            }
            _ => return Err(no_such_id(self.format, id)),
        };
        let columns = self.format.columns(&self.options);
        let column = columns.iter().position(|own| own.name == column);
        let column = column.ok_or_else(|| no_such_id(self.format, id))?;
        let mut walk = self.range(&wanted)?;
        while walk.step()? == Step::More {
            let rows = walk.rows();
            let found = (0..rows.len()).find(|row| rows.field(*row, column) == wanted_value);
            // Records ascend: behind a greater UUID it does not come any more.
            let passed = matches!(id, RecordId::Uuid(_)) && !rows.is_empty();
            drop(rows);
            if let Some(row) = found {
                return Ok(Some((walk, row)));
            }
            if passed {
                break;
            }
        }
        Ok(None)
    }
}

/// The last step of a walk, kept for its rows.
struct Walked(Box<dyn Walk>);

impl Found for Walked {
    fn rows(&self) -> Box<dyn Rows + '_> {
        self.0.rows()
    }
}

impl Lookup for Scan {
    fn get(&self, ids: &[RecordId]) -> Result<Hits> {
        let mut hits = Hits::default();
        for id in ids {
            let found = self.find(id)?;
            hits.places.push(found.map(|(walk, row)| {
                hits.sets.push(Box::new(Walked(walk)));
                (hits.sets.len() - 1, row)
            }));
        }
        Ok(hits)
    }

    fn range(&self, wanted: &Wanted) -> Result<Box<dyn Walk>> {
        let options = Options {
            wanted: wanted.clone(),
            ..self.options.clone()
        };
        open(self.source.clone(), &options, Start::Beginning)
    }
}

/// A look-up that refuses to look for what records do not have, whatever the format.
pub(super) struct Guarded {
    pub(super) format: &'static Format,
    pub(super) options: Options,
    pub(super) lookup: Box<dyn Lookup>,
}

impl Lookup for Guarded {
    fn get(&self, ids: &[RecordId]) -> Result<Hits> {
        self.lookup.get(ids)
    }

    fn range(&self, wanted: &Wanted) -> Result<Box<dyn Walk>> {
        wanted.check(self.format, self.format.columns(&self.options))?;
        self.lookup.range(wanted)
    }
}

/// The error of an identifier that is another format's.
pub(super) fn no_such_id(format: &Format, id: &RecordId) -> Error {
    let what = match id {
        RecordId::Uuid(_) => "a UUID",
        RecordId::Offset(_) => "an offset",
        RecordId::Message { .. } => "partition, tenant and index",
        RecordId::Seq(_) => "a sequence number",
    };
    Error::Usage(format!("{} records are not found by {what}", format.name))
}
