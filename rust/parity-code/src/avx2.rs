//! AVX2: the product of a factor and a byte is the sum of two look-ups, one for each half of the byte.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, __m256i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_loadu_si256, _mm256_set1_epi8, _mm256_shuffle_epi8,
    _mm256_srli_epi64, _mm256_storeu_si256, _mm256_xor_si256,
};

use crate::products::{PRODUCTS, Products};
use crate::simd::Simd;
use crate::sums::{self, Columns};

/// The bytes of a vector.
const BYTES: usize = 32;

/// The sums in registers at a time, and the vectors of each. More would need more than the 16 registers.
const SUMS: usize = 4;
const VECTORS: usize = 2;

/// The columns that are added at a time. They and the sums need one line of the cache each of those that have the same place there. Eight
/// columns are a sixth slower: these look-ups leave no time to wait for the second cache.
const COLUMNS: usize = 4;

/// Proof that the processor has AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The proof, if there is AVX2.
    pub(crate) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// Adds columns times factors to sums.
    pub(crate) fn add(self, columns: Columns<'_>, sums: &mut [&mut [u8]]) {
        #[target_feature(enable = "avx2")]
        fn run(avx2: Avx2, columns: Columns<'_>, sums: &mut [&mut [u8]]) {
            sums::add::<_, BYTES, COLUMNS, SUMS, VECTORS>(avx2, columns, sums);
        }
        // SAFETY: `self` exists only if AVX2 was detected.
        unsafe { run(self, columns, sums) }
    }
}

/// Loads 32 bytes.
#[inline(always)]
pub(crate) fn load(_: Avx2, bytes: &[u8; BYTES]) -> __m256i {
    // SAFETY: the proof says that there is AVX2; the array has the 32 bytes that are read, and the load needs no
    // alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// Stores 32 bytes.
#[inline(always)]
pub(crate) fn store(_: Avx2, vector: __m256i, bytes: &mut [u8; BYTES]) {
    // SAFETY: the proof says that there is AVX2; the array has the 32 bytes that are written, and the store needs no
    // alignment.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), vector) }
}

/// Prefetches the cache line of a byte into the first cache.
#[inline(always)]
pub(crate) fn prefetch(_: Avx2, byte: &u8) {
    // SAFETY: the proof says that there is SSE, which AVX2 includes; a prefetch has no visible effect and never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) }
}

/// Exclusive or.
#[inline(always)]
pub(crate) fn xor(_: Avx2, a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: the proof says that there is AVX2.
    unsafe { _mm256_xor_si256(a, b) }
}

// SAFETY of all the intrinsics below: a value of `Avx2` proves that the processor has them.

impl Simd<BYTES> for Avx2 {
    type Vector = __m256i;
    /// The low and the high halves of the bytes.
    type Ready = [__m256i; 2];
    type Table = Products;
    type Factor = [__m256i; 2];

    #[inline(always)]
    fn table(self, factor: u8) -> Products {
        #[allow(clippy::indexing_slicing)] // there is a table for each byte
        PRODUCTS[usize::from(factor)]
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; BYTES]) -> __m256i {
        load(self, bytes)
    }

    #[inline(always)]
    fn store(self, vector: __m256i, bytes: &mut [u8; BYTES]) {
        store(self, vector, bytes);
    }

    #[inline(always)]
    fn prefetch(self, byte: &u8) {
        prefetch(self, byte);
    }

    #[inline(always)]
    fn ready(self, vector: __m256i) -> [__m256i; 2] {
        // SAFETY: as above.
        unsafe {
            let half = _mm256_set1_epi8(0x0f);
            let high = _mm256_srli_epi64::<4>(vector);
            [_mm256_and_si256(vector, half), _mm256_and_si256(high, half)]
        }
    }

    #[inline(always)]
    fn factor(self, table: &Products) -> [__m256i; 2] {
        let Products([low, high]) = table;
        // SAFETY: as above; each array has the 16 bytes that are read, and the load needs no alignment.
        unsafe {
            let load = |half: &[u8; 16]| -> __m128i { _mm_loadu_si128(half.as_ptr().cast()) };
            [
                _mm256_broadcastsi128_si256(load(low)),
                _mm256_broadcastsi128_si256(load(high)),
            ]
        }
    }

    #[inline(always)]
    fn multiply_add(self, sum: __m256i, factor: [__m256i; 2], ready: [__m256i; 2]) -> __m256i {
        let ([low, high], [low_halves, high_halves]) = (factor, ready);
        // SAFETY: as above.
        unsafe {
            let low = _mm256_shuffle_epi8(low, low_halves);
            let high = _mm256_shuffle_epi8(high, high_halves);
            xor(self, sum, xor(self, low, high))
        }
    }
}
