//! AVX-512: two messages in a vector of 512 bits. No instruction of HighwayHash moves anything across 256 bits, so each
//! message has its own half.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, __m512i, __mmask8, _mm256_extract_epi64, _mm256_loadu_si256, _mm512_add_epi64,
    _mm512_broadcast_i64x4, _mm512_castsi256_si512, _mm512_castsi512_si256,
    _mm512_extracti64x4_epi64, _mm512_inserti64x4, _mm512_mask_blend_epi64, _mm512_mul_epu32,
    _mm512_permutexvar_epi32, _mm512_rolv_epi32, _mm512_setr_epi32, _mm512_shuffle_epi8,
    _mm512_srli_epi64, _mm512_xor_si512,
};
use std::hint::black_box;

use crate::Key;
use crate::Messages;
use crate::avx2::{self, Avx2};
use crate::lockstep;
use crate::simd::{Half, Packet, Simd};
use crate::window::Scratch;

/// Proof that the processor has AVX-512 F and BW, and AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(Avx2);

/// How many vectors of two messages are hashed at once. Their states take 16 of the 32 registers.
const STATES: usize = 4;

impl Avx512 {
    /// The proof, if the processor has AVX-512 and it pays. Nothing here needs VBMI, but processors without it (Skylake
    /// and similar) lower the clock of a core while it does 512-bit multiplications.
    pub(crate) fn detect() -> Option<Self> {
        let pays = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi");
        Avx2::detect().filter(|_| pays).map(Self)
    }

    /// The proof of AVX2.
    pub(crate) fn avx2(self) -> Avx2 {
        self.0
    }

    /// Hashes messages in lockstep. The first `HEAD` bytes of each are one of the heads. If `KEYED`, each has a key.
    pub(crate) fn hash<const HEAD: usize, const KEYED: bool>(
        self,
        key: &Key,
        messages: Messages<'_>,
        scratch: &mut Scratch,
        hashes: &mut [u64],
    ) {
        #[target_feature(enable = "avx2,avx512f,avx512bw")]
        fn run<const HEAD: usize, const KEYED: bool>(
            avx512: Avx512,
            key: &Key,
            messages: Messages<'_>,
            scratch: &mut Scratch,
            hashes: &mut [u64],
        ) {
            lockstep::hash_windows::<_, 2, STATES, HEAD, KEYED>(
                Registers::new(avx512),
                key,
                messages,
                scratch,
                hashes,
            );
        }
        // SAFETY: `self` exists only if all of these features were detected.
        unsafe { run::<HEAD, KEYED>(self, key, messages, scratch, hashes) }
    }
}

// SAFETY of all the intrinsics below: a value of `Avx512` proves that the processor has them.

/// The registers, and the order in which [`Simd::permute`] puts the 32-bit parts.
#[derive(Clone, Copy)]
struct Registers(Avx512, __m512i);

impl Registers {
    #[inline(always)]
    fn new(avx512: Avx512) -> Self {
        // SAFETY: as above.
        let order =
            unsafe { _mm512_setr_epi32(5, 4, 7, 6, 1, 0, 3, 2, 13, 12, 15, 14, 9, 8, 11, 10) };
        // If the compiler knew the order, it would make two instructions of one.
        Self(avx512, black_box(order))
    }

    #[inline(always)]
    fn join(self, first: __m256i, second: __m256i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_inserti64x4::<1>(_mm512_castsi256_si512(first), second) }
    }
}

impl Simd<2> for Registers {
    type Vector = __m512i;
    type Mask = __mmask8;

    #[inline(always)]
    fn splat(self, lanes: [u64; 4]) -> __m512i {
        // SAFETY: as above; the array has the 32 bytes that are read, and the load needs no alignment.
        unsafe { _mm512_broadcast_i64x4(_mm256_loadu_si256(lanes.as_ptr().cast())) }
    }

    #[inline(always)]
    fn load_lanes(self, [first, second]: [&[u64; 4]; 2]) -> __m512i {
        let avx2 = self.0.avx2();
        self.join(
            avx2::load_lanes(avx2, first),
            avx2::load_lanes(avx2, second),
        )
    }

    #[inline(always)]
    fn load(self, [first, second]: [&Packet; 2]) -> __m512i {
        let avx2 = self.0.avx2();
        self.join(avx2::load(avx2, first), avx2::load(avx2, second))
    }

    #[inline(always)]
    fn load_halves(self, [first, second]: [[&Half; 2]; 2]) -> __m512i {
        let avx2 = self.0.avx2();
        self.join(
            avx2::load_halves(avx2, first),
            avx2::load_halves(avx2, second),
        )
    }

    #[inline(always)]
    fn add(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_add_epi64(a, b) }
    }

    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_xor_si512(a, b) }
    }

    #[inline(always)]
    fn mul_low_high(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_mul_epu32(a, _mm512_srli_epi64::<32>(b)) }
    }

    #[inline(always)]
    fn rotate(self, a: __m512i, by: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_rolv_epi32(a, by) }
    }

    #[inline(always)]
    fn shuffle(self, a: __m512i, by: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_shuffle_epi8(a, by) }
    }

    #[inline(always)]
    fn permute(self, a: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_permutexvar_epi32(self.1, a) }
    }

    #[inline(always)]
    fn mask(self, [first, second]: [bool; 2]) -> __mmask8 {
        (u8::from(first) * 0x0f) | (u8::from(second) * 0xf0)
    }

    #[inline(always)]
    fn select(self, mask: __mmask8, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_mask_blend_epi64(mask, b, a) }
    }

    #[inline(always)]
    fn first_lanes(self, a: __m512i) -> [u64; 2] {
        // SAFETY: as above.
        unsafe {
            [
                _mm256_extract_epi64::<0>(_mm512_castsi512_si256(a)).cast_unsigned(),
                _mm256_extract_epi64::<0>(_mm512_extracti64x4_epi64::<1>(a)).cast_unsigned(),
            ]
        }
    }

    #[inline(always)]
    fn prefetch(self, byte: &u8) {
        avx2::prefetch(self.0.avx2(), byte);
    }
}
