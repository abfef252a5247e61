//! Reed–Solomon parity over GF(2^8), with the processor's vector instructions, accumulated in the order of a file.
//!
//! Blocks are the values of a polynomial, at each byte position for itself: the blocks of data at the points 0 to k − 1,
//! those of parity at the points from k on. Any k of them give all others. The field is that of the polynomial
//! x^8 + x^4 + x^3 + x^2 + 1 (0x11D), so parity is that of the crates `reed-solomon-erasure` and of klauspost/reedsolomon.
//!
//! ```
//! use parity_code::{Matrix, Multiplier};
//!
//! // Three columns of five bytes, and two of parity.
//! let columns = [b"Hello", b"world", b"Code!"];
//! let matrix = Matrix::encoding(3, 2).expect("at most 256 points");
//! let mut parity = [[0; 5]; 2];
//! for (number, column) in columns.into_iter().enumerate() {
//!     let mut sums = parity.each_mut().map(|sum| &mut sum[..]);
//!     Multiplier::new().add(&matrix, number, &[column], &mut sums); // in the order of the file
//! }
//!
//! // Points 0 and 2 are lost: 1, 3 and 4 give them.
//! let known = [1, 3, 4];
//! let matrix = Matrix::interpolating(&known, &known, &[0, 2]).expect("known points");
//! let (mut first, mut third) = ([0; 5], [0; 5]);
//! let columns = [&columns[1][..], &parity[0], &parity[1]];
//! Multiplier::new().add(&matrix, 0, &columns, &mut [&mut first, &mut third]);
//! assert_eq!([&first, &third], [b"Hello", b"Code!"]);
//! ```
//!
//! # How
//!
//! A few vectors of several sums are in registers, while up to eight columns (four with AVX2 and NEON) are multiplied and added to
//! them. So each byte of a sum is loaded and stored once for eight columns, and each byte of a column once for all sums that have
//! registers. Columns are taken in tiles that stay in the first cache, and the next tile is prefetched meanwhile. See
//! [`Kernel`] for the instructions.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod field;
#[cfg(target_arch = "x86_64")]
mod gfni;
mod invariant;
mod kernel;
mod matrix;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod products;
mod simd;
mod sums;

pub use kernel::Kernel;
pub use matrix::Matrix;
use sums::Columns;

/// Multiplies columns of bytes with factors, and adds them to sums.
#[derive(Clone, Copy, Debug)]
pub struct Multiplier(Kernel);

impl Default for Multiplier {
    fn default() -> Self {
        Self::new()
    }
}

impl Multiplier {
    /// Uses the kernel that [`Kernel::detected`] returns.
    #[must_use]
    pub fn new() -> Self {
        Self(Kernel::detected())
    }

    /// Uses this kernel. If the processor lacks its instructions, uses the best one below it.
    #[must_use]
    pub fn with_kernel(kernel: Kernel) -> Self {
        Self(kernel.or_below())
    }

    /// The kernel in use.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.0
    }

    /// Adds to each sum the columns times the factors of its row. Addition is exclusive or. The columns are those of the
    /// matrix from number `first` on, so they can be added one after the other. Many at once are faster: eight or more use
    /// the caches best.
    ///
    /// Missing bytes of a column count as zeros. Bytes past the shortest sum, columns that the matrix does not have,
    /// and sums without a row have no effect.
    pub fn add(
        &self,
        matrix: &Matrix,
        mut first: usize,
        columns: &[&[u8]],
        sums: &mut [&mut [u8]],
    ) {
        let Some(len) = sums.iter().map(|sum| sum.len()).min() else {
            return;
        };
        let columns: Vec<_> = columns
            .iter()
            .take(matrix.columns().saturating_sub(first))
            .map(|column| column.get(..len).unwrap_or(column))
            .collect();
        for bytes in columns.chunk_by(|a, b| a.len() == b.len()) {
            let alike = Columns {
                matrix,
                first,
                bytes,
            };
            self.0.add(alike, sums);
            first += bytes.len();
        }
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
