//! Builds or rebuilds the index of a chunked segment.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use super::Report;
use crate::engine::Options;
use crate::error::{Error, Result};
use crate::format::chunked::{FORMAT, ITEM_BYTES, beside, build_index};
use crate::output::NewFile;
use crate::source::Source;

/// The result of building an index.
#[derive(Clone, Debug)]
pub struct Indexed {
    /// How many items it has: one for each sound chunk with records.
    pub items: u64,
    /// The index's length, in bytes.
    pub size: u64,
    /// The report on the segment.
    pub report: Report,
}

/// Writes the index of a chunked segment's sound chunks, equal to what its writer would have written. It goes to
/// `destination`, or beside the segment with the extension `index`. It appears there only when it is complete.
///
/// # Errors
/// - [`Error::Usage`] if there is no destination and the segment has no usable name.
/// - [`Error::Io`]; also if the file exists and `overwrite` is not set.
/// - [`Error::Limit`], [`Error::Interrupted`].
///
/// Damage of the segment is not an error: it is in the report.
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
                "the segment has no name from which to make the index's: give a destination"
                    .to_owned(),
            )
        })?,
    };
    let mut file = NewFile::create(options.on(), &destination, overwrite)?;
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
