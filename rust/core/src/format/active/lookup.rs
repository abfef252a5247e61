//! Finding one record. The format has no index: reading stops at the first record that is not before the wanted one.

use std::sync::Arc;

use super::walk::ActiveWalk;
use crate::error::Result;
use crate::format::{Bounds, Options, Start, Step, Value, Walk};
use crate::source::Source;

/// See [`format::get`](crate::format::get).
pub(super) fn get(
    source: Arc<dyn Source>,
    options: &Options,
    uuid: &[u8; 16],
) -> Result<Option<Box<dyn Walk>>> {
    let bounds = Bounds {
        since: Some(*uuid),
        until: None,
    };
    let mut walk = ActiveWalk::new(
        source,
        &Options {
            bounds,
            ..options.clone()
        },
        Start::Beginning,
    )?;
    while walk.step()? == Step::More {
        let rows = walk.rows();
        if !rows.is_empty() {
            let found = rows.field(0, 0) == Value::Uuid(*uuid);
            drop(rows);
            return Ok(if found { Some(Box::new(walk)) } else { None });
        }
    }
    Ok(None)
}
