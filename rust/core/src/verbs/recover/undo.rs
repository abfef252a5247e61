//! Restores a damaged file from the recovered file and the quarantine.

use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::manifest::{Header, Id, Manifest, Piece, Place};
use super::sorting::unwritten;
use super::{default_quarantine, manifest_of};
use crate::checksum::{Incremental, Key};
use crate::engine::{IfExists, each_piece};
use crate::error::{Error, Result};
use crate::output::NewFile;
use crate::source::{FileSource, Source};
use crate::text;
use crate::verbs::paths::refuse_same;
use crate::walk::Options;

/// Explains a missing manifest, and what to do.
fn without_manifest(error: Error) -> Error {
    match error {
        Error::Io { path, source, .. } if source.kind() == ErrorKind::NotFound => Error::io(
            path.as_deref(),
            "cannot open the manifest that says where each byte is, beside the quarantine: say where the quarantine is \
             (--quarantine), if its place or name has changed",
            source,
        ),
        other => other,
    }
}

/// Restores the file that `recovered` was made of, bit for bit. Returns its length. `quarantine` has the rest of its
/// bytes and is beside the recovered file by default; the manifest is beside it. `progress` is called at intervals with
/// how many bytes were read and how many there are to read. An error that it returns ends the work. Of `options` only
/// [`interrupt`](Options::interrupt) is used.
///
/// Both files are checked against the manifest before anything is written, and the result before it appears under its
/// name.
///
/// # Errors
/// - [`Error::Format`] if the manifest is not one, or if the files are not those that it names.
/// - [`Error::Usage`] if two of the files are the same.
/// - [`Error::Io`]; also if the destination exists and is not to be replaced.
/// - [`Error::Interrupted`].
pub fn undo_recover(
    recovered: &Arc<dyn Source>,
    quarantine: Option<&Path>,
    destination: impl AsRef<Path>,
    if_exists: IfExists,
    options: &Options,
    mut progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<u64> {
    let destination = destination.as_ref();
    let quarantine_path = quarantine_of(&**recovered, quarantine)?;
    let manifest_path = manifest_of(&quarantine_path);
    let files = [
        ("the recovered file", recovered.path()),
        ("the quarantine", Some(&*quarantine_path)),
        ("the manifest", Some(&*manifest_path)),
        ("the file to write", Some(destination)),
    ];
    refuse_same(options.on(), &files)?;
    let mut new = NewFile::create(options.on(), destination, if_exists.replaces()?)?;
    let open = |path: &Path| FileSource::open_on(options.on(), path);
    let mut lines = Manifest::new(open(&manifest_path).map_err(without_manifest)?);
    let header = lines.header()?;
    let quarantine = open(&quarantine_path)?;
    let (mut done, once) = (0, recovered.len().saturating_add(quarantine.len()));
    let mut tell = |bytes: u64| {
        done += bytes;
        progress(done, once.saturating_mul(2))
    };
    for (what, source, sum) in [
        ("the recovered file", &**recovered, &header.recovered),
        ("its quarantine", &quarantine, &header.quarantine),
    ] {
        if source.len() != sum.bytes || !sum.is_of(source.len(), hash(source, options, &mut tell)?)
        {
            return Err(Error::Format {
                path: source.path().map(Into::into),
                message: format!(
                    "this is not {what}, or it has changed: {} has its length and hash",
                    text::path(&manifest_path)
                ),
                next: None,
            });
        }
    }
    let parts = Parts {
        recovered: &**recovered,
        quarantine: &quarantine,
        options,
    };
    let mut out = BufWriter::new(new.file());
    parts.join(&mut lines, &header, |bytes| {
        let written = out.write_all(bytes);
        written.map_err(|error| unwritten(destination, error))?;
        tell(bytes.len() as u64)
    })?;
    let flushed = out.flush();
    flushed.map_err(|error| unwritten(destination, error))?;
    drop(out);
    new.commit()?;
    Ok(header.original.bytes)
}

/// The path of a recovered file's quarantine.
fn quarantine_of(recovered: &dyn Source, given: Option<&Path>) -> Result<PathBuf> {
    match (given, recovered.path()) {
        (Some(given), _) => Ok(given.to_path_buf()),
        (None, Some(path)) => Ok(default_quarantine(path)),
        (None, None) => Err(Error::Usage(
            "the recovered file has no name from which to make its quarantine's: name the quarantine"
                .to_owned(),
        )),
    }
}

/// HighwayHash-64 of a whole source, under the public key. `tell` is called for each piece with its length.
pub(super) fn hash(
    source: &dyn Source,
    options: &Options,
    mut tell: impl FnMut(u64) -> Result<()>,
) -> Result<u64> {
    let mut hasher = Incremental::new(&Key::DEFAULT);
    each_piece(source, options, 0..source.len(), |bytes| {
        hasher.update(bytes);
        tell(bytes.len() as u64)
    })?;
    Ok(hasher.finish())
}

/// The two files with the bytes of the damaged one.
pub(super) struct Parts<'a> {
    pub(super) recovered: &'a dyn Source,
    pub(super) quarantine: &'a dyn Source,
    pub(super) options: &'a Options,
}

impl Parts<'_> {
    /// Calls `take` with the bytes of the damaged file, from its first to its last.
    ///
    /// # Errors
    /// [`Error::Format`] if the manifest does not describe all of them, or describes others; those of `take`.
    pub(super) fn join(
        &self,
        lines: &mut Manifest,
        header: &Header,
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let (mut at, mut hasher) = (0, Incremental::new(&Key::DEFAULT));
        while let Some(piece) = lines.piece()? {
            let source = self.source_of(&piece);
            let end = piece.at().checked_add(piece.len());
            let is_next = piece.start == at && piece.end > at;
            let Some(end) = end.filter(|end| is_next && *end <= source.len()) else {
                return Err(lines.refuse(
                    "the piece does not continue the previous one, or is not within its file",
                ));
            };
            at = piece.end;
            each_piece(source, self.options, piece.at()..end, |bytes| {
                hasher.update(bytes);
                take(bytes)
            })?;
        }
        let Id { bytes, .. } = header.original;
        if at != bytes || !header.original.is_of(at, hasher.finish()) {
            return Err(lines.refuse(&format!(
                "the {at} bytes of its pieces are not the {bytes} of the file that it describes"
            )));
        }
        Ok(())
    }

    fn source_of(&self, piece: &Piece) -> &dyn Source {
        match piece.place {
            Place::Recovered { .. } => self.recovered,
            Place::Quarantine { .. } => self.quarantine,
        }
    }
}
