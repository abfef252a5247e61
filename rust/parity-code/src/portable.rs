//! Any processor: vectors of 64-bit words, which the compiler makes of the instructions that every such processor has.

use crate::simd::Simd;
use crate::sums::{self, Columns};

/// The words of a vector.
const WORDS: usize = 4;

/// The bytes of a vector.
const BYTES: usize = 8 * WORDS;

/// Portable code.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Portable {
    /// Adds columns times factors to sums.
    pub(crate) fn add(self, columns: Columns<'_>, sums: &mut [&mut [u8]]) {
        sums::add::<_, BYTES, 8, 4, 1>(self, columns, sums);
    }
}

/// Each byte of the words times x.
#[inline(always)]
fn times_x(words: [u64; WORDS]) -> [u64; WORDS] {
    const TOP: u64 = 0x8080_8080_8080_8080;
    let mut product = words;
    for word in &mut product {
        let top = *word & TOP;
        // Bytes of 0xff where the top bit was set: what is left of the polynomial is added there.
        let reduced = (top >> 7).wrapping_mul(0x1d);
        *word = ((*word ^ top) << 1) ^ reduced;
    }
    product
}

impl Simd<BYTES> for Portable {
    type Vector = [u64; WORDS];
    /// The vector times 1, x, x^2 and so on.
    type Ready = [[u64; WORDS]; 8];
    /// For each bit of the factor, a mask.
    type Table = [u64; 8];
    type Factor = [u64; 8];

    #[inline(always)]
    fn table(self, factor: u8) -> [u64; 8] {
        let mut masks = [0; 8];
        for (bit, mask) in masks.iter_mut().enumerate() {
            *mask = u64::from(factor >> bit & 1).wrapping_neg();
        }
        masks
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; BYTES]) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        words
    }

    #[inline(always)]
    fn store(self, vector: [u64; WORDS], bytes: &mut [u8; BYTES]) {
        for (word, bytes) in vector.iter().zip(bytes.as_chunks_mut::<8>().0) {
            *bytes = word.to_le_bytes();
        }
    }

    #[inline(always)]
    fn prefetch(self, _: &u8) {}

    #[inline(always)]
    fn ready(self, vector: [u64; WORDS]) -> [[u64; WORDS]; 8] {
        let mut powers = [vector; 8];
        let mut power = vector;
        for next in powers.iter_mut().skip(1) {
            power = times_x(power);
            *next = power;
        }
        powers
    }

    #[inline(always)]
    fn factor(self, table: &[u64; 8]) -> [u64; 8] {
        *table
    }

    #[inline(always)]
    fn multiply_add(
        self,
        mut sum: [u64; WORDS],
        factor: [u64; 8],
        ready: [[u64; WORDS]; 8],
    ) -> [u64; WORDS] {
        for (mask, power) in factor.iter().zip(ready) {
            for (sum, word) in sum.iter_mut().zip(power) {
                *sum ^= word & mask;
            }
        }
        sum
    }
}
