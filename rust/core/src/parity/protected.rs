//! A file that is read by its sidecar. Each block is proven whenever it is read. A band with a block that is not proven so is judged
//! as a whole.

use std::any::Any;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use super::band::JudgedBand;
use super::bytes::{Files, PIECE_BYTES};
use super::checks::{Checks, KeptBlocks, Proven};
use super::frames::{Frame, Frames};
use super::judge::Judged;
use super::layout::{Geometry, Set};
use super::ledger::{
    Blocks, Cause, Content, FileKind, FileSpan, SidecarRange, SidecarSpan, WorstGroup,
};
use super::report::{Inspection, NAME_ANOTHER, Options, Refused, Report, no_frame};
use crate::bug::OrBug;
use crate::error::{Error, Result};
use crate::ledger::{self, Kind, Span, overlapping};
use crate::saturating::saturating_usize;
use crate::source::{Bound, Source, check_within};
use crate::sync::{Mutex, MutexGuard, Unpoisoned as _};

/// Of how many bands the hashes and repaired blocks are kept, whatever their size. Walks read in up to three places of a file at
/// once. Those of other bands are read or computed again.
const KEPT_BANDS: usize = 4;
/// Those of more bands are kept if they take no more than this.
const KEPT_BYTES: usize = 1 << 20;
/// A whole sidecar covers less than this many times its own bytes: a group has at most 255 data blocks for each parity block.
const MOST_COVERED: u64 = 256;

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
/// use seglake::{OnDamage, Options, Reader, parity};
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
/// let source = parity::ProtectedSource::open(file, sidecar)?;
/// let options = Options::default().format(&active::FORMAT).on_damage(OnDamage::Repair);
/// let mut records = Reader::new(source, options)?.records();
/// assert_eq!(records.by_ref().count(), 3);
/// assert_eq!(records.report().summary.repaired, 1);
/// # Ok::<(), seglake::Error>(())
/// ```
pub struct ProtectedSource {
    /// Itself, for sources that are parts of it.
    this: Weak<Self>,
    file: Arc<dyn Source>,
    sidecar: Arc<dyn Source>,
    frames: Arc<Frames>,
    ranges: Arc<[SidecarRange]>,
    refused: Option<Refused>,
    /// How far the file is read.
    len: u64,
    /// The ranges of the file that are in no block of a current frame.
    gaps: Vec<FileSpan>,
    /// The bands, ascending.
    places: Vec<Band>,
    /// Whether anything that was judged so far is damaged.
    is_damaged: AtomicBool,
    /// The first lost byte of the file, once all of it was judged.
    first_lost: OnceLock<Option<u64>>,
    state: Mutex<KnownBands>,
    blocks: KeptBlocks,
}

/// A band that has a current frame.
struct Band {
    start: u64,
    end: u64,
    /// The number of its frame among the ranges of the sidecar.
    range: usize,
    set: Set,
    frame: Frame,
    geometry: Geometry,
}

impl Band {
    /// The blocks that bytes of a range of the file are in.
    fn blocks(&self, range: &Range<u64>) -> Range<usize> {
        let within = |at: u64| saturating_usize(at.clamp(self.start, self.end) - self.start);
        let bytes = self.geometry.block_bytes;
        within(range.start) / bytes..within(range.end).div_ceil(bytes)
    }

    /// The bytes of the file that blocks have.
    fn bytes(&self, blocks: &Range<usize>) -> Range<u64> {
        let at = |block: usize| self.start + self.geometry.block(block).start as u64;
        at(blocks.start)..at(blocks.end).min(self.end)
    }
}

struct KnownBands {
    /// What is known of each band.
    known: Vec<BandState>,
    recent: VecDeque<(usize, Arc<Checks>)>,
}

/// What was verified of a band.
enum BandState {
    /// These blocks were proven.
    Blocks(Proven),
    /// All blocks were proven, or the band was judged.
    Band(Arc<BandVerdict>),
}

impl Default for BandState {
    fn default() -> Self {
        Self::Blocks(Proven::default())
    }
}

