//! Whether a file is the segment that its name says. docs/formats/log.md, "Names".

use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use super::name::{SegmentId, SegmentKind};
use crate::checksum::Key;
use crate::disk::DiskRef;
use crate::engine::Start;
use crate::error::{Error, LogFault, Result};
use crate::format;
use crate::record::Value;
use crate::source::{FileSource, Source as _};
use crate::walk::{Options, Step};

/// Where both kinds of segments have the UUID of their first record: at the beginning.
const UUID_BYTES: usize = 16;

/// Refuses a sound segment under the name of another: its records would come twice, and those of the other not at all. What is
/// wrong with a damaged one is left to those who read it.
///
/// # Errors
/// [`Error::Log`].
pub(super) fn check(
    disk: &DiskRef,
    keys: &[Key],
    (id, kind): (SegmentId, SegmentKind),
    (path, file): (&Path, &FileSource),
) -> Result<()> {
    let mut first = [0; UUID_BYTES];
    let read = file.read_exact_at(0, &mut first);
    if read.is_err() || first == id.first.into_bytes() {
        return Ok(());
    }
    match sound_first(disk, keys, kind, file) {
        Ok(Some(found)) if found != id.first => Err(Error::log(
            path,
            LogFault::OtherSegment,
            format!(
                "expected the segment whose first record is {}, as its name says, found a sound one whose first record is {found}: it is another segment",
                id.first
            ),
        )),
        _ => Ok(()),
    }
}

/// Whether a file of a segment has a sound first record under this key, which therefore is the log's.
pub(super) fn is_key_of(disk: &DiskRef, key: Key, path: &Path, kind: SegmentKind) -> bool {
    let file = FileSource::open_on(disk, path);
    let first = file.and_then(|file| sound_first(disk, &[key], kind, &file));
    matches!(first, Ok(Some(_)))
}

/// The UUID of the first record, if that is sound.
fn sound_first(
    disk: &DiskRef,
    keys: &[Key],
    kind: SegmentKind,
    file: &FileSource,
) -> Result<Option<Uuid>> {
    let options = Options::default()
        .on_disk(disk)
        .keys(keys.to_vec())
        .format(kind.format())
        .values(false);
    let mut walk = format::open(Arc::new(file.again()?), &options, Start::Beginning)?;
    while walk.step()? == Step::More {
        let rows = walk.rows();
        if !rows.is_empty() {
            return Ok(match rows.field(0, 0) {
                Value::Uuid(uuid) => Some(Uuid::from_bytes(uuid)),
                _ => None,
            });
        }
    }
    Ok(None)
}
