//! Undoes a repair: both files are as they were before it.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use super::manifest::{
    Header, Lengths, Manifest, Piece, Place, SUFFIX as MANIFEST_SUFFIX, State, manifest_of,
};
use super::pair::Pair;
use super::{Job, Repairing};
use crate::checksum::{Key, hash};
use crate::disk::DiskRef;
use crate::engine::Options;
use crate::error::{Error, Result};
use crate::output::{InPlace, NewFile, folder};
use crate::saturating::saturating_usize;
use crate::source::{FileSource, Source};
use crate::verbs::paths::{led_to, refuse_same, suffixed};
use crate::verbs::protect::sidecar_of;

/// The suffix of replaced bytes after the name of the file.
const SUFFIX: &str = ".undo";

/// The first name of replaced bytes.
pub(super) fn first_name(job: &Job<'_>) -> PathBuf {
    match &job.repairing.undo {
        Some(undo) => undo.clone(),
        // Whatever name the file had when it was repaired.
        None => suffixed(&led_to(job.disk, job.path), SUFFIX),
    }
}

/// The names of replaced bytes: this one, then with numbers from 2 on.
fn names(first: PathBuf) -> impl Iterator<Item = PathBuf> {
    let others = first.clone();
    let others = (2u64..).map(move |number| suffixed(&others, &format!(".{number}")));
    std::iter::once(first).chain(others)
}

/// Whether there are replaced bytes of this name, or the manifest of some.
fn is_taken(disk: &DiskRef, undo: &Path) -> bool {
    disk.is_taken(undo) || disk.is_taken(&manifest_of(undo))
}

/// What repairs of a file kept beside it, and the manifests.
pub(crate) fn kept_of(disk: &DiskRef, file: &Path) -> impl Iterator<Item = PathBuf> {
    let taken = names(suffixed(file, SUFFIX)).take_while(|undo| is_taken(disk, undo));
    taken.flat_map(|undo| [manifest_of(&undo), undo])
}

/// The name of a file, if this is a name of what repairs of it kept, or of a manifest.
pub(crate) fn repaired_name(name: &str) -> Option<&str> {
    let bytes = match name.strip_suffix(MANIFEST_SUFFIX) {
        Some(bytes) => bytes,
        None => name,
    };
    let (file, number) = bytes.rsplit_once(SUFFIX)?;
    let is_number = |own: &str| !own.is_empty() && own.bytes().all(|own| own.is_ascii_digit());
    (number.is_empty() || number.strip_prefix('.').is_some_and(is_number)).then_some(file)
}

/// The first name that is free.
pub(super) fn next(job: &Job<'_>) -> Option<PathBuf> {
    names(first_name(job)).find(|undo| !is_taken(job.disk, undo))
}

/// The replaced bytes of the latest repair.
pub(super) fn latest(job: &Job<'_>) -> Option<PathBuf> {
    let taken = names(first_name(job)).take_while(|undo| is_taken(job.disk, undo));
    // Without a manifest they are what a loss of power left.
    taken
        .filter(|undo| job.disk.is_taken(&manifest_of(undo)))
        .last()
}

/// The result of undoing a repair.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Undone {
    /// The file.
    pub path: PathBuf,
    /// Its sidecar.
    pub sidecar: PathBuf,
    /// The length of the file in bytes.
    pub nbytes: u64,
    /// Whether both files were as before the repair already: it was undone, and interrupted before the replaced bytes were removed.
    pub already_undone: bool,
}

