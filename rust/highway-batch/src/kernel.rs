//! Which instructions to hash with.

use std::fmt;
use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use crate::{avx2::Avx2, avx512::Avx512};

/// The environment variable that names a kernel for the whole process, looked at once.
const VARIABLE: &str = "HIGHWAY_BATCH_KERNEL";

/// The instructions that messages are hashed with. All give the same hashes.
///
/// The one that is used is the best that the processor has. The environment variable `HIGHWAY_BATCH_KERNEL` (`avx512`, `avx2` or
/// `portable`) sets a lower one for the whole process, to measure it or to rule the others out; where it names one that
/// there is not, it changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kernel {
    /// One message after the other, by the crate `highway`, with what that knows of the processor (AVX2, SSE4.1, NEON).
    Portable,
    /// Three messages side by side in 256-bit registers.
    Avx2,
    /// Eight messages side by side in 512-bit registers. Used from Ice Lake and Zen 4 on: on processors before, instructions
    /// of 512 bits lower the clock.
    Avx512,
}

impl Kernel {
    /// The kernels that this processor has, the slowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let all = [Self::Portable, Self::Avx2, Self::Avx512];
        all.into_iter()
            .filter(|kernel| kernel.is_available())
            .collect()
    }

    /// The kernel that is used where none is chosen: the best available one, unless `HIGHWAY_BATCH_KERNEL` names another of them.
    #[must_use]
    pub fn detected() -> Self {
        Dispatch::detected().kernel()
    }

    /// Whether this processor has its instructions.
    #[must_use]
    pub fn is_available(self) -> bool {
        Dispatch::of(self).kernel() == self
    }

    /// The name by which `HIGHWAY_BATCH_KERNEL` knows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A kernel, with the proof that the processor has its instructions.
#[derive(Clone, Copy)]
pub(crate) enum Dispatch {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl Dispatch {
    /// That of the process.
    #[inline]
    pub(crate) fn detected() -> Self {
        static DETECTED: OnceLock<Dispatch> = OnceLock::new();
        *DETECTED.get_or_init(|| {
            let named = std::env::var(VARIABLE).ok();
            let mut available = Kernel::available();
            let chosen = available
                .iter()
                .copied()
                .find(|kernel| named.as_deref() == Some(kernel.name()));
            Self::of(chosen.or(available.pop()).unwrap_or(Kernel::Portable))
        })
    }

    /// That of a kernel, or where the processor lacks its instructions, the best one below it.
    pub(crate) fn of(kernel: Kernel) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if kernel >= Kernel::Avx512
                && let Some(avx512) = Avx512::detect()
            {
                return Self::Avx512(avx512);
            }
            if kernel >= Kernel::Avx2
                && let Some(avx2) = Avx2::detect()
            {
                return Self::Avx2(avx2);
            }
        }
        let _ = kernel;
        Self::Portable
    }

    pub(crate) fn kernel(self) -> Kernel {
        match self {
            Self::Portable => Kernel::Portable,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Kernel::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => Kernel::Avx512,
        }
    }
}
