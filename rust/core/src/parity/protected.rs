//! A file that is read by its sidecar.

use std::any::Any;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bands::Bands;
use super::ledger::{FileKind, FileSpan};
use super::report::{Refused, Report};
use crate::error::{Error, Result};
use crate::source::{Bound, Source, check_within};

/// A file as its parity sidecar covered it: what differs and is restored has its former bytes, and bytes that are missing and lost
/// are zeros. Whatever is read of it, by a walk, a look-up or in parts, is compared with the sidecar:
///
/// - Bytes that are restored are ranges of the kind [`Repaired`](crate::ledger::Kind::Repaired). Records with such bytes are left out,
///   and strict reading stops there. With [`Options::repair`](crate::Options::repair) they are emitted.
/// - Records and other ranges with lost bytes are left to the checksums of the format. What these do not prove, such as unused space, is
///   `corrupt`. In a file without checksums, no record from the first lost byte on is emitted.
/// - Of bytes that the sidecar does not cover, or of which it lost what covered them, the format alone decides.
///
/// A sidecar of an earlier state of the file speaks against records that were changed on purpose. Reading does not tell them from damage:
/// [`verify`](crate::verbs::verify) and [`repair`](crate::verbs::repair) ask the file's own checksums.
///
/// Open the sidecar before the file: if the file grows and is protected meanwhile, the sidecar would cover more of it than this
/// source has, and the rest would count as missing.
///
/// Each block that is read (4 KiB or less) is verified, each time. A band (16 MiB) is judged as a whole if one of its blocks is
/// damaged; and all bands are, if the file has no checksums.
///
/// ```
/// use std::sync::Arc;
/// use seglake::{Options, Reader, parity};
/// use seglake::format::active;
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
/// let (file, sidecar) = (Arc::new(BytesSource::new(segment)), Arc::new(BytesSource::new(sidecar)));
/// let source = Arc::new(parity::ProtectedSource::open(file, sidecar)?);
/// let options = Options::default().format(&active::FORMAT).strict(false).repair(true);
/// let mut records = Reader::new(source, options)?.records();
/// assert_eq!(records.by_ref().count(), 3);
/// assert_eq!(records.report().repaired, 1);
/// # Ok::<(), seglake::Error>(())
/// ```
#[derive(Clone)]
pub struct ProtectedSource {
    bands: Arc<Bands>,
    len: u64,
}