/// Undoes the latest repair of a file, and of its sidecar: both are as they were before. If that repair completed one
/// that was interrupted, that one is undone, too. The replaced bytes are removed. Of
/// `repairing`, only [`sidecar`](Repairing::sidecar) and [`undo`](Repairing::undo) are used.
///
/// Before anything is written, all replaced bytes are checked, and so is that the repaired bytes are still there.
/// Undoing that is interrupted is run again, and comes to the same end: also where only removing the replaced bytes was interrupted.
///
/// # Errors
/// - [`Error::Format`] if the manifest is none, if the replaced bytes are damaged, or if one of the files changed after
///   the repair.
/// - [`Error::Io`]; also if there is nothing to undo, or if another writer has one of the files open.
pub fn undo_repair(path: &Path, options: &Options, repairing: &Repairing) -> Result<Undone> {
    let sidecar = sidecar_of(options.on(), path, repairing.sidecar.as_deref());
    refuse_same(
        options.on(),
        &[("the file", Some(path)), ("its sidecar", Some(&sidecar))],
    )?;
    let job = Job::new(path, &sidecar, options, repairing);
    let nothing = || {
        let error = std::io::Error::new(
            ErrorKind::NotFound,
            "there is no such file with a manifest. If the replaced bytes are elsewhere, name them with `undo`",
        );
        let action = "there is no repair of it to undo: expected the replaced bytes in";
        let action = format!("{action} {}", crate::text::path(&first_name(&job)));
        Error::io(Some(path), action, error)
    };
    let mut undo = latest(&job).ok_or_else(nothing)?;
    let (mut is_first, mut already_undone) = (true, true);
    loop {
        let pair = Pair::open(&job)?;
        let manifest = Manifest::read(job.disk, &undo)?;
        // Where removing the replaced bytes was interrupted, that is left to do.
        if manifest.state != State::Undone {
            let undoing = Undoing {
                job: &job,
                bytes: FileSource::open(job.disk, &undo)?,
                manifest: &manifest,
                pair: &pair,
            };
            undoing.refuse_grown(&undo)?;
            already_undone = false;
            // A repair that another one completed was interrupted: any bytes may be there.
            undoing.undo(is_first && manifest.state == State::Repaired)?;
            manifest.mark(job.disk, State::Undone)?;
        }
        job.remove(&undo)?;
        let before = manifest
            .header
            .continues
            .map(|name| folder(&undo).join(name));
        match before.filter(|before| job.disk.is_taken(&manifest_of(before))) {
            Some(before) => undo = before,
            None => {
                return Ok(Undone {
                    path: path.to_path_buf(),
                    nbytes: pair.file.len()?,
                    already_undone,
                    sidecar,
                });
            }
        }
        is_first = false;
    }
}

impl Job<'_> {
    /// Removes replaced bytes of a repair that is undone. Their manifest goes last: it says that, wherever this is interrupted.
    fn remove(&self, undo: &Path) -> Result<()> {
        let failed = |error| {
            Error::io(
                Some(undo),
                "undone, but cannot remove the replaced bytes",
                error,
            )
        };
        match self.disk.unlink(undo) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            done => done.map_err(failed)?,
        }
        self.disk.sync_folder(folder(undo)).map_err(failed)?;
        self.disk.unlink(&manifest_of(undo)).map_err(failed)
    }
}

struct Undoing<'a> {
    job: &'a Job<'a>,
    bytes: FileSource,
    manifest: &'a Manifest,
    pair: &'a Pair,
}