/// What is known of a band that was judged, or all of whose blocks were proven.
#[derive(Debug)]
struct BandVerdict {
    blocks: Blocks,
    /// Where bytes of repaired blocks differ from the file's, or are missing there. Ascending, and they do not touch.
    differing: Vec<Range<u64>>,
    /// Whether its frame proves all blocks.
    is_proven: bool,
    /// What its frame is, and the worst of its groups, once it was asked for.
    frame: OnceLock<(SidecarSpan, Option<WorstGroup>)>,
}

impl BandVerdict {
    /// A band whose blocks are all proven by its frame.
    fn proven(place: &Band) -> Self {
        Self {
            blocks: Blocks::sound(place.start, place.end),
            differing: Vec::new(),
            is_proven: true,
            frame: OnceLock::new(),
        }
    }

    /// The offset of the first block that was proven or restored before, and no longer is.
    fn first_lost_since(&self, before: &Self) -> Option<u64> {
        let is_lost = |span: &&FileSpan| span.kind == FileKind::Lost;
        let before: Vec<_> = before.spans().iter().filter(is_lost).collect();
        let mut lost = self.spans().iter().filter(is_lost);
        lost.find_map(|span| {
            let at = span.start..span.start + 1;
            let same = overlapping(&before, |span| span.start..span.end, &at).first();
            let known = same.map_or(span.start, |same| same.end);
            (known < span.end).then_some(known)
        })
    }

    /// Whether all blocks that bytes of a range are in are sound.
    fn is_sound(&self, range: &Range<u64>) -> bool {
        let within = overlapping(self.spans(), |span| span.start..span.end, range);
        within.iter().all(|span| span.kind == FileKind::Sound)
    }

    /// All ranges of its blocks.
    fn spans(&self) -> &[FileSpan] {
        &self.blocks.spans
    }
}

