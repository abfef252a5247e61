//! NEON: the product of a factor and a byte is the sum of two look-ups, one for each half of the byte.
#![allow(unsafe_code)]

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vqtbl1q_u8, vshrq_n_u8, vst1q_u8,
};

use crate::products::{PRODUCTS, Products};
use crate::simd::Simd;
use crate::sums::{self, Columns};

/// The bytes of a vector.
const BYTES: usize = 16;

/// The sums in registers at a time, and the vectors of each: half of the 32 registers. A quarter has the halves of a column's bytes.
const SUMS: usize = 4;
const VECTORS: usize = 4;

/// The columns that are added at a time, as with AVX2.
const COLUMNS: usize = 4;

/// Proof that the processor has NEON.
#[derive(Clone, Copy)]
pub(crate) struct Neon(());

impl Neon {
    /// The proof, if there is NEON.
    pub(crate) fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }

    /// Adds columns times factors to sums.
    pub(crate) fn add(self, columns: Columns<'_>, sums: &mut [&mut [u8]]) {
        #[target_feature(enable = "neon")]
        fn run(neon: Neon, columns: Columns<'_>, sums: &mut [&mut [u8]]) {
            sums::add::<_, BYTES, COLUMNS, SUMS, VECTORS>(neon, columns, sums);
        }
        // SAFETY: `self` exists only if NEON was detected.
        unsafe { run(self, columns, sums) }
    }
}

// SAFETY of all the intrinsics below: a value of `Neon` proves that the processor has them.

impl Simd<BYTES> for Neon {
    type Vector = uint8x16_t;
    /// The low and the high halves of the bytes.
    type Ready = [uint8x16_t; 2];
    type Table = Products;
    type Factor = [uint8x16_t; 2];

    #[inline(always)]
    fn table(self, factor: u8) -> Products {
        #[allow(clippy::indexing_slicing)] // there is a table for each byte
        PRODUCTS[usize::from(factor)]
    }

    #[inline(always)]
    fn load(self, bytes: &[u8; BYTES]) -> uint8x16_t {
        // SAFETY: as above; the array has the 16 bytes that are read, and the load needs no alignment.
        unsafe { vld1q_u8(bytes.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, vector: uint8x16_t, bytes: &mut [u8; BYTES]) {
        // SAFETY: as above; the array has the 16 bytes that are written, and the store needs no alignment.
        unsafe { vst1q_u8(bytes.as_mut_ptr(), vector) }
    }

    /// There is no stable prefetch for this processor.
    #[inline(always)]
    fn prefetch(self, _: &u8) {}

    #[inline(always)]
    fn ready(self, vector: uint8x16_t) -> [uint8x16_t; 2] {
        // SAFETY: as above.
        unsafe { [vandq_u8(vector, vdupq_n_u8(0x0f)), vshrq_n_u8::<4>(vector)] }
    }

    #[inline(always)]
    fn factor(self, table: &Products) -> [uint8x16_t; 2] {
        let Products(halves) = table;
        halves.each_ref().map(|half| self.load(half))
    }

    #[inline(always)]
    fn multiply_add(
        self,
        sum: uint8x16_t,
        factor: [uint8x16_t; 2],
        ready: [uint8x16_t; 2],
    ) -> uint8x16_t {
        let ([low, high], [low_halves, high_halves]) = (factor, ready);
        // SAFETY: as above.
        unsafe {
            let product = veorq_u8(vqtbl1q_u8(low, low_halves), vqtbl1q_u8(high, high_halves));
            veorq_u8(sum, product)
        }
    }
}
