//! The file as it was covered.

use std::path::Path;
use std::sync::Arc;

use super::Check;
use crate::error::Result;
use crate::parity::Bands;
use crate::source::{Bound, Source, out_of_bounds};

/// A file with what its sidecar restores in place. Bytes that the file lacks and that are lost are zeros.
pub(super) struct View {
    bands: Arc<Bands>,
    len: u64,
    trust: Trusted,
}

/// Whether the sidecar is trusted.
enum Trusted {
    Yes,
    No,
    /// To be asked once it matters.
    Ask(Arc<Check>),
}

impl View {
    /// The file by a sidecar that is trusted, as long as it is.
    fn raw(bands: &Arc<Bands>) -> Self {
        Self {
            bands: bands.clone(),
            len: bands.file().len(),
            trust: Trusted::Yes,
        }
    }

    /// The same as long as it was covered, to tell its format: that may depend on its end.
    pub(super) fn covered(bands: &Arc<Bands>) -> Self {
        let mut view = Self::raw(bands);
        if bands.refused().is_none() {
            view.len = bands.viewed_len();
        }
        view
    }

    /// The file that is checked. It is as long as it was covered, if the sidecar is trusted.
    pub(super) fn of(check: &Arc<Check>) -> Result<Self> {
        let is_cut = check.bands.viewed_len() > check.bands.file().len();
        let view = if is_cut && check.bands.refused().is_none() {
            Self::settled(check)?
        } else {
            Self {
                trust: Trusted::Ask(check.clone()),
                ..Self::raw(&check.bands)
            }
        };
        Ok(view)
    }

    /// The same, when it was asked whether the sidecar is trusted.
    pub(super) fn settled(check: &Check) -> Result<Self> {
        let mut view = Self::covered(&check.bands);
        if check.trust()?.is_of_an_earlier_state {
            view = Self {
                trust: Trusted::No,
                ..Self::raw(&check.bands)
            };
        }
        Ok(view)
    }

    /// Whether the file counts as it is.
    fn is_as_it_is(&self) -> Result<bool> {
        match &self.trust {
            Trusted::Yes => Ok(false),
            Trusted::No => Ok(true),
            Trusted::Ask(check) => {
                Ok(self.bands.is_damaged() && check.trust()?.is_of_an_earlier_state)
            }
        }
    }

    fn read(
        &self,
        offset: u64,
        buffer: &mut [u8],
        by_bands: impl Fn(&Bands, u64, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        if offset.saturating_add(buffer.len() as u64) > self.len {
            return Err(out_of_bounds(self, offset, buffer.len()));
        }
        if self.is_as_it_is()? {
            return self.bands.read_as_it_is(offset, buffer);
        }
        by_bands(&self.bands, offset, buffer)?;
        // The bytes that were read may be the first ones that tell.
        if self.is_as_it_is()? {
            return self.bands.read_as_it_is(offset, buffer);
        }
        Ok(())
    }
}

impl Source for View {
    fn len(&self) -> u64 {
        self.len
    }

    fn path(&self) -> Option<&Path> {
        self.bands.file().path()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.read(offset, buffer, Bands::read)
    }

    fn read_again_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.read(offset, buffer, Bands::read_again)
    }

    fn beside(&self, extension: &str) -> Result<Option<Arc<dyn Source>>> {
        self.bands.file().beside(extension)
    }

    fn is_replaceable(&self) -> bool {
        self.bands.file().is_replaceable() || self.bands.sidecar().is_replaceable()
    }

    fn confirm(&self) -> Result<()> {
        self.bands.file().confirm()?;
        self.bands.sidecar().confirm()
    }

    fn bound(&self) -> Option<Bound> {
        self.bands.file().bound()
    }

    fn covered(&self) -> Option<usize> {
        Some(Arc::as_ptr(&self.bands).addr())
    }
}
