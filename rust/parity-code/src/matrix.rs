//! The factors by which known blocks give others.

use crate::field::{ORDER, logarithm, power};

/// Factors, one for each pair of a sum and a column. The sum of the columns times their factors is a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix {
    columns: usize,
    /// Row by row: the factors of each sum.
    factors: Vec<u8>,
}

impl Matrix {
    /// The factors by which the blocks at `used` give those at `wanted`. A group's blocks are the values of a
    /// polynomial with fewer coefficients than there are `known` points.
    ///
    /// `used` are those known points whose blocks are not zero; the others contribute nothing. There is a row for each
    /// of `wanted`, and a column for each of `used`. `None` if a point of `known` is there twice, or if one of `used`
    /// is not known.
    ///
    /// ```
    /// use parity_code::Matrix;
    ///
    /// // Three points of data, and two of parity.
    /// let known = [0, 1, 2];
    /// let parity = Matrix::interpolating(&known, &known, &[3, 4]).expect("known points");
    /// assert_eq!([parity.row(0), parity.row(1)], [[1, 1, 1], [15, 8, 6]]);
    /// assert_eq!(Matrix::encoding(3, 2), Some(parity));
    /// ```
    #[must_use]
    pub fn interpolating(known: &[u8], used: &[u8], wanted: &[u8]) -> Option<Self> {
        let mut is_known = [false; 256];
        for point in known {
            let is_known = is_known.get_mut(usize::from(*point))?;
            if std::mem::replace(is_known, true) {
                return None;
            }
        }
        let knows = |point: &u8| is_known.get(usize::from(*point)) == Some(&true);
        if !used.iter().all(knows) {
            return None;
        }
        // The product of the distances from `at` to the known points, without itself, as an exponent.
        let distances = |at: u8| -> usize { known.iter().map(|point| logarithm(at ^ point)).sum() };
        let below: Vec<usize> = used.iter().map(|point| distances(*point) % ORDER).collect();
        let mut factors = Vec::with_capacity(used.len() * wanted.len());
        for at in wanted {
            if knows(at) {
                factors.extend(used.iter().map(|point| u8::from(point == at)));
                continue;
            }
            let above = distances(*at);
            factors.extend(used.iter().zip(&below).map(|(point, below)| {
                power(above + (ORDER - logarithm(at ^ point)) + (ORDER - below))
            }));
        }
        Some(Self {
            columns: used.len(),
            factors,
        })
    }

    /// The factors by which `data` blocks, at the points from 0 on, give `parity` blocks at the points after them. `None`
    /// for more than 256 points.
    #[must_use]
    pub fn encoding(data: usize, parity: usize) -> Option<Self> {
        let points: Vec<u8> = (0..=u8::MAX).collect();
        let (known, others) = points.split_at_checked(data)?;
        Self::interpolating(known, known, others.get(..parity)?)
    }

    /// The number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The factors of one sum; empty if there is no such sum.
    #[must_use]
    pub fn row(&self, sum: usize) -> &[u8] {
        let start = sum.saturating_mul(self.columns);
        let end = start.saturating_add(self.columns);
        self.factors.get(start..end).unwrap_or_default()
    }
}
