//! AVX2: one message in a vector of 256 bits.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _MM_HINT_T1, _mm_loadu_si128, _mm_prefetch, _mm256_add_epi64, _mm256_extract_epi64,
    _mm256_loadu_si256, _mm256_mul_epu32, _mm256_or_si256, _mm256_permutevar8x32_epi32,
    _mm256_set_m128i, _mm256_set1_epi32, _mm256_setr_epi32, _mm256_shuffle_epi8, _mm256_sllv_epi32,
    _mm256_srli_epi64, _mm256_srlv_epi32, _mm256_sub_epi32, _mm256_xor_si256,
};
use std::hint::black_box;

use crate::Key;
use crate::Messages;
use crate::lockstep::{self, Ahead};
use crate::message::Message;
use crate::simd::{Half, Packet, Simd};
use crate::window::Scratch;

/// Proof that the processor has AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

/// How many messages are hashed at once. Two would fill the processor's units except at the beginning and end of each
/// message. Four need more than the 16 registers.
const STATES: usize = 3;

impl Avx2 {
    /// The proof, if there is AVX2.
    pub(crate) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// Hashes messages in lockstep. The first `HEAD` bytes of each are one of the heads. If `KEYED`, each has a key.
    pub(crate) fn hash<const HEAD: usize, const KEYED: bool>(
        self,
        key: &Key,
        messages: Messages<'_>,
        scratch: &mut Scratch,
        hashes: &mut [u64],
    ) {
        #[target_feature(enable = "avx2")]
        fn run<const HEAD: usize, const KEYED: bool>(
            avx2: Avx2,
            key: &Key,
            messages: Messages<'_>,
            scratch: &mut Scratch,
            hashes: &mut [u64],
        ) {
            lockstep::hash_windows::<_, 1, STATES, HEAD, KEYED>(
                Registers::new(avx2),
                key,
                messages,
                scratch,
                hashes,
            );
        }
        // SAFETY: `self` exists only if all of these features were detected.
        unsafe { run::<HEAD, KEYED>(self, key, messages, scratch, hashes) }
    }

    /// Hashes one message.
    #[inline]
    pub(crate) fn hash_one(self, key: &Key, message: Message<'_>) -> Option<u64> {
        #[target_feature(enable = "avx2")]
        fn run(avx2: Avx2, key: &Key, message: Message<'_>) -> Option<u64> {
            let [[hash]] = lockstep::hash_lanes(
                Registers::new(avx2),
                key,
                [[message]],
                None,
                None,
                &mut Ahead(&[]),
            )?;
            Some(hash)
        }
        // SAFETY: `self` exists only if AVX2 was detected.
        unsafe { run(self, key, message) }
    }
}

// SAFETY of all the intrinsics below: a value of `Avx2` proves that the processor has them.

/// Four lanes.
#[inline(always)]
pub(crate) fn load_lanes(_: Avx2, lanes: &[u64; 4]) -> __m256i {
    // SAFETY: as above; the array has the 32 bytes that are read, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) }
}

/// One packet.
#[inline(always)]
pub(crate) fn load(_: Avx2, packet: &Packet) -> __m256i {
    // SAFETY: as above; the packet has the 32 bytes that are read, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(packet.as_ptr().cast()) }
}

/// One packet, whose halves are in two places.
#[inline(always)]
pub(crate) fn load_halves(_: Avx2, [low, high]: [&Half; 2]) -> __m256i {
    // SAFETY: as above; each half has the 16 bytes that are read, and the load needs no alignment.
    unsafe {
        let low = _mm_loadu_si128(low.as_ptr().cast());
        let high = _mm_loadu_si128(high.as_ptr().cast());
        _mm256_set_m128i(high, low)
    }
}

/// Prefetches the cache line of a byte into the second cache, because a window is larger than the first one.
#[inline(always)]
pub(crate) fn prefetch(_: Avx2, byte: &u8) {
    // SAFETY: as above; a prefetch has no visible effect and never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(byte).cast()) }
}

/// The registers, and the order in which [`Simd::permute`] puts the 32-bit parts.
#[derive(Clone, Copy)]
struct Registers(Avx2, __m256i);

impl Registers {
    #[inline(always)]
    fn new(avx2: Avx2) -> Self {
        // SAFETY: as above.
        let order = unsafe { _mm256_setr_epi32(5, 4, 7, 6, 1, 0, 3, 2) };
        // If the compiler knew the order, it would make two instructions of one.
        Self(avx2, black_box(order))
    }
}

impl Simd<1> for Registers {
    type Vector = __m256i;
    // A vector has one message, and is stepped as long as that has packets, so no mask is needed.
    type Mask = ();

    #[inline(always)]
    fn splat(self, lanes: [u64; 4]) -> __m256i {
        // SAFETY: as above; the array has the 32 bytes that are read, and the load needs no alignment.
        unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn load_lanes(self, [lanes]: [&[u64; 4]; 1]) -> __m256i {
        load_lanes(self.0, lanes)
    }

    #[inline(always)]
    fn load(self, [packet]: [&Packet; 1]) -> __m256i {
        load(self.0, packet)
    }

    #[inline(always)]
    fn load_halves(self, [halves]: [[&Half; 2]; 1]) -> __m256i {
        load_halves(self.0, halves)
    }

    #[inline(always)]
    fn add(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_add_epi64(a, b) }
    }

    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_xor_si256(a, b) }
    }

    #[inline(always)]
    fn mul_low_high(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_mul_epu32(a, _mm256_srli_epi64::<32>(b)) }
    }

    #[inline(always)]
    fn rotate(self, a: __m256i, by: __m256i) -> __m256i {
        // SAFETY: as above. A shift by 32 gives zero, so a rotation by 0 changes nothing.
        unsafe {
            let left = _mm256_sllv_epi32(a, by);
            let right = _mm256_srlv_epi32(a, _mm256_sub_epi32(_mm256_set1_epi32(32), by));
            _mm256_or_si256(left, right)
        }
    }

    #[inline(always)]
    fn shuffle(self, a: __m256i, by: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_shuffle_epi8(a, by) }
    }

    #[inline(always)]
    fn permute(self, a: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_permutevar8x32_epi32(a, self.1) }
    }

    #[inline(always)]
    fn mask(self, _: [bool; 1]) {}

    #[inline(always)]
    fn select(self, (): (), a: __m256i, _: __m256i) -> __m256i {
        a
    }

    #[inline(always)]
    fn first_lanes(self, a: __m256i) -> [u64; 1] {
        // SAFETY: as above.
        [unsafe { _mm256_extract_epi64::<0>(a) }.cast_unsigned()]
    }

    #[inline(always)]
    fn prefetch(self, byte: &u8) {
        prefetch(self.0, byte);
    }
}