impl ProtectedSource {
    /// Reads of the file what it takes to tell that it is not another one. A sidecar that is [refused](Self::refused) restores nothing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(file: Arc<dyn Source>, sidecar: Arc<dyn Source>) -> Result<Self> {
        let bands = Arc::new(Bands::open(file, sidecar)?);
        let len = match bands.refused() {
            None => bands.viewed_len(),
            Some(_) => bands.file().len(),
        };
        Ok(Self { bands, len })
    }

    /// The file that a source is, or is a part of, if that is read by its sidecar.
    #[must_use]
    pub fn of(source: &dyn Source) -> Option<Arc<Self>> {
        source.by_sidecar()?.downcast().ok()
    }

    /// The file as it is.
    #[must_use]
    pub fn file(&self) -> &Arc<dyn Source> {
        self.bands.file()
    }

    /// The sidecar, if it has a name.
    #[must_use]
    pub fn sidecar(&self) -> Option<&Path> {
        self.bands.sidecar().path()
    }

    /// Why the sidecar was refused, if it was: as what it is, or as that of another file.
    #[must_use]
    pub fn refused(&self) -> Option<Refused> {
        self.bands.refused()
    }

    /// Refuses a sidecar without any frame: one that was named for a file is expected to have some.
    ///
    /// # Errors
    /// [`Error::Format`].
    pub fn refuse_without_frames(&self) -> Result<()> {
        if self.refused() != Some(Refused::NoFrame) {
            return Ok(());
        }
        Err(Error::Format {
            path: self.sidecar().map(PathBuf::from),
            message: "expected a frame in the sidecar, found none".to_owned(),
            next: Some("it is none, or nothing of it is left: name another with `parity`"),
        })
    }

    /// What the sidecar says of the file and of itself. Reads what was not read yet of both. `poll` is called at intervals, and an error
    /// that it returns ends this.
    ///
    /// # Errors
    /// [`Error::Io`], and those of `poll`.
    pub fn report(&self, poll: impl FnMut() -> Result<()>) -> Result<Report> {
        self.bands.report(poll)
    }

    /// The ranges of the file that are covered, ascending.
    pub(crate) fn covered(&self) -> impl Iterator<Item = Range<u64>> {
        self.bands.covered()
    }

    /// Whether anything that was read or judged so far is damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.bands.is_damaged()
    }

    /// Whether any block of a file is known.
    pub(crate) fn has_blocks(&self) -> bool {
        self.bands.has_blocks() && self.refused().is_none()
    }

    /// Judges a range, and says what of it differs. `poll` is called at intervals.
    ///
    /// # Errors
    /// [`Error::Io`], also if a block was proven before and is not any more, and those of `poll`.
    pub(crate) fn differences(
        &self,
        range: &Range<u64>,
        poll: impl FnMut() -> Result<()>,
    ) -> Result<Differences> {
        self.bands.judge(range.clone(), poll)?;
        let mut differences = Differences::default();
        if self.is_damaged() {
            for found in self.bands.found_in(range) {
                let restored = restored_in(&found.differing, range);
                differences.restored.extend(restored);
                differences.lost.extend(lost_in(found.spans(), range));
            }
            differences.lost.extend(lost_in(self.bands.gaps(), range));
            differences.lost.sort_by_key(|span| span.start);
        }
        Ok(differences)
    }

    /// The first lost byte of the file, if there is one. Judges all of it, once.
    ///
    /// # Errors
    /// As [`report`](Self::report).
    pub(crate) fn first_lost(&self, poll: impl FnMut() -> Result<()>) -> Result<Option<u64>> {
        self.bands.first_lost(poll)
    }

    /// The same, if it was asked for before.
    pub(crate) fn known_first_lost(&self) -> Option<u64> {
        self.bands.known_first_lost()
    }

    /// What differs in all of the file.
    ///
    /// # Errors
    /// As [`report`](Self::report).
    pub(crate) fn all_differences(&self, poll: impl FnMut() -> Result<()>) -> Result<Differences> {
        self.differences(&(0..u64::MAX), poll)
    }
}

/// What of a range of a file is not as it was covered. Ascending.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    /// The bytes that differ, or are missing, and are restored.
    pub(crate) restored: Vec<Range<u64>>,
    /// Those that nothing can verify or restore.
    pub(crate) lost: Vec<FileSpan>,
}

impl Differences {
    pub(crate) const fn is_empty(&self) -> bool {
        self.restored.is_empty() && self.lost.is_empty()
    }
}

fn restored_in(differing: &[Range<u64>], range: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let first = differing.partition_point(|own| own.end <= range.start);
    let differing = differing.iter().skip(first);
    let differing = differing.take_while(|own| own.start < range.end);
    differing.map(|own| own.start.max(range.start)..own.end.min(range.end))
}

fn lost_in(spans: &[FileSpan], range: &Range<u64>) -> impl Iterator<Item = FileSpan> {
    let first = spans.partition_point(|span| span.end <= range.start);
    let spans = spans.iter().skip(first);
    let spans = spans.take_while(|span| span.start < range.end);
    spans
        .filter(|span| span.kind == FileKind::Lost)
        .map(|span| FileSpan {
            start: span.start.max(range.start),
            end: span.end.min(range.end),
            ..*span
        })
}

impl Source for ProtectedSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn path(&self) -> Option<&Path> {
        self.file().path()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        check_within(self, offset, buffer.len())?;
        self.bands.read(offset, buffer)
    }

    fn read_again_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        check_within(self, offset, buffer.len())?;
        self.bands.read_again(offset, buffer)
    }

    fn beside(&self, extension: &str) -> Result<Option<Arc<dyn Source>>> {
        self.file().beside(extension)
    }

    fn is_replaceable(&self) -> bool {
        self.file().is_replaceable() || self.bands.sidecar().is_replaceable()
    }

    fn confirm(&self) -> Result<()> {
        self.file().confirm()?;
        self.bands.sidecar().confirm()
    }

    fn bound(&self) -> Option<Bound> {
        self.file().bound()
    }

    fn by_sidecar(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::new(self.clone()))
    }
}
