//! Putting a damaged file together again, from what was recovered of it and what was put aside.

use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::manifest::{Header, Manifest, Piece, Place, Sum};
use super::places::{default_quarantine, manifest, refuse_same};
use super::sorting::unwritten;
use crate::checksum::{Incremental, Key};
use crate::engine::{Options, each_piece};
use crate::error::{Error, Result};
use crate::output::NewFile;
use crate::source::{FileSource, Source, open_regular};
use crate::text;

/// Says what the file is that is not there, and what to do.
fn without_manifest(error: Error) -> Error {
    match error {
        Error::Io { path, source, .. } if source.kind() == ErrorKind::NotFound => Error::io(
            path.as_deref(),
            "cannot open the manifest that says where each byte is, beside the quarantine: say where that is \
             (--quarantine), if it has another place or name by now",
            source,
        ),
        other => other,
    }
}

/// Writes the file again that `recovered` was made of, bit for bit, and gives its length. `quarantine` is where the rest of its
/// bytes are, beside the recovered file by default; the manifest is beside it. `progress` is told again and again how many
/// bytes have been read and how many there are to read; its error ends the work. Of `options` only
/// [`interrupt`](Options::interrupt) concerns it.
///
/// Both files are held against the manifest before anything is written, and the result before it gets its name.
///
/// # Errors
/// [`Error::Format`] where the manifest is none, or the files are not those that it is about; [`Error::Usage`] where two of the
/// files are the same; [`Error::Io`], also where the destination exists and is not to be overwritten; [`Error::Interrupted`].
pub fn undo_recover(
    recovered: &Arc<dyn Source>,
    quarantine: Option<&Path>,
    destination: &Path,
    overwrite: bool,
    options: &Options,
    mut progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<u64> {
    let quarantine_path = quarantine_of(&**recovered, quarantine)?;
    let manifest_path = manifest(&quarantine_path);
    refuse_same(&[
        ("the recovered file", recovered.path()),
        ("the quarantine", Some(&quarantine_path)),
        ("the manifest", Some(&manifest_path)),
        ("the file to write", Some(destination)),
    ])?;
    let mut new = NewFile::create(destination, overwrite)?;
    let open = |path: &Path| FileSource::new(open_regular(path)?, path);
    let mut lines = Manifest::new(open(&manifest_path).map_err(without_manifest)?);
    let header = lines.header()?;
    let quarantine = open(&quarantine_path)?;
    let (mut done, once) = (0, recovered.len().saturating_add(quarantine.len()));
    let mut tell = |bytes: u64| {
        done += bytes;
        progress(done, once.saturating_mul(2))
    };
    for (what, source, sum) in [
        ("what was recovered", &**recovered, &header.recovered),
        ("its quarantine", &quarantine, &header.quarantine),
    ] {
        if source.len() != sum.bytes || !sum.is_of(source.len(), hash(source, options, &mut tell)?)
        {
            return Err(Error::Format {
                path: source.path().map(Into::into),
                message: format!(
                    "this is not {what}, or not as it was: {} has its length and hash",
                    text::path(&manifest_path)
                ),
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

/// Where the quarantine of a recovered file is.
fn quarantine_of(recovered: &dyn Source, given: Option<&Path>) -> Result<PathBuf> {
    match (given, recovered.path()) {
        (Some(given), _) => Ok(given.to_path_buf()),
        (None, Some(path)) => Ok(default_quarantine(path)),
        (None, None) => Err(Error::Usage(
            "the recovered file has no name that its quarantine's could be made of: say where that is"
                .to_owned(),
        )),
    }
}

/// HighwayHash-64 of a whole source, under the public key. `tell` is told of each piece how many bytes it has.
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

/// The two files that the damaged one is in.
pub(super) struct Parts<'a> {
    pub(super) recovered: &'a dyn Source,
    pub(super) quarantine: &'a dyn Source,
    pub(super) options: &'a Options,
}

impl Parts<'_> {
    /// Gives `take` the bytes of the damaged file, from its first to its last.
    ///
    /// # Errors
    /// [`Error::Format`] where the manifest does not lead to all of them, or not to them; those of `take`.
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
                return Err(
                    lines.refuse("the piece does not follow the one before, or is not in its file")
                );
            };
            at = piece.end;
            each_piece(source, self.options, piece.at()..end, |bytes| {
                hasher.update(bytes);
                take(bytes)
            })?;
        }
        let Sum { bytes, .. } = header.original;
        if at != bytes || !header.original.is_of(at, hasher.finish()) {
            return Err(lines.refuse(&format!(
                "the {at} bytes that it puts together are not the {bytes} of the file that it is about"
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
