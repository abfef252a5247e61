//! Parity of bytes that come in the order of a file.

use crate::{Matrix, Multiplier};

/// Accumulates the parity of bytes that come in the order of a file.
///
/// The bytes are columns, one after the other, for the points from 0 on. Each sum is as long as a column. Adding many
/// columns at once is faster: eight or more use the caches best.
///
/// A column may consist of blocks of several groups, which alternate in the file. Then a sum has a block of parity for
/// each group, in the same order.
#[derive(Debug, Clone)]
pub struct Encoder {
    multiplier: Multiplier,
    matrix: Matrix,
    column_bytes: usize,
    parity: Vec<u8>,
    /// How many bytes were added.
    added: usize,
}

impl Encoder {
    /// An encoder of `data` columns and `parity` sums, each of `column_bytes`. `None` if a number is zero, or if data
    /// and parity are more than 256 points.
    #[must_use]
    pub fn new(
        multiplier: Multiplier,
        data: usize,
        parity: usize,
        column_bytes: usize,
    ) -> Option<Self> {
        if data == 0 || parity == 0 || column_bytes == 0 || data.checked_add(parity)? > 256 {
            return None;
        }
        let points: Vec<u8> = (0..=u8::MAX).take(data + parity).collect();
        let (known, wanted) = points.split_at_checked(data)?;
        Some(Self {
            multiplier,
            matrix: Matrix::interpolating(known, known, wanted)?,
            column_bytes,
            parity: vec![0; parity.checked_mul(column_bytes)?],
            added: 0,
        })
    }

    /// Adds the next bytes. Returns how many were added: all, unless the columns are complete.
    pub fn add(&mut self, mut bytes: &[u8]) -> usize {
        let before = self.added;
        loop {
            let (column, start) = (
                self.added / self.column_bytes,
                self.added % self.column_bytes,
            );
            let left = self.matrix.columns().saturating_sub(column);
            let whole = left.min(bytes.len() / self.column_bytes);
            let taken = if start == 0 && whole > 0 {
                whole * self.column_bytes
            } else {
                bytes.len().min(self.column_bytes - start)
            };
            let Some((now, later)) = bytes.split_at_checked(taken) else {
                break;
            };
            if left == 0 || now.is_empty() {
                break;
            }
            let columns: Vec<_> = now.chunks(self.column_bytes).collect();
            let mut sums: Vec<_> = self
                .parity
                .chunks_mut(self.column_bytes)
                .filter_map(|sum| sum.get_mut(start..))
                .collect();
            self.multiplier
                .add_from(&self.matrix, column, &columns, &mut sums);
            self.added += taken;
            bytes = later;
        }
        self.added - before
    }

    /// The sums, one after the other: the parity of the bytes that were added, as if zeros followed them.
    #[must_use]
    pub fn parity(&self) -> &[u8] {
        &self.parity
    }

    /// The sums, to be changed.
    pub fn parity_mut(&mut self) -> &mut [u8] {
        &mut self.parity
    }

    /// Begins anew, with columns of this many bytes, at least 1.
    pub fn reset(&mut self, column_bytes: usize) {
        let sums = self.parity.len() / self.column_bytes;
        self.column_bytes = column_bytes.max(1);
        self.added = 0;
        self.parity.clear();
        self.parity.resize(sums * self.column_bytes, 0);
    }
}
