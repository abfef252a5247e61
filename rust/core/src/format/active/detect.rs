//! Detects a segment by its first record.

use super::judge::{Structure, is_zero, key_of, sequence, structure, version};
use super::layout::{MAX_HEADER_BYTES, UUID_BYTES};
use crate::engine::Likelihood;
use crate::error::Result;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};
use crate::walk::Options;

/// Whether the first record shows that this is a segment. Its checksum makes that certain. Its UUID and lengths
/// make it likely if a greater UUID or unused space follows.
pub(super) fn detect(source: &dyn Source, options: &Options) -> Result<Likelihood> {
    let len = source.len();
    let mut window = Window::default();
    let front = saturating_usize(len).min(MAX_HEADER_BYTES);
    window.load(source, 0, front, MAX_HEADER_BYTES)?;
    let Structure::Record(header) = structure(window.bytes(source, 0), len) else {
        return Ok(Likelihood::No);
    };
    if version(header.uuid).is_err() {
        return Ok(Likelihood::No);
    }
    let total = saturating_usize(header.total());
    if total <= options.window_bytes {
        window.load(source, 0, total, total)?;
        let hashed = header.split(window.bytes(source, 0));
        if hashed.is_some_and(|hashed| key_of(&options.keys, hashed).is_some()) {
            let reason = "the first record's checksum matches".to_owned();
            return Ok(Likelihood::Certain(reason));
        }
    }
    let want = saturating_usize(len - header.total()).min(UUID_BYTES);
    let mut next = Window::default();
    next.load(source, header.total(), want, want)?;
    let next = next.bytes(source, header.total());
    let ascends = |uuid: &[u8; UUID_BYTES]| sequence(*uuid, Some(header.uuid)).is_ok();
    Ok(
        if is_zero(next) || next.first_chunk().is_some_and(ascends) {
            Likelihood::Likely("the first record's UUID and lengths fit".to_owned())
        } else {
            Likelihood::No
        },
    )
}
