//! Asking for bytes before they are needed.

/// The bytes of a cache line: here, and on most processors.
const CACHE_LINE_BYTES: usize = 64;

/// Asks for the cache lines of these bytes to be brought into the nearest cache. A hint: nothing waits for it, and where there
/// is no instruction for it, nothing is done.
#[inline(always)]
pub(crate) fn prefetch<const BYTES: usize>(bytes: &[u8; BYTES]) {
    for line in bytes.iter().step_by(CACHE_LINE_BYTES) {
        prefetch_line(line);
    }
}

#[inline(always)]
#[allow(unsafe_code)]
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
fn prefetch_line(byte: &u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the pointer is that of a borrowed byte. A prefetch reads and writes nothing that a program can see, and SSE,
        // which has it, is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) }
    }
}