impl ProtectedSource {
    /// Reads of the file what it takes to tell that it is not another one. A sidecar that is [refused](Self::refused) restores nothing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(file: Arc<dyn Source>, sidecar: Arc<dyn Source>) -> Result<Arc<Self>> {
        let files = Files::new(&*file, &*sidecar);
        let inspection = Inspection::new(&files, Options::default())?;
        let gaps = inspection.gaps();
        let Inspection {
            frames,
            ranges,
            refused,
            ..
        } = inspection;
        let mut places = Vec::new();
        for (range, sidecar_range) in ranges.iter().enumerate() {
            if let (Content::Frame(frame), Some(set)) = (sidecar_range.content, frames.set)
                && frame.is_current
            {
                let start = set.band_start(frame.band);
                let end = start + u64::from(frame.len);
                places.push(Band {
                    start,
                    end,
                    range,
                    set,
                    frame,
                    geometry: frame.geometry(&set),
                });
            }
        }
        places.sort_by_key(|place| place.start);
        let is_lost = |span: &FileSpan| span.kind == FileKind::Lost;
        Ok(Arc::new_cyclic(|this| Self {
            this: this.clone(),
            len: match refused {
                None => viewed_len(&files, &frames),
                Some(_) => file.len(),
            },
            is_damaged: AtomicBool::new(gaps.iter().any(is_lost)),
            gaps,
            first_lost: OnceLock::new(),
            state: Mutex::new(KnownBands {
                known: places.iter().map(|_| BandState::default()).collect(),
                recent: VecDeque::new(),
            }),
            blocks: KeptBlocks::default(),
            places,
            frames,
            ranges,
            refused,
            file: file.clone(),
            sidecar: sidecar.clone(),
        }))
    }

    /// The file that a source is, or is a part of, if that is read by its sidecar.
    #[must_use]
    #[doc(hidden)]
    pub fn of(source: &dyn Source) -> Option<Arc<Self>> {
        source.by_sidecar()?.downcast().ok()
    }

    /// The file as it is.
    #[must_use]
    #[doc(hidden)]
    pub const fn file(&self) -> &Arc<dyn Source> {
        &self.file
    }

    /// The sidecar, if it has a name.
    #[must_use]
    #[doc(hidden)]
    pub fn sidecar(&self) -> Option<&Path> {
        self.sidecar.path()
    }

    /// Why the sidecar was refused, if it was: as what it is, or as that of another file.
    #[must_use]
    #[doc(hidden)]
    pub const fn refused(&self) -> Option<Refused> {
        self.refused
    }

    /// Refuses a sidecar without any frame: one that was named for a file is expected to have some.
    ///
    /// # Errors
    /// [`Error::Format`].
    #[doc(hidden)]
    pub fn refuse_without_frames(&self) -> Result<()> {
        match self.refused {
            Some(Refused::NoFrame) => Err(no_frame(self.sidecar(), NAME_ANOTHER)),
            _ => Ok(()),
        }
    }

    /// Whether any block of a file is known.
    pub(crate) fn has_blocks(&self) -> bool {
        !self.places.is_empty() && self.refused.is_none()
    }

    /// Whether anything that was read or judged so far is damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Acquire)
    }

    /// The ranges of the file that are covered, ascending.
    pub(crate) fn covered(&self) -> impl Iterator<Item = Range<u64>> {
        self.places.iter().map(|place| place.start..place.end)
    }

    /// Judges a range, and says what of it differs. `poll` is called at intervals.
    ///
    /// # Errors
    /// [`Error::Io`], also if a block was proven before and is not any more, and those of `poll`.
    pub(crate) fn differences(
        &self,
        range: &Range<u64>,
        mut poll: impl FnMut() -> Result<()>,
    ) -> Result<Differences> {
        self.places_of(range)
            .try_for_each(|place| self.judge_range(place, range, &mut poll))?;
        let mut differences = Differences::default();
        if self.is_damaged() {
            for found in self.found_in(range) {
                let restored = overlapping(&found.differing, Range::clone, range);
                let restored = restored.iter().map(|bytes| Span {
                    start: bytes.start.max(range.start),
                    end: bytes.end.min(range.end),
                    kind: Kind::Repaired,
                    cause: Some(ledger::Cause::ChecksumMismatch),
                });
                differences.restored.extend(restored);
                differences.lost.extend(lost_in(found.spans(), range));
            }
            differences.lost.extend(lost_in(&self.gaps, range));
            differences.lost.sort_by_key(|span| span.start);
        }
        Ok(differences)
    }

    /// What is known of each band, in order. `poll` is called at intervals.
    ///
    /// # Errors
    /// As [`differences`](Self::differences).
    fn all(&self, mut poll: impl FnMut() -> Result<()>) -> Result<Vec<Arc<BandVerdict>>> {
        let all = self.places.iter().enumerate().map(|(place, band)| {
            self.judge_range(place, &(band.start..band.end), &mut poll)?;
            self.found(place).or_bug("a band that was judged")
        });
        all.collect()
    }

    /// The first lost byte of the file, if there is one. Judges all of it, once.
    ///
    /// # Errors
    /// As [`differences`](Self::differences).
    pub(crate) fn first_lost(&self, poll: impl FnMut() -> Result<()>) -> Result<Option<u64>> {
        if let Some(first) = self.first_lost.get() {
            return Ok(*first);
        }
        let all = self.all(poll)?;
        let spans = all.iter().flat_map(|found| found.spans());
        let lost = spans.chain(&self.gaps);
        let lost = lost.filter(|span| span.kind == FileKind::Lost);
        let first = lost.map(|span| span.start).min();
        Ok(*self.first_lost.get_or_init(|| first))
    }

    /// The same, if it was asked for before.
    pub(crate) fn known_first_lost(&self) -> Option<u64> {
        self.first_lost.get().copied().flatten()
    }

    /// Reads the file as it was covered: with its repaired blocks in their places, and zeros after its end. Bytes of bands are read by
    /// a function that gets the number of the band.
    ///
    /// # Errors
    /// [`Error::Io`], also if a block was proven before and is not any more.
    fn read_by(
        &self,
        offset: u64,
        buffer: &mut [u8],
        read_place: impl Fn(&Self, usize, u64, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        check_within(self, offset, buffer.len())?;
        let (mut at, mut left) = (offset, buffer);
        while !left.is_empty() {
            let place = self.places.partition_point(|band| band.end <= at);
            let (end, is_covered) = match self.places.get(place) {
                Some(band) if band.start <= at => (band.end, true),
                Some(next) => (next.start, false),
                None => (u64::MAX, false),
            };
            let len = saturating_usize(end - at).min(left.len());
            let (part, rest) = left.split_at_mut(len);
            if is_covered {
                read_place(self, place, at, part)?;
            } else {
                self.read_as_it_is(at, part)?;
            }
            (at, left) = (at + len as u64, rest);
        }
        Ok(())
    }

    /// Reads the file as it is, and zeros after its end.
    fn read_as_it_is(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.files().read_file(offset, buffer)
    }

    /// What the sidecar says of the file and of itself. Reads what was not read yet of both. `poll` is called at intervals, and an error
    /// that it returns ends this.
    ///
    /// # Errors
    /// [`Error::Io`], and those of `poll`.
    #[doc(hidden)]
    pub fn report(&self, mut poll: impl FnMut() -> Result<()>) -> Result<Report> {
        let all = self.all(&mut poll)?;
        let mut blocks = Blocks::default();
        let ranges = self.ranges.iter().map(|range| (range.span(None), None));
        let mut ranges: Vec<_> = ranges.collect();
        for (place, found) in self.places.iter().zip(&all) {
            poll()?;
            blocks.add(&found.blocks);
            let range = ranges.get_mut(place.range);
            *range.or_bug("the range of a frame")? = self.frame_of(place, found)?;
        }
        // In the order of the sidecar, as when it is judged at once.
        let (sidecar, groups): (_, Vec<_>) = ranges.into_iter().unzip();
        let worst = groups.into_iter().fold(None, WorstGroup::worse);
        self.inspect(|inspection| inspection.sum_up(blocks, sidecar, worst))
    }

    fn files(&self) -> Files<'_> {
        Files::new(&*self.file, &*self.sidecar)
    }

    fn inspect<T>(&self, look: impl FnOnce(&Inspection<'_>) -> Result<T>) -> Result<T> {
        look(&Inspection {
            files: &self.files(),
            frames: self.frames.clone(),
            ranges: self.ranges.clone(),
            refused: self.refused,
        })
    }

    /// What is known of the bands that have bytes of a range, and were judged.
    fn found_in(&self, range: &Range<u64>) -> Vec<Arc<BandVerdict>> {
        let state = self.lock();
        let known = state.known.get(self.places_of(range));
        let known = known.or_bug_default("the bands of a range");
        let found = known.iter().filter_map(|known| match known {
            BandState::Band(found) => Some(found.clone()),
            BandState::Blocks(_) => None,
        });
        found.collect()
    }

    /// The bands that have bytes of a range.
    fn places_of(&self, range: &Range<u64>) -> Range<usize> {
        let first = self.places.partition_point(|band| band.end <= range.start);
        let end = self.places.partition_point(|band| band.start < range.end);
        first..end.max(first)
    }

    fn lock(&self) -> MutexGuard<'_, KnownBands> {
        self.state.lock().unpoisoned()
    }

    fn found(&self, place: usize) -> Option<Arc<BandVerdict>> {
        match self.lock().known.get(place) {
            Some(BandState::Band(found)) => Some(found.clone()),
            _ => None,
        }
    }

    /// Whether the blocks that bytes of a range are in were proven as they are in the file.
    fn is_sound(&self, place: usize, range: &Range<u64>) -> bool {
        match (self.lock().known.get(place), self.places.get(place)) {
            (Some(BandState::Blocks(proven)), Some(band)) => {
                let Range { start, end } = band.blocks(range);
                proven.open(start, end).is_empty()
            }
            (Some(BandState::Band(found)), _) => found.is_sound(range),
            _ => false,
        }
    }

    /// What the frame of a band is, and the worst of its groups.
    fn frame_of(
        &self,
        place: &Band,
        found: &BandVerdict,
    ) -> Result<(SidecarSpan, Option<WorstGroup>)> {
        if let Some(frame) = found.frame.get() {
            return Ok(*frame);
        }
        let files = self.files();
        let band = JudgedBand::judge_proven(&files, place.set, place.frame)?;
        let range = self.ranges.get(place.range);
        let range = range.or_bug("the range of a frame")?;
        let frame = (range.span(Some(&band)), band.worst());
        Ok(*found.frame.get_or_init(|| frame))
    }

    /// Proves the blocks of a range that were not proven yet.
    fn judge_range(
        &self,
        place: usize,
        range: &Range<u64>,
        poll: &mut impl FnMut() -> Result<()>,
    ) -> Result<()> {
        poll()?;
        if self.refused.is_some() && self.found(place).is_none() {
            return self.judge_place(place).map(drop);
        }
        let band = self.places.get(place).or_bug("a band of the file")?;
        let Range { mut start, end } = band.blocks(range);
        let most = (PIECE_BYTES / band.geometry.block_bytes).max(1);
        let mut buffer = Vec::new();
        while start < end {
            let next = end.min(start + most);
            let piece = match self.lock().known.get(place) {
                Some(BandState::Blocks(proven)) => proven.open(start, next),
                Some(BandState::Band(_)) => return Ok(()),
                _ => start..next,
            };
            if !piece.is_empty() {
                poll()?;
                let bytes = band.bytes(&piece);
                buffer.resize(saturating_usize(bytes.end - bytes.start), 0);
                self.read_place(place, bytes.start, &mut buffer)?;
            }
            start = piece.end;
        }
        Ok(())
    }

    /// Reads bytes of a band.
    fn read_place(&self, place: usize, at: u64, bytes: &mut [u8]) -> Result<()> {
        let band = self.places.get(place).or_bug("a band of the file")?;
        let range = at..at + bytes.len() as u64;
        let files = self.files();
        let read = |recent: &Checks, bytes: &mut [u8]| recent.read(&files, at, bytes, &self.blocks);
        let changed =
            |block: usize| self.changed(band.start + band.geometry.block(block).start as u64);
        let mut recent = self.recent(place)?;
        if let Some(block) = read(&recent, bytes)? {
            let (was_proven, is_judged) = match self.lock().known.get(place) {
                Some(BandState::Blocks(proven)) => (proven.has(block), false),
                Some(BandState::Band(_)) => (false, true),
                _ => (false, false),
            };
            if was_proven {
                return Err(changed(block));
            }
            // Another thread may have judged it meanwhile.
            recent = match is_judged {
                true => self.recent(place)?,
                false => self.judge_place(place)?,
            };
            if let Some(block) = read(&recent, bytes)? {
                return Err(changed(block));
            }
        }
        self.note(place, band.blocks(&range));
        Ok(())
    }

    /// The error for a block that was verified before.
    fn changed(&self, offset: u64) -> Error {
        let source = std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            "the file was changed, or its disk fails. Read it again",
        );
        let action = format!("the block at offset {offset} was verified, and has other bytes now");
        Error::io(self.file.path(), action, source)
    }

    /// Notes that blocks were proven, unless the band was judged.
    fn note(&self, place: usize, blocks: Range<usize>) {
        let mut state = self.lock();
        if let (Some(known), Some(band)) = (state.known.get_mut(place), self.places.get(place))
            && let BandState::Blocks(proven) = known
            && proven.add(blocks, band.geometry.blocks)
        {
            *known = BandState::Band(Arc::new(BandVerdict::proven(band)));
        }
    }

    /// What it takes to read bytes of a band.
    fn recent(&self, place: usize) -> Result<Arc<Checks>> {
        let is_proven = {
            let mut state = self.lock();
            if let Some(at) = state.recent.iter().position(|(kept, _)| *kept == place) {
                let (_, recent) = state.recent.get(at).or_bug("a band that was found")?;
                let recent = recent.clone();
                if at + 1 < state.recent.len() {
                    state.recent.remove(at);
                    state.recent.push_back((place, recent.clone()));
                }
                return Ok(recent);
            }
            match state.known.get(place) {
                Some(BandState::Band(found)) => found.is_proven,
                _ => self.refused.is_none(),
            }
        };
        let band = self.places.get(place).or_bug("a band of the file")?;
        if is_proven {
            let files = self.files();
            let mut judged = Judged::open(&files, band.set, band.frame)?;
            if let Some(checks) = Checks::of_frame(&mut judged)? {
                return Ok(self.keep(place, checks, false));
            }
        }
        self.judge_place(place)
    }

    /// Keeps what it takes to read a band, unless that is of its frame alone and another thread judged the band meanwhile.
    fn keep(&self, place: usize, recent: Checks, is_judged: bool) -> Arc<Checks> {
        let recent = Arc::new(recent);
        let mut state = self.lock();
        let known = state.known.get(place);
        if !is_judged && matches!(known, Some(BandState::Band(found)) if !found.is_proven) {
            return recent;
        }
        state.recent.retain(|(kept, _)| *kept != place);
        state.recent.push_back((place, recent.clone()));
        let mut bytes: usize = state.recent.iter().map(|(_, checks)| checks.bytes()).sum();
        while bytes > KEPT_BYTES
            && state.recent.len() > KEPT_BANDS
            && let Some((_, first)) = state.recent.pop_front()
        {
            bytes -= first.bytes();
        }
        recent
    }

    /// Judges a band. No lock is held meanwhile: reading may wait for others.
    fn judge_place(&self, place: usize) -> Result<Arc<Checks>> {
        let band = self.places.get(place).or_bug("a band of the file")?;
        let (found, checks) = self.inspect(|inspection| {
            let range = inspection.ranges.get(band.range);
            let range = range.or_bug("the range of a frame")?;
            let mut judged = inspection.judge(range)?.or_bug("a current frame")?;
            let (checks, differing) = Checks::of_judged(&mut judged)?;
            let found = BandVerdict {
                frame: OnceLock::from((range.span(Some(&judged)), judged.worst())),
                blocks: judged.blocks,
                differing,
                is_proven: false,
            };
            Ok((found, checks))
        })?;
        let is_sound = |span: &FileSpan| span.kind == FileKind::Sound;
        if !found.spans().iter().all(is_sound) {
            self.is_damaged.store(true, Ordering::Release);
        }
        if let Some(known) = self.lock().known.get_mut(place) {
            let before = match known {
                BandState::Band(before) => Some(&**before),
                _ => None,
            };
            if let Some(offset) = before.and_then(|before| found.first_lost_since(before)) {
                return Err(self.changed(offset));
            }
            *known = BandState::Band(Arc::new(found));
        }
        Ok(self.keep(place, checks, true))
    }
}

