//! Prefetching: hints to the processor that load bytes before they are needed, so that cache misses overlap.
//!
//! On processors without the instruction the functions do nothing.

/// The bytes of a cache line, on processors that have the instruction.
pub(crate) const CACHE_LINE_BYTES: usize = 64;

/// Prefetches the cache line of `bytes[at]`, if there is such a byte.
#[inline(always)]
pub(crate) fn prefetch_read(bytes: &[u8], at: usize) {
    prefetch_item(bytes, at);
}

/// As [`prefetch_read`], for an item of any slice.
#[inline(always)]
pub(crate) fn prefetch_item<T>(items: &[T], at: usize) {
    if let Some(item) = items.get(at) {
        prefetch_line(item);
    }
}

/// As [`prefetch_read`], for up to `len` bytes from `at` on.
#[inline(always)]
pub(crate) fn prefetch_run(bytes: &[u8], at: usize, len: usize) {
    for line in (at..at.saturating_add(len)).step_by(CACHE_LINE_BYTES) {
        prefetch_read(bytes, line);
    }
}

/// Prefetches the cache lines of these bytes.
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
        // SAFETY: the instruction is part of SSE, which every x86-64 processor has. It has no visible effect and never
        // faults. Its address is that of a borrowed item all the same.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) };
    }
}
