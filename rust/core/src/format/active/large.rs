//! Records that are larger than a window.

use super::layout::{CHECKSUM_BYTES, Header};
use super::resync::stored_checksum;
use super::walk::{ActiveScan, Checked};
use crate::checksum::{Key, hash};
use crate::engine::Advance;
use crate::error::{Error, Finding, Result};
use crate::limits::LIMITS;

impl ActiveScan {
    /// A record that is not whole in the window. It is hashed in pieces, so that a length that lies costs no memory.
    pub(super) fn advance_large(&mut self, header: Header) -> Result<Advance> {
        let (position, total) = (self.state.at, header.total());
        let record = Checked { position, header };
        let Ok(whole) = usize::try_from(total) else {
            return Err(self.too_large(&record));
        };
        if total <= LIMITS.unverified_bytes {
            // Never less than a window, so that the buffer keeps its size.
            let want = self.options.window_bytes;
            self.window.load(&*self.source, position, whole, want)?;
            return Ok(Advance::On);
        }
        let stored = stored_checksum(&*self.source, position, &header)?;
        let (mut computed, mut tried) = (0, Key::DEFAULT);
        for (place, key) in self.candidate_keys() {
            tried = key;
            computed = self.search.hash_range(
                &*self.source,
                &self.options,
                &key,
                position,
                header.hashed(),
            )?;
            if computed == stored {
                self.state.key = Some(place);
                break;
            }
        }
        if computed != stored {
            let computed = tried.disclosed(computed);
            return self.damage(Finding::Checksum { stored, computed }, total);
        }
        self.base = position;
        if self.options.values
            && self.bounds.contains(&header.uuid)
            && self.is_type_wanted(position)
            && total <= self.options.max_record_bytes
        {
            // What is returned is what is hashed: these very bytes, once more.
            self.window.load(&*self.source, position, whole, whole)?;
            let bytes = self.window.bytes(&*self.source, position);
            let body = bytes.get(..whole - CHECKSUM_BYTES).unwrap_or_default();
            if hash(&self.file_key(), body) != stored {
                return Err(self.changed());
            }
        }
        Ok(self.commit(record)?.unwrap_or(Advance::On))
    }

    pub(super) fn too_large(&self, record: &Checked) -> Error {
        Error::record_too_large(
            self.source.path(),
            format!("the record at offset {}", record.position),
            record.header.total(),
            self.options.max_record_bytes,
        )
    }

    pub(super) fn changed(&self) -> Error {
        let what = format!("the record at offset {}", self.state.at);
        Error::changed(self.source.path(), &what)
    }
}