/// What of a range of a file is not as it was covered. Ascending.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    /// The bytes that differ, or are missing, and are restored.
    pub(crate) restored: Vec<Span>,
    /// Those that nothing can verify or restore.
    pub(crate) lost: Vec<Span>,
    /// From where on nothing is proven, if the format proves nothing itself.
    pub(crate) first_lost: Option<u64>,
}

/// How far the file is read: to where it was covered, or is now if that is longer.
///
/// That is bounded by the bytes of both files, whatever a head claims (rule 20). Where a file was cut and the sidecar lost most of
/// its frames as well, the lost bytes after that are in the report alone.
fn viewed_len(files: &Files<'_>, frames: &Frames) -> u64 {
    let bytes = files.file_bytes.saturating_add(files.sidecar.len());
    let most = bytes.saturating_mul(MOST_COVERED);
    files.file_bytes.max(frames.greatest_covered().min(most))
}

fn lost_in(spans: &[FileSpan], range: &Range<u64>) -> impl Iterator<Item = Span> {
    let spans = overlapping(spans, |span| span.start..span.end, range).iter();
    let lost = spans.filter(|span| span.kind == FileKind::Lost);
    lost.map(|span| Span {
        start: span.start.max(range.start),
        end: span.end.min(range.end),
        kind: Kind::Corrupt,
        cause: span.cause.map(Cause::in_ledger),
    })
}

