//! Building and rebuilding the index of a chunked segment.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use super::Report;
use crate::engine::Options;
use crate::error::{Error, Result};
use crate::format::chunked::{FORMAT, ITEM_BYTES, beside, build_index};
use crate::output::NewFile;
use crate::source::Source;

/// What an index was built of.
#[derive(Clone, Debug)]
pub struct Indexed {
    /// How many items it has: one for each good chunk that has records.
    pub items: u64,
    /// The index's length, in bytes.
    pub size: u64,
    /// What was found in the segment.
    pub report: Report,
}

/// Writes the index that a chunked segment's good chunks give, as its writer would have: to `destination`, or beside the
/// segment, with the extension `index`. It appears there when it is complete, and not at all otherwise.
///
/// # Errors
/// [`Error::Usage`] where there is neither a destination nor a name to make one of; [`Error::Io`], also where the file exists
/// and is not to be overwritten; [`Error::Limit`]; [`Error::Interrupted`]. Damage of the segment is in the report.
pub fn index(
    source: Arc<dyn Source>,
    options: &Options,
    destination: Option<&Path>,
    overwrite: bool,
) -> Result<Indexed> {
    let destination = match destination {
        Some(destination) => destination.to_path_buf(),
        None => source.path().and_then(beside).ok_or_else(|| {
            Error::Usage(
                "the segment has no name that an index's could be made of: say where to write it"
                    .to_owned(),
            )
        })?,
    };
    let mut file = NewFile::create(&destination, overwrite)?;
    let failed = |error| Error::io(Some(&destination), "cannot write the new index", error);
    let mut out = BufWriter::new(file.file());
    let mut items = 0;
    let found = build_index(source, options, |item| {
        items += 1;
        out.write_all(&item.encode()).map_err(failed)
    })?;
    out.flush().map_err(failed)?;
    drop(out);
    file.commit()?;
    Ok(Indexed {
        items,
        size: items * ITEM_BYTES as u64,
        report: Report::from_summary(&FORMAT, found),
    })
}
