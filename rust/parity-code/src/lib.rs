//! Reed–Solomon parity over GF(2^8), with the processor's vector instructions, accumulated in the order of a file.
//!
//! Blocks are the values of a polynomial, at each byte position for itself: the blocks of data at the points 0 to k − 1,
//! those of parity at the points from k on. Any k of them give all others. The field is that of the polynomial
//! x^8 + x^4 + x^3 + x^2 + 1 (0x11D), so parity is that of the crates `reed-solomon-erasure` and of klauspost/reedsolomon.
//!
//! ```
//! use parity_code::{Encoder, Matrix, Multiplier};
//!
//! // Three columns of five bytes, and two of parity.
//! let file = *b"HelloworldCode!";
//! let mut encoder = Encoder::new(Multiplier::new(), 3, 2, 5).expect("at most 256 points");
//! for bytes in file.chunks(4) {
//!     encoder.add(bytes); // in the order of the file, any number at a time
//! }
//! let parity = encoder.parity();
//!
//! // Points 0 and 2 are lost: 1, 3 and 4 give them.
//! let known = [1, 3, 4];
//! let matrix = Matrix::interpolating(&known, &known, &[0, 2]).expect("known points");
//! let (mut first, mut third) = ([0; 5], [0; 5]);
//! let columns = [&file[5..10], &parity[..5], &parity[5..]];
//! Multiplier::new().add(&matrix, &columns, &mut [&mut first, &mut third]);
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
mod encoder;
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

pub use encoder::Encoder;
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

    /// Adds to each sum the columns times the factors of its row. Addition is exclusive or.
    ///
    /// Missing bytes of a column count as zeros. Bytes past the shortest sum, columns that the matrix does not have,
    /// and sums without a row have no effect.
    pub fn add(&self, matrix: &Matrix, columns: &[&[u8]], sums: &mut [&mut [u8]]) {
        self.add_from(matrix, 0, columns, sums);
    }

    /// As [`Self::add`], for columns from number `first` on.
    fn add_from(
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
