//! Asking for bytes before they are needed: what is waited for from memory is waited for together.

/// Asks the processor to bring the cache line of `bytes[at]` near. Nothing waits for it; where there is no such byte, or no such
/// instruction, nothing happens.
#[inline(always)]
pub(crate) fn prefetch_read(bytes: &[u8], at: usize) {
    prefetch_item(bytes, at);
}

/// As [`prefetch_read`], of an item of any slice.
#[inline(always)]
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn prefetch_item<T>(items: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(item) = items.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is part of SSE, which every x86-64 processor has. It changes nothing that a program sees and
        // never faults; its address is that of an item of the slice all the same.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, at);
}