impl Undoing<'_> {
    fn undo(&self, is_complete: bool) -> Result<()> {
        let Header { file, sidecar, .. } = &self.manifest.header;
        self.check_kept()?;
        if is_complete {
            self.check_repaired(Place::File, file)?;
            self.check_repaired(Place::Sidecar, sidecar)?;
        }
        self.manifest.mark(self.job.disk, State::Undoing)?;
        if self.manifest.header.sidecar_anew {
            self.write_sidecar()?;
        } else {
            self.restore(Place::Sidecar, sidecar)?;
        }
        self.restore(Place::File, file)
    }

    /// Refuses to cut off what was appended since, by any of the repairs to undo: of one that was interrupted, nothing else
    /// is compared with the files.
    fn refuse_grown(&self, undo: &Path) -> Result<()> {
        let mut headers = vec![self.manifest.header.clone()];
        let mut names = vec![undo.to_path_buf()];
        while let Some(name) = headers.last().and_then(|last| last.continues.clone()) {
            let before = folder(undo).join(name);
            if names.contains(&before) {
                let path = Some(self.manifest.path());
                return Err(self.refuse(path, "the repair before it is this one".to_owned()));
            }
            headers.push(Manifest::read(self.job.disk, &before)?.header);
            names.push(before);
        }
        for place in [Place::File, Place::Sidecar] {
            let (mut is_changed, mut most) = (false, 0);
            for header in &headers {
                let lengths = header.lengths(place);
                let (before, after) = (lengths.nbytes_before, lengths.nbytes_after);
                is_changed |= before != after || place == Place::Sidecar && header.sidecar_anew;
                most = before.max(after).max(most);
            }
            let source = self.file(place).source()?;
            if is_changed && source.len() > most {
                return Err(self.changed(&source));
            }
        }
        Ok(())
    }

    fn file(&self, place: Place) -> &InPlace {
        match place {
            Place::File => &self.pair.file,
            Place::Sidecar => &self.pair.sidecar,
        }
    }

    fn pieces(&self, place: Place) -> impl Iterator<Item = &Piece> {
        let pieces = self.manifest.pieces.iter();
        pieces.filter(move |piece| piece.place == place)
    }

    /// The old bytes of a range.
    fn old(&self, piece: &Piece) -> Result<Vec<u8>> {
        let is_there = piece
            .at
            .checked_add(piece.nbytes)
            .is_some_and(|end| end <= self.bytes.len());
        let mut old = vec![
            0;
            if is_there {
                saturating_usize(piece.nbytes)
            } else {
                0
            }
        ];
        self.bytes
            .read_exact_at(piece.at.min(self.bytes.len()), &mut old)?;
        if is_there && piece.has_old(hash(&Key::DEFAULT, &old)) {
            return Ok(old);
        }
        Err(self.refuse(
            self.bytes.path(),
            format!("the replaced bytes at offset {} are damaged", piece.at),
        ))
    }

    fn check_kept(&self) -> Result<()> {
        let mut pieces = self.manifest.pieces.iter();
        pieces.try_for_each(|piece| self.old(piece).map(drop))
    }

    /// Checks that a file is as the repair left it.
    fn check_repaired(&self, place: Place, lengths: &Lengths) -> Result<()> {
        let source = self.file(place).source()?;
        let anew = place == Place::Sidecar && self.manifest.header.sidecar_anew;
        // What is appended to after a repair that changed no length stays.
        let is_fixed = anew || lengths.nbytes_before != lengths.nbytes_after;
        let is_long = if is_fixed {
            source.len() == lengths.nbytes_after
        } else {
            source.len() >= lengths.nbytes_after
        };
        if !is_long {
            return Err(self.changed(&source));
        }
        if anew {
            return Ok(());
        }
        for piece in self.pieces(place) {
            if piece.start >= lengths.nbytes_after {
                continue; // it was cut off
            }
            let mut own = vec![0; saturating_usize(piece.end.min(source.len()) - piece.start)];
            source.read_exact_at(piece.start, &mut own)?;
            if !piece.has_new(hash(&Key::DEFAULT, &own)) {
                return Err(self.changed(&source));
            }
        }
        Ok(())
    }

    fn changed(&self, source: &FileSource) -> Error {
        self.refuse(
            source.path(),
            "it changed after it was repaired: undoing would change other bytes than the repair did".to_owned(),
        )
    }

    fn refuse(&self, path: Option<&Path>, message: String) -> Error {
        Error::Format {
            path: path.map(Into::into),
            message,
            next: None,
        }
    }

    fn restore(&self, place: Place, lengths: &Lengths) -> Result<()> {
        let is_same = lengths.nbytes_before == lengths.nbytes_after;
        if is_same && self.pieces(place).next().is_none() {
            return Ok(());
        }
        let file = self.file(place);
        for piece in self.pieces(place).filter(|piece| piece.nbytes > 0) {
            file.write(&self.old(piece)?, piece.start)?;
        }
        if lengths.nbytes_after > lengths.nbytes_before && file.len()? > lengths.nbytes_before {
            file.set_len(lengths.nbytes_before)?;
        }
        if let (Place::File, Some(modified)) = (place, self.manifest.header.modified()) {
            file.set_modified(modified)?;
        }
        file.sync()
    }

    fn write_sidecar(&self) -> Result<()> {
        let path = self.pair.sidecar.path();
        let failed = |error| Error::io(Some(path), "cannot write the old sidecar", error);
        let mut new = NewFile::create_like(self.job.disk, path, true, self.job.path)?;
        for piece in self.pieces(Place::Sidecar) {
            let old = self.old(piece)?;
            new.file().write_all(&old).map_err(failed)?;
        }
        new.commit()
    }
}
