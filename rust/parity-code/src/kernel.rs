//! The choice of instructions to multiply with.

use std::fmt;
use std::sync::OnceLock;

#[cfg(target_arch = "aarch64")]
use crate::neon::Neon;
use crate::portable::Portable;
use crate::sums::Columns;
#[cfg(target_arch = "x86_64")]
use crate::{avx2::Avx2, gfni::Gfni};

/// The environment variable that names a kernel for the whole process. It is read once.
const VARIABLE: &str = "PARITY_CODE_KERNEL";

/// The instructions that blocks are multiplied with. All give the same bytes.
///
/// By default it is the best kernel that the processor has. The environment variable `PARITY_CODE_KERNEL` (`gfni`, `avx2`,
/// `neon` or `portable`) sets a lower one for the whole process, for measurements or to exclude the others. A name of no
/// available kernel changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kernel {
    /// Code for any processor, 32 bytes at a time.
    Portable,
    /// Look-ups in registers of 128 bits, of ARM processors.
    Neon,
    /// Look-ups in registers of 256 bits.
    Avx2,
    /// Galois field instructions with registers of 256 bits.
    Gfni,
}

impl Kernel {
    /// All of them, the slowest first.
    const ALL: [Self; 4] = [Self::Portable, Self::Neon, Self::Avx2, Self::Gfni];

    /// The kernels that this processor can run, the slowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let all = Self::ALL.into_iter();
        all.filter(|kernel| kernel.is_available()).collect()
    }

    /// The default kernel: the best available one, unless `PARITY_CODE_KERNEL` names another of them.
    #[must_use]
    pub fn detected() -> Self {
        static DETECTED: OnceLock<Kernel> = OnceLock::new();
        *DETECTED.get_or_init(|| {
            let name = std::env::var(VARIABLE).ok();
            let named = |kernel: &Self| name.as_deref() == Some(kernel.name());
            match Self::available().into_iter().find(named) {
                Some(named) => named,
                None => Self::Gfni.or_below(),
            }
        })
    }

    /// Whether this processor has its instructions.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => Neon::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => Avx2::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni => Gfni::detect().is_some(),
            _ => false, // of another processor
        }
    }

    /// This kernel. If the processor lacks its instructions, the best one below it.
    pub(crate) fn or_below(self) -> Self {
        let best = Self::available().into_iter().rfind(|own| *own <= self);
        best.unwrap_or(Self::Portable)
    }

    /// Adds columns times their factors to sums. All have one length. Each call asks for the proof again, which loads a
    /// cached number; without a proof the portable code gives the same bytes.
    pub(crate) fn add(self, columns: Columns<'_>, sums: &mut [&mut [u8]]) {
        let added: Option<()> = match self {
            #[cfg(target_arch = "aarch64")]
            Self::Neon => Neon::detect().map(|neon| neon.add(columns, sums)),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => Avx2::detect().map(|avx2| avx2.add(columns, sums)),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni => Gfni::detect().map(|gfni| gfni.add(columns, sums)),
            _ => None,
        };
        if added.is_none() {
            Portable.add(columns, sums);
        }
    }

    /// Its name in `PARITY_CODE_KERNEL`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Gfni => "gfni",
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
