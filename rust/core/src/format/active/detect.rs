//! Telling a segment by its first record.

use super::layout::{CHECKSUM_BYTES, Header, MAX_HEADER_BYTES, Parsed, UUID_BYTES};
use crate::checksum::hash;
use crate::cursor::Cursor;
use crate::engine::{Likelihood, Options};
use crate::error::Result;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};
use crate::uuid6;

/// Whether the first record says that this is a segment: certainly by its checksum, likely by its UUID and lengths and by
/// what stands behind it, a greater UUID or unused space.
pub(super) fn detect(source: &dyn Source, options: &Options) -> Result<Likelihood> {
    let len = source.len();
    let mut window = Window::default();
    let at_most = |bytes: usize| saturating_usize(len).min(bytes);
    window.load(source, 0, at_most(MAX_HEADER_BYTES), MAX_HEADER_BYTES)?;
    let Parsed::Record(header) = Header::parse(window.bytes(source, 0), len) else {
        return Ok(Likelihood::No);
    };
    if !uuid6::is_v6(&header.uuid) {
        return Ok(Likelihood::No);
    }
    let total = usize::try_from(header.total()).ok();
    if let Some(total) = total.filter(|total| *total <= options.window_bytes) {
        window.load(source, 0, total, total)?;
        let mut cursor = Cursor::new(window.bytes(source, 0));
        let body = cursor.run(total - CHECKSUM_BYTES).unwrap_or_default();
        let stored = cursor.u64_be();
        let checks = |key| stored == Some(hash(key, body));
        if options.keys.iter().any(checks) {
            let reason = "the first record's checksum is right".to_owned();
            return Ok(Likelihood::Certain(reason));
        }
    }
    let rest = saturating_usize(len - header.total());
    let mut next = Window::default();
    let want = rest.min(UUID_BYTES);
    next.load(source, header.total(), want, want)?;
    let next = next.bytes(source, header.total());
    let next = next.get(..want).unwrap_or_default();
    let fits = match next.first_chunk() {
        Some(uuid) => uuid6::is_v6(uuid) && *uuid > header.uuid || *uuid == [0; UUID_BYTES],
        None => next.iter().all(|byte| *byte == 0),
    };
    Ok(if fits {
        Likelihood::Likely("the first record's UUID and lengths fit".to_owned())
    } else {
        Likelihood::No
    })
}
