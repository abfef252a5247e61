//! The choice of instructions to hash with.

use std::fmt;
use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use crate::{avx2::Avx2, avx512::Avx512};

/// The environment variable that names a kernel for the whole process. It is read once.
const VARIABLE: &str = "HIGHWAY_BATCH_KERNEL";

/// The instructions that messages are hashed with. All give the same hashes.
///
/// By default it is the best kernel that the processor has. The environment variable `HIGHWAY_BATCH_KERNEL` (`avx512`,
/// `avx2` or `portable`) sets a lower one for the whole process, for measurements or to exclude the others. A name of
/// no available kernel changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kernel {
    /// One message after the other, by the crate `highway` with the instructions that it knows (AVX2, SSE4.1, NEON).
    Portable,
    /// Three messages in lockstep in 256-bit registers.
    Avx2,
    /// Eight messages in lockstep in 512-bit registers. Used from Ice Lake and Zen 4 on: in earlier processors,
    /// instructions of 512 bits lower the clock.
    Avx512,
}

impl Kernel {
    /// All of them, the slowest first.
    const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// The kernels that this processor can run, the slowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let all = Self::ALL.into_iter();
        all.filter(|kernel| kernel.is_available()).collect()
    }

    /// The default kernel: the best available one, unless `HIGHWAY_BATCH_KERNEL` names another of them.
    #[must_use]
    pub fn detected() -> Self {
        Dispatch::detected().kernel()
    }

    /// Whether this processor has its instructions.
    #[must_use]
    pub fn is_available(self) -> bool {
        Dispatch::exactly(self).is_some()
    }

    /// Its name in `HIGHWAY_BATCH_KERNEL`.
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
    /// The process's kernel.
    #[inline]
    pub(crate) fn detected() -> Self {
        static DETECTED: OnceLock<Dispatch> = OnceLock::new();
        *DETECTED.get_or_init(|| {
            let name = std::env::var(VARIABLE).ok();
            let named = |kernel: &Kernel| name.as_deref() == Some(kernel.name());
            let named = Kernel::ALL.into_iter().find(named);
            match named.and_then(Self::exactly) {
                Some(named) => named,
                None => Self::of(Kernel::Avx512),
            }
        })
    }

    /// A kernel, if the processor has its instructions.
    fn exactly(kernel: Kernel) -> Option<Self> {
        match kernel {
            Kernel::Portable => Some(Self::Portable),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => Avx2::detect().map(Self::Avx2),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => Avx512::detect().map(Self::Avx512),
            #[cfg(not(target_arch = "x86_64"))]
            _ => None,
        }
    }

    /// A kernel. If the processor lacks its instructions, the best one below it.
    pub(crate) fn of(kernel: Kernel) -> Self {
        let below = Kernel::ALL.into_iter().rev().filter(|own| *own <= kernel);
        let best = below.filter_map(Self::exactly).next();
        best.unwrap_or(Self::Portable)
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
