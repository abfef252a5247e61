//! Opens files by their parity sidecars.

use std::sync::Arc;

use super::growth::has_first;
use super::{by_name, resolve};
use crate::engine::{Format, Position};
use crate::error::Result;
use crate::sidecar::Check;
use crate::source::Source;
use crate::walk::Options;

/// Opens a file by its parity sidecar. Returns the file as it was covered, and options to read that with. Whatever
/// reads it with them compares it with the sidecar:
///
/// - Bytes that differ from the covered ones and that the sidecar restores are ranges of the kind
///   [`Repaired`](crate::ledger::Kind::Repaired). They have the cause that the format gives for the file as it is, or
///   else [`ChecksumMismatch`](crate::ledger::Cause::ChecksumMismatch).
/// - Records with such bytes are left out, and strict reading stops there. With [`Options::repair`] they are emitted,
///   restored.
/// - What the sidecar cannot restore is `corrupt`, but for records that a checksum of the format proves. In a file
///   without checksums, nothing is emitted after lost bytes if records depend on those before them (oplog), and nothing
///   at all if a header or index is lost.
/// - Of bytes that the sidecar does not cover, or of which it lost what covered them, the format alone decides.
///
/// Open the sidecar before the file: if the file grows and is protected meanwhile, the sidecar would cover more of it
/// than this source has, and the rest would count as missing.
///
/// Each block that is read (4 KiB or less) is verified, each time. A band (16 MiB) is judged as a whole if one of its blocks is
/// damaged, and then the whole file is. It is read twice more: as it is, for the causes, and as it was, for the records. A file that is
/// appended to is read up to its last damage then, if all of that is restored.
///
/// ```
/// use std::sync::Arc;
/// use seglake::{Options, Reader, parity};
/// use seglake::format::{active, with_parity};
/// use seglake::source::BytesSource;
///
/// let mut segment = Vec::new();
/// let uuids = seglake::uuid6::Generator::default();
/// for value in [b"first", b"other", b"third"] {
///     active::encode(&mut segment, &Default::default(), uuids.now().as_bytes(), b"", value)?;
/// }
/// let mut sidecar = Vec::new();
/// let set = parity::Set::random(parity::Parameters::DEFAULT);
/// let covered = segment.len() as u64;
/// parity::protect(&BytesSource::new(&segment), covered, set, &mut |bytes| { sidecar.extend_from_slice(bytes); Ok(()) })?;
///
/// segment[100] ^= 1; // damage
/// let source = Arc::new(BytesSource::new(segment));
/// let options = Options::default().format(&active::FORMAT).strict(false).repair(true);
/// let (source, options) = with_parity(source, Arc::new(BytesSource::new(sidecar)), &options)?;
/// let mut records = Reader::new(source, options)?.records();
/// assert_eq!(records.by_ref().count(), 3);
/// assert_eq!(records.report().repaired, 1);
/// # Ok::<(), seglake::Error>(())
/// ```
///
/// # Errors
/// [`Error::Format`](crate::Error::Format) if the file's format is unknown; [`Error::Io`](crate::Error::Io).
pub fn with_parity(
    file: Arc<dyn Source>,
    sidecar: Arc<dyn Source>,
    options: &Options,
) -> Result<(Arc<dyn Source>, Options)> {
    opened(file, sidecar, options, |source| resolve(source, options))
}

/// The same, to read what a file has [since](super::Growth::since) a position. The format is that of the position if the file as it was
/// covered begins as it did then. What is returned may be longer than was listed: [cap](crate::source::CappedSource) it, not the file.
///
/// Of a file without checksums nothing is read if that may have to be taken back. A walk of a growth then ends with an error, also where
/// it is not strict: at the first record that nothing proves, if the file may grow; at any record, if the sidecar is of another file.
///
/// # Errors
/// As [`with_parity`].
pub fn with_parity_since(
    file: Arc<dyn Source>,
    sidecar: Arc<dyn Source>,
    options: &Options,
    position: Option<&Position>,
) -> Result<(Arc<dyn Source>, Options)> {
    opened(file, sidecar, options, |source| match position {
        Some(position) if options.format.is_none() && has_first(source, position)? => {
            by_name(position.format.name)
        }
        _ => resolve(source, options),
    })
}

fn opened(
    file: Arc<dyn Source>,
    sidecar: Arc<dyn Source>,
    options: &Options,
    resolve: impl Fn(&dyn Source) -> Result<&'static Format>,
) -> Result<(Arc<dyn Source>, Options)> {
    let (source, check) = Check::open(file, sidecar, options, resolve)?;
    let mut options = options.clone().format(check.format());
    options.parity = Some(check);
    Ok((source, options))
}
