//! The memory of batches that were given out, for the next ones: where nobody has a batch any more, its buffers are filled again.
//! Otherwise the allocator gives batches of megabytes back to the system, and each page of the next has to be faulted in anew.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_buffer::{ArrowNativeType, Buffer};
use arrow_schema::DataType;

use super::{ColumnBuffer, Values};

/// How many batches are looked at for whether somebody still has them: who asks for the next batch often has the last.
const KEPT: usize = 2;

/// The buffers of the batches that were given out last, the latest last; of each batch those of each column.
#[derive(Debug, Default)]
pub(super) struct Spent(Vec<Vec<Vec<Buffer>>>);

impl Spent {
    /// Remembers a batch that is given out.
    pub(super) fn keep(&mut self, batch: &RecordBatch) {
        let buffers = |column: &Arc<dyn Array>| {
            let mut buffers = column.to_data().buffers().to_vec();
            if matches!(
                column.data_type(),
                DataType::BinaryView | DataType::Utf8View
            ) {
                // The others are the source's, or what is beside it.
                buffers.truncate(1);
            }
            buffers
        };
        self.0.push(batch.columns().iter().map(buffers).collect());
        if self.0.len() > KEPT {
            self.0.remove(0);
        }
    }

    /// Gives empty columns the memory of the latest batch that nobody has any more, and lets go what else nobody has.
    pub(super) fn reuse(&mut self, columns: &mut [ColumnBuffer]) {
        // Whoever has the only reference is the only one who could make another.
        let is_free = |batch: &Vec<Vec<Buffer>>| {
            batch
                .iter()
                .flatten()
                .all(|buffer| buffer.strong_count() == 1)
        };
        if let Some(place) = self.0.iter().rposition(is_free) {
            let batch = self.0.remove(place);
            for (column, buffers) in columns.iter_mut().zip(batch) {
                column.reuse(buffers);
            }
            self.0.retain(|batch| !is_free(batch));
        }
    }
}

impl ColumnBuffer {
    /// Takes the memory of a column of this kind that nobody has any more. What is in use after all is left alone.
    fn reuse(&mut self, buffers: Vec<Buffer>) {
        let mut buffers = buffers.into_iter();
        let mut next = || buffers.next();
        match &mut self.values {
            Values::Fixed16(own) => *own = emptied(next()),
            Values::Int64(own) => *own = emptied(next()),
            Values::UInt64(own) => *own = emptied(next()),
            Values::Binary { offsets, data } => {
                *offsets = emptied(next());
                offsets.push(0);
                *data = emptied(next());
            }
            Values::Text { offsets, data } => {
                *offsets = emptied(next());
                offsets.push(0);
                *data = String::from_utf8(emptied(next())).unwrap_or_default();
            }
            Values::Views(views) => views.reuse(emptied(next())),
            Values::Boolean(_) | Values::List { .. } | Values::Struct(_) => {}
        }
    }
}

/// The memory of a buffer that nobody else has, without what was in it.
fn emptied<T: ArrowNativeType>(buffer: Option<Buffer>) -> Vec<T> {
    let values = buffer.and_then(|buffer| buffer.into_vec().ok());
    let mut values = values.unwrap_or_default();
    values.clear();
    values
}