impl Source for ProtectedSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn path(&self) -> Option<&Path> {
        self.file.path()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.read_by(offset, buffer, Self::read_place)
    }

    fn read_again_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.read_by(offset, buffer, |this, place, at, bytes| {
            if this.is_sound(place, &(at..at + bytes.len() as u64)) {
                return this.read_as_it_is(at, bytes);
            }
            this.read_place(place, at, bytes)
        })
    }

    fn beside(&self, extension: &str) -> Result<Option<Arc<dyn Source>>> {
        self.file.beside(extension)
    }

    fn is_replaceable(&self) -> bool {
        self.file.is_replaceable() || self.sidecar.is_replaceable()
    }

    fn confirm(&self) -> Result<()> {
        self.file.confirm()?;
        self.sidecar.confirm()
    }

    fn bound(&self) -> Option<Bound> {
        self.file.bound()
    }

    fn by_sidecar(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(self.this.upgrade()?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::parity::{Cause, Parameters, protect};
    use crate::source::BytesSource;

    /// How many bytes a band of [`protected`] has: one group of four blocks, of which one can be restored.
    const BAND: u64 = 256;

    /// A file that may change.
    struct Changing(Mutex<Vec<u8>>);

    impl Changing {
        fn flip(&self, at: usize) {
            *self.0.lock().unwrap().get_mut(at).unwrap() ^= 1;
        }
    }

    impl Source for Changing {
        fn len(&self) -> u64 {
            self.0.lock().unwrap().len() as u64
        }

        fn path(&self) -> Option<&std::path::Path> {
            None
        }

        fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
            let (bytes, start) = (self.0.lock().unwrap(), saturating_usize(offset));
            buffer.copy_from_slice(bytes.get(start..start + buffer.len()).unwrap());
            Ok(())
        }
    }

    /// The sidecar of these bytes.
    fn protected(bytes: &[u8]) -> Vec<u8> {
        let set = Set {
            id: [1; 8],
            parameters: Parameters::new(64, 4, 1, 1).unwrap(),
        };
        let (file, mut sidecar) = (BytesSource::new(bytes.to_vec()), Vec::new());
        let mut add = |bytes: &[u8]| {
            sidecar.extend_from_slice(bytes);
            Ok(())
        };
        protect(&file, file.len(), set, &mut add).unwrap();
        sidecar
    }

    #[test]
    fn what_was_restored_and_is_lost_when_it_is_judged_again_is_an_error() {
        let bytes: Vec<u8> = (0..200).collect();
        let file = Arc::new(Changing(Mutex::new(bytes.clone())));
        file.flip(10);
        let sidecar = Arc::new(BytesSource::new(protected(&bytes)));
        let source = ProtectedSource::open(file.clone(), sidecar).unwrap();
        let mut buffer = [0; 200];
        source.read_exact_at(0, &mut buffer).unwrap();
        assert_eq!(buffer, *bytes);
        file.flip(100);
        // As when many other source were read since.
        source.lock().recent.clear();
        let error = source
            .read_exact_at(0, &mut buffer)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("the block at offset 0 was verified"),
            "{error}"
        );
    }

    /// The sidecar of a file that another thread judges while its tables are read.
    struct Overtaken {
        sidecar: BytesSource<Vec<u8>>,
        source: OnceLock<std::sync::Weak<ProtectedSource>>,
        is_judged: AtomicBool,
    }

    impl Source for Overtaken {
        fn len(&self) -> u64 {
            self.sidecar.len()
        }

        fn path(&self) -> Option<&std::path::Path> {
            None
        }

        fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
            if let Some(source) = self.source.get().and_then(std::sync::Weak::upgrade)
                && !self.is_judged.swap(true, Ordering::AcqRel)
            {
                source.judge_place(0)?;
            }
            self.sidecar.read_exact_at(offset, buffer)
        }
    }

    #[test]
    fn a_band_that_is_judged_while_its_tables_are_read_stays_judged() {
        let bytes: Vec<u8> = (0..200).collect();
        let mut damaged = bytes.clone();
        *damaged.get_mut(10).unwrap() ^= 1;
        let sidecar = Arc::new(Overtaken {
            sidecar: BytesSource::new(protected(&bytes)),
            source: OnceLock::new(),
            is_judged: AtomicBool::new(false),
        });
        let file = Arc::new(BytesSource::new(damaged));
        let source = ProtectedSource::open(file, sidecar.clone()).unwrap();
        sidecar.source.set(Arc::downgrade(&source)).unwrap();
        let mut buffer = [0; 200];
        // A sound block is read first, and then the damaged one.
        for _ in 0..2 {
            source.read_exact_at(64, &mut buffer[64..]).unwrap();
            source.read_exact_at(0, &mut buffer).unwrap();
            assert_eq!(buffer, *bytes);
        }
        assert!(sidecar.is_judged.load(Ordering::Acquire));
    }

    #[test]
    fn judging_a_long_range_asks_at_intervals_whether_to_go_on() {
        let bytes = vec![7; 3 * PIECE_BYTES];
        let set = Set {
            id: [1; 8],
            parameters: Parameters::DEFAULT,
        };
        let (file, mut sidecar) = (BytesSource::new(bytes), Vec::new());
        let mut add = |bytes: &[u8]| {
            sidecar.extend_from_slice(bytes);
            Ok(())
        };
        protect(&file, file.len(), set, &mut add).unwrap();
        let source =
            ProtectedSource::open(Arc::new(file), Arc::new(BytesSource::new(sidecar))).unwrap();
        let mut asked = 0;
        let ended = source.differences(&(0..u64::MAX), || {
            asked += 1;
            if asked < 3 {
                return Ok(());
            }
            Err(Error::Interrupted)
        });
        assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
    }

    #[test]
    fn a_range_has_the_bands_that_have_bytes_of_it() {
        let bytes = vec![7; 1000];
        let sidecar = Arc::new(BytesSource::new(protected(&bytes)));
        let source = ProtectedSource::open(Arc::new(BytesSource::new(bytes)), sidecar).unwrap();
        for (range, places) in [
            (BAND..2 * BAND, 1..2),
            (BAND - 1..2 * BAND, 0..2),
            (BAND..2 * BAND + 1, 1..3),
            (999..1000, 3..4),
        ] {
            assert_eq!(source.places_of(&range), places, "{range:?}");
        }
    }

    /// Nothing of a band that has no frame is judged: that bytes of it are missing is known from the beginning.
    #[test]
    fn a_file_that_was_cut_in_a_band_without_a_frame_is_damaged() {
        let bytes = vec![7; 1000];
        let sidecar = protected(&bytes);
        let frame = protected(&[7; 256]).len();
        let mut without = sidecar.clone();
        without.drain(2 * frame..3 * frame);
        for (sidecar, len, is_damaged) in [
            (&sidecar, 1000, false),
            (&without, 1000, false),
            (&without, 700, true),
        ] {
            let file = Arc::new(BytesSource::new(vec![7; len]));
            let sidecar = Arc::new(BytesSource::new(sidecar.clone()));
            let source = ProtectedSource::open(file, sidecar).unwrap();
            assert_eq!(source.is_damaged(), is_damaged, "{len}");
        }
    }

    /// A band with lost ranges.
    fn found(lost: &[(u64, u64)]) -> BandVerdict {
        let spans = lost.iter().map(|(start, end)| FileSpan {
            start: *start,
            end: *end,
            kind: FileKind::Lost,
            cause: Some(Cause::ChecksumMismatch),
        });
        BandVerdict {
            blocks: Blocks {
                spans: spans.collect(),
                lost: Vec::new(),
            },
            differing: Vec::new(),
            is_proven: false,
            frame: OnceLock::new(),
        }
    }

    #[test]
    fn a_band_keeps_what_was_proven_if_no_more_is_lost() {
        let before = found(&[(64, 128), (192, 320)]);
        for kept in [
            &[][..],
            &[(64, 128)],
            &[(256, 320)],
            &[(64, 128), (192, 256)],
        ] {
            assert_eq!(found(kept).first_lost_since(&before), None, "{kept:?}");
        }
        for (more, first) in [
            (&[(0, 64)][..], 0),
            (&[(64, 192)], 128),
            (&[(128, 192)], 128),
            (&[(64, 128), (256, 384)], 320),
        ] {
            assert_eq!(
                found(more).first_lost_since(&before),
                Some(first),
                "{more:?}"
            );
        }
    }
}
