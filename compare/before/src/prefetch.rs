//! Asking for bytes before they are needed: what is waited for from memory is waited for together.
//!
//! Each is a hint, which nothing waits for. Where there is no instruction for it, nothing is done.

/// The bytes of a cache line: on the processors that have the instruction.
pub(crate) const CACHE_LINE_BYTES: usize = 64;

/// Asks the processor to bring the cache line of `bytes[at]` near, if there is such a byte.
#[inline(always)]
pub(crate) fn prefetch_read(bytes: &[u8], at: usize) {
    prefetch_item(bytes, at);
}

/// As [`prefetch_read`], of an item of any slice.
#[inline(always)]
pub(crate) fn prefetch_item<T>(items: &[T], at: usize) {
    if let Some(item) = items.get(at) {
        prefetch_line(item);
    }
}

/// As [`prefetch_read`], of `len` bytes from `at` on, as far as there are any.
#[inline(always)]
pub(crate) fn prefetch_run(bytes: &[u8], at: usize, len: usize) {
    for line in (at..at.saturating_add(len)).step_by(CACHE_LINE_BYTES) {
        prefetch_read(bytes, line);
    }
}

/// Asks for the cache lines of all of these bytes.
#[inline(always)]
pub(crate) fn prefetch_all<const BYTES: usize>(bytes: &[u8; BYTES]) {
    for line in bytes.iter().step_by(CACHE_LINE_BYTES) {
        prefetch_line(line);
    }
}

#[inline(always)]
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
fn prefetch_line<T>(item: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is part of SSE, which every x86-64 processor has. It changes nothing that a program sees and
        // never faults; its address is that of a borrowed item all the same.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) };
    }
}
