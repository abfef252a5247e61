//! The process that owns something, told from its forks.

use std::io;
#[cfg(unix)]
use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering},
};

/// The process that owns something. A fork of it shares its files, but must not change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    process: u32,
    /// How many forks that process is away from the first one.
    forks: u64,
}

impl Owner {
    /// This process.
    pub(crate) fn here() -> Self {
        count_forks();
        Self {
            process: std::process::id(),
            forks: forks(),
        }
    }

    /// Another process.
    #[cfg(test)]
    pub(crate) const fn elsewhere() -> Self {
        Self {
            process: 0,
            forks: u64::MAX,
        }
    }

    /// Whether this is the owner. Asked with each record, so it is one load.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        self.forks == forks()
    }

    pub(super) fn check(self) -> io::Result<()> {
        if self.is_here() {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "process {} opened it, and this one is a fork of that: write there, or open a file of its own here",
            self.process
        )))
    }
}

/// How many forks this process is away from the one that loaded the crate, since [`count_forks`] was called first.
#[cfg(unix)]
static FORKS: AtomicU64 = AtomicU64::new(0);

#[cfg(unix)]
#[inline]
fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// Elsewhere no process is a fork.
#[cfg(not(unix))]
const fn forks() -> u64 {
    0
}

/// Has each fork from now on count itself.
#[cfg(unix)]
#[allow(unsafe_code)]
fn count_forks() {
    type Handler = Option<extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> std::ffi::c_int;
    }
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static COUNTED: OnceLock<()> = OnceLock::new();
    COUNTED.get_or_init(|| {
        // SAFETY: the signature is that of POSIX. The handler lives as long as the code that it is part of, and only adds to an
        // atomic number, which a child may do whatever its parent's other threads were doing.
        if unsafe { pthread_atfork(None, None, Some(in_child)) } != 0 {
            // The only error: there is no memory for it.
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<[Handler; 3]>());
        }
    });
}

#[cfg(not(unix))]
const fn count_forks() {}
