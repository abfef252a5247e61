//! What a scan reads from: the file and its front, with the windows that its bytes are looked at in.

use std::sync::Arc;

use super::block::{BLOCK_HEADER_BYTES, Name, Shape};
use super::front::Front;
use super::probe::Probe;
use super::toc::{Entries, Table};
use crate::engine::Options;
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::source::{Source, Window};

pub(super) struct Input {
    pub(super) source: Arc<dyn Source>,
    pub(super) options: Options,
    pub(super) front: Arc<Front>,
    pub(super) probe: Probe,
    /// The window that rows lie in.
    pub(super) data: Window,
}

impl Input {
    pub(super) fn new(source: Arc<dyn Source>, options: &Options, front: Arc<Front>) -> Self {
        Self {
            source,
            options: options.clone(),
            front,
            probe: Probe::default(),
            data: Window::default(),
        }
    }

    /// The `left` entries from the one at `at` on.
    pub(super) fn entries(&self, at: u64, left: u64) -> Entries {
        self.front.from(&self.options, at, left)
    }

    /// A table of these entries.
    pub(super) fn table(&self, at: u64, left: u64) -> Table {
        Table::new(self.entries(at, left), self.entries(at, left))
    }

    /// Whether a block of this length is checked in memory.
    pub(super) fn fits_window(&self, len: u64) -> bool {
        len <= LIMITS
            .whole_block_windows
            .saturating_mul(self.options.window_bytes as u64)
    }

    /// The tenant ID of the block at `at`, from the window where it is there.
    pub(super) fn name(&self, at: u64, shape: &Shape) -> Result<Name> {
        let name_at = at + BLOCK_HEADER_BYTES;
        Name::new(name_at, shape.tenant_len, |len| {
            if let Some(bytes) = self.data.bytes(&*self.source, name_at).get(..len) {
                return Ok(bytes.into());
            }
            let mut bytes = vec![0; len];
            self.source.read_exact_at(name_at, &mut bytes)?;
            Ok(bytes.into())
        })
    }

    /// Whether so many bytes may be tried in vain. That they would be is noted.
    pub(super) fn affords(&mut self, bytes: u64) -> bool {
        self.probe.budget.affords(bytes, self.front.len)
    }

    pub(super) fn changed(&self) -> Error {
        Error::changed(self.source.path(), "it")
    }
}
