//! Builds or rebuilds the index of a chunked segment.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use super::Report;
use super::paths::refuse_source;
use crate::engine::IfExists;
use crate::error::{Error, Result};
use crate::format::chunked::{FORMAT, ITEM_BYTES, beside, beyond, build_index};
use crate::output::NewFile;
use crate::source::{FileSource, Source};
use crate::text;
use crate::walk::Options;

/// The result of building an index.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Indexed {
    /// How many items it has: one for each sound chunk with records.
    pub items: u64,
    /// The index's length, in bytes.
    pub size: u64,
    /// The report on the segment.
    pub report: Report,
}

/// Writes the index of a chunked segment's sound chunks, equal to what its writer would have written. It goes to
/// `destination`, or beside the segment with the extension `index`. It appears there only when it is complete. `progress` is
/// called at intervals with how many bytes of the segment are done. An error that it returns ends the work.
///
/// # Errors
/// - [`Error::Usage`] if there is no destination and the segment has no usable name; if it is the segment itself, or an index that
///   knows [more](crate::format::chunked::Index::beyond) than the segment has.
/// - [`Error::Io`]; also if the file exists and is not to be replaced.
/// - [`Error::Limit`], [`Error::Interrupted`].
///
/// Damage of the segment is not an error: it is in the report.
pub fn index(
    source: Arc<dyn Source>,
    options: &Options,
    destination: Option<&Path>,
    if_exists: IfExists,
    mut progress: impl FnMut(u64) -> Result<()>,
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
    refuse_source(options.on(), &*source, Some(&destination))?;
    keep_what_is_missing(&*source, options, &destination)?;
    let mut file = NewFile::create(options.on(), &destination, if_exists.replaces()?)?;
    let failed = |error| Error::io(Some(&destination), "cannot write the new index", error);
    let mut out = BufWriter::new(file.file());
    let mut items = 0;
    let found = build_index(source, options, |item| {
        items += 1;
        out.write_all(&item.encode()).map_err(failed)?;
        progress(item.file_offset.unsigned_abs())
    })?;
    progress(found.bytes)?;
    out.flush().map_err(failed)?;
    drop(out);
    file.commit()?;
    Ok(Indexed {
        items,
        size: items * ITEM_BYTES as u64,
        report: Report::from_summary(&FORMAT, found),
    })
}

/// Refuses to replace an index that knows of chunks after the end of the segment: nothing else tells what is missing.
fn keep_what_is_missing(source: &dyn Source, options: &Options, index: &Path) -> Result<()> {
    let existing = match FileSource::open_on(options.on(), index) {
        Ok(existing) => existing,
        Err(error) if error.is_not_found() => return Ok(()),
        // It may be the one that knows more.
        Err(error) => return Err(error),
    };
    let Some(beyond) = beyond(source, &existing, options)? else {
        return Ok(());
    };
    Err(Error::Usage(format!(
        "{}: expected an index of what the log has, found one with a chunk at {}, and the log ends before that. It alone lists what \
         is missing: copy the log again, or move the index away",
        text::path(index),
        beyond.file_offset
    )))
}
