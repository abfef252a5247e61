//! GFNI in registers of 512 bits.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_set1_epi64,
    _mm512_storeu_si512, _mm512_xor_si512,
};

use crate::avx2;
use crate::gfni::Gfni;
use crate::simd::Simd;
use crate::sums::{self, Columns};

/// The bytes of a vector.
const BYTES: usize = 64;

/// The sums in registers at a time, and the vectors of each: half of the 32 registers.
const SUMS: usize = 8;
const VECTORS: usize = 2;

/// The columns that are added at a time.
const COLUMNS: usize = 8;

/// Proof that the processor has AVX-512 F and BW, and GFNI. Processors that lower their clock for 512 bits have no
/// GFNI.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(Gfni);

impl Avx512 {
    /// The proof, if there are AVX-512 and GFNI.
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        Gfni::detect().filter(|_| has).map(Self)
    }

    /// Adds columns times factors to sums.
    pub(crate) fn add(self, columns: Columns<'_>, sums: &mut [&mut [u8]]) {
        #[target_feature(enable = "avx,avx2,gfni,avx512f,avx512bw")]
        fn run(avx512: Avx512, columns: Columns<'_>, sums: &mut [&mut [u8]]) {
            sums::add::<_, BYTES, COLUMNS, SUMS, VECTORS>(avx512, columns, sums);
        }
        // SAFETY: `self` exists only if all of these features were detected.
        unsafe { run(self, columns, sums) }
    }
}

// SAFETY of all the intrinsics below: a value of `Avx512` proves that the processor has them.

impl Simd<BYTES> for Avx512 {
    type Vector = __m512i;
    type Ready = __m512i;
    type Table = u64;
    type Factor = __m512i;

    #[inline(always)]
    fn table(self, factor: u8) -> u64 {
        self.0.matrix(factor)
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; BYTES]) -> __m512i {
        // SAFETY: as above; the array has the 64 bytes that are read, and the load needs no alignment.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, vector: __m512i, bytes: &mut [u8; BYTES]) {
        // SAFETY: as above; the array has the 64 bytes that are written, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), vector) }
    }

    #[inline(always)]
    fn prefetch(self, byte: &u8) {
        avx2::prefetch(self.0.avx2(), byte);
    }

    #[inline(always)]
    fn ready(self, vector: __m512i) -> __m512i {
        vector
    }

    #[inline(always)]
    fn factor(self, table: &u64) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_set1_epi64(table.cast_signed()) }
    }

    #[inline(always)]
    fn multiply_add(self, sum: __m512i, factor: __m512i, ready: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_xor_si512(sum, _mm512_gf2p8affine_epi64_epi8::<0>(ready, factor)) }
    }
}
