//! Opening a segment: which of the keys is the file's, and where a walk begins.

use std::sync::Arc;

use super::FORMAT;
use super::front::Front;
use super::state::State;
use super::walk::{SealedScan, SealedWalk};
use crate::checksum::Key;
use crate::engine::{Options, Start, Step, Walk, Wanted};
use crate::error::{Error, Result};
use crate::source::Source;

/// Begins to walk a segment.
///
/// # Errors
/// [`Error::Usage`] where the start is none of this file.
pub(super) fn walk(
    source: Arc<dyn Source>,
    options: &Options,
    start: Start<'_>,
) -> Result<SealedWalk> {
    let front = front(&source, options)?;
    let state = State::at(&source, &front, options, start)?;
    let mut scan = SealedScan::new(source, options, front, state);
    scan.keep_to_part()?;
    Ok(scan.into_walk())
}

/// Looks at a file, and settles on one of the keys: the first whose key check is in the file, else the first under which
/// the index hash is right, or any message checks.
pub(super) fn front(source: &Arc<dyn Source>, options: &Options) -> Result<Front> {
    let Some((first, others)) = options.keys.split_first() else {
        return Err(Error::Usage(
            "at least one key is needed to check records".to_owned(),
        ));
    };
    let front = Front::under(source, options, first)?;
    if others.is_empty() || front.is_key_certain() {
        return Ok(front);
    }
    for key in others {
        let other = Front::under(source, options, key)?;
        if other.is_key_certain() {
            return Ok(other);
        }
    }
    // The key check is damaged, or no key is right, or there is no trailer, and then the key does not matter.
    for key in &options.keys {
        let front = Front::under(source, options, key)?;
        if front.is_index_hash_right(&**source, options)? || front.is_torn() {
            return Ok(front);
        }
    }
    for key in &options.keys {
        let front = Front::under(source, options, key)?;
        if front.trailer.is_some() && any_message_counts(source, options, key)? {
            return Ok(front);
        }
    }
    Ok(front)
}

/// Whether any message counts under this key.
fn any_message_counts(source: &Arc<dyn Source>, options: &Options, key: &Key) -> Result<bool> {
    let options = Options {
        format: Some(&FORMAT),
        keys: vec![*key],
        strict: false,
        values: false,
        wanted: Wanted::default(),
        ..options.clone()
    };
    let mut walk = walk(source.clone(), &options, Start::Beginning)?;
    while walk.step()? == Step::More {
        if !walk.rows().is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}
