//! GFNI: one instruction multiplies the bits of each byte with a matrix of bits, in registers of 256 bits. With AVX-512,
//! registers of 512 bits are only a tenth faster (9.4 and 10.4 GB/s on Zen 4), so there is no kernel for them.
#![allow(unsafe_code)]

use std::arch::x86_64::{__m256i, _mm256_gf2p8affine_epi64_epi8, _mm256_set1_epi64x};

use crate::avx2::{self, Avx2};
use crate::field::slow_product;
use crate::simd::Simd;
use crate::sums::{self, Columns};

/// The bytes of a vector.
const BYTES: usize = 32;

/// The sums in registers at a time, and the vectors of each. More would need more than the 16 registers.
const SUMS: usize = 4;
const VECTORS: usize = 2;

/// The columns that are added at a time.
const COLUMNS: usize = 8;

/// For each factor, the matrix of bits that multiplies by it.
static MATRICES: [u64; 256] = matrices();

/// Proof that the processor has GFNI, AVX and AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Gfni(Avx2);

impl Gfni {
    /// The proof, if there are GFNI, AVX and AVX2.
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx");
        Avx2::detect().filter(|_| has).map(Self)
    }

    /// Adds columns times factors to sums.
    pub(crate) fn add(self, columns: Columns<'_>, sums: &mut [&mut [u8]]) {
        #[target_feature(enable = "avx,avx2,gfni")]
        fn run(gfni: Gfni, columns: Columns<'_>, sums: &mut [&mut [u8]]) {
            sums::add::<_, BYTES, COLUMNS, SUMS, VECTORS>(gfni, columns, sums);
        }
        // SAFETY: `self` exists only if all of these features were detected.
        unsafe { run(self, columns, sums) }
    }
}

// SAFETY of all the intrinsics below: a value of `Gfni` proves that the processor has them.

impl Simd<BYTES> for Gfni {
    type Vector = __m256i;
    type Ready = __m256i;
    type Table = u64;
    type Factor = __m256i;

    #[inline(always)]
    fn table(self, factor: u8) -> u64 {
        #[allow(clippy::indexing_slicing)] // there is a matrix for each byte
        MATRICES[usize::from(factor)]
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; BYTES]) -> __m256i {
        avx2::load(self.0, bytes)
    }

    #[inline(always)]
    fn store(self, vector: __m256i, bytes: &mut [u8; BYTES]) {
        avx2::store(self.0, vector, bytes);
    }

    #[inline(always)]
    fn prefetch(self, byte: &u8) {
        avx2::prefetch(self.0, byte);
    }

    #[inline(always)]
    fn ready(self, vector: __m256i) -> __m256i {
        vector
    }

    #[inline(always)]
    fn factor(self, table: &u64) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_set1_epi64x(table.cast_signed()) }
    }

    #[inline(always)]
    fn multiply_add(self, sum: __m256i, factor: __m256i, ready: __m256i) -> __m256i {
        // SAFETY: as above.
        let product = unsafe { _mm256_gf2p8affine_epi64_epi8::<0>(ready, factor) };
        avx2::xor(self.0, sum, product)
    }
}

/// The instruction takes the matrix as eight bytes: byte 7 − i tells which bits of the input are added for bit i of the
/// output.
#[allow(clippy::indexing_slicing, clippy::cast_possible_truncation)] // evaluated by the compiler, which would complain
const fn matrices() -> [u64; 256] {
    let mut all = [0; 256];
    let mut factor = 0;
    while factor < 256 {
        let mut input = 0;
        while input < 8 {
            let product = slow_product(factor as u8, 1 << input);
            let mut output = 0;
            while output < 8 {
                if product >> output & 1 != 0 {
                    all[factor] |= 1 << (8 * (7 - output) + input);
                }
                output += 1;
            }
            input += 1;
        }
        factor += 1;
    }
    all
}
