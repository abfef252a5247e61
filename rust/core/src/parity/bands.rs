//! A file and its sidecar, of which each band is judged when it is first read.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bytes::Files;
use super::frames::Frames;
use super::judge::{JudgedBand, Worse as _, WorstGroup};
use super::ledger::{Blocks, Content, FileKind, FileSpan, SidecarRange, SidecarSpan, band_blocks};
use super::report::{Inspection, Options, Refused, Report};
use crate::bug::OrBug;
use crate::error::Result;
use crate::saturating::saturating_usize;
use crate::source::Source;

/// Of how many damaged bands the repaired blocks are kept. Walks read in up to three places of a file at once. Blocks
/// of other bands are computed again when they are read.
const KEPT_BANDS: usize = 4;
/// A whole sidecar covers less than this many times its own bytes: a group has at most 255 data blocks for each parity block.
const MOST_COVERED: u64 = 256;

/// A file and its sidecar. A band is judged when a byte of it is first asked for. What is kept of it are its ranges and
/// where bytes differ; of damaged bands that were read last also their repaired blocks.
pub(crate) struct Bands {
    file: Arc<dyn Source>,
    sidecar: Arc<dyn Source>,
    frames: Arc<Frames>,
    ranges: Arc<[SidecarRange]>,
    refused: Option<Refused>,
    /// The ranges of the file that are in no block of a current frame.
    gaps: Vec<FileSpan>,
    /// The bands, ascending.
    places: Vec<Place>,
    /// Whether anything that was judged so far is damaged.
    is_damaged: AtomicBool,
    state: Mutex<State>,
}

/// A band that has a current frame.
struct Place {
    start: u64,
    end: u64,
    /// The number of its frame among the ranges of the sidecar.
    range: usize,
}

#[derive(Default)]
struct State {
    judged: Vec<Option<Arc<Found>>>,
    recent: VecDeque<(usize, Arc<[Patch]>)>,
}

/// What is known of a band that was judged.
#[derive(Debug)]
pub(crate) struct Found {
    blocks: Blocks,
    /// Where bytes of repaired blocks differ from the file's, or are missing there. Ascending, and they do not touch.
    pub(crate) differing: Vec<Range<u64>>,
    sidecar: SidecarSpan,
    worst: Option<WorstGroup>,
}

impl Found {
    /// All ranges of its blocks.
    pub(crate) fn spans(&self) -> &[FileSpan] {
        &self.blocks.spans
    }
}

/// Adjacent bytes of a repaired block.
struct Patch {
    start: u64,
    bytes: Vec<u8>,
}

impl Bands {
    /// Finds the frames of a sidecar. Reads of the file what it takes to tell that it is not another one.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub(crate) fn open(file: Arc<dyn Source>, sidecar: Arc<dyn Source>) -> Result<Self> {
        let files = Files::new(&*file, &*sidecar);
        let Inspection {
            frames,
            ranges,
            refused,
            ..
        } = Inspection::new(&files, Options::default())?;
        let mut places = Vec::new();
        for (range, own) in ranges.iter().enumerate() {
            if let (Content::Frame(frame), Some(set)) = (own.content, frames.set)
                && frame.is_current
            {
                let start = set.band_start(frame.band);
                let end = start + u64::from(frame.len);
                places.push(Place { start, end, range });
            }
        }
        places.sort_by_key(|place| place.start);
        let mut bands = Self {
            file,
            sidecar,
            frames,
            ranges,
            refused,
            gaps: Vec::new(),
            is_damaged: AtomicBool::new(false),
            state: Mutex::new(State {
                judged: places.iter().map(|_| None).collect(),
                recent: VecDeque::new(),
            }),
            places,
        };
        bands.gaps = bands.inspect(|inspection| Ok(inspection.gaps()))?;
        let is_lost = |span: &FileSpan| span.kind == FileKind::Lost;
        if bands.gaps.iter().any(is_lost) {
            bands.is_damaged = AtomicBool::new(true);
        }
        Ok(bands)
    }

    /// The file as it is.
    pub(crate) const fn file(&self) -> &Arc<dyn Source> {
        &self.file
    }

    /// The sidecar.
    pub(crate) const fn sidecar(&self) -> &Arc<dyn Source> {
        &self.sidecar
    }

    /// Why the sidecar was refused, if it was.
    pub(crate) const fn refused(&self) -> Option<Refused> {
        self.refused
    }

    /// Whether the sidecar has blocks of the file.
    pub(crate) const fn has_blocks(&self) -> bool {
        !self.places.is_empty()
    }

    /// How far the file is read: to where it was covered, or is now if that is longer.
    ///
    /// That is bounded by the bytes of both files, whatever a head claims (rule 20). Where a file was cut and the sidecar lost most of
    /// its frames as well, the lost bytes after that are in the report alone.
    pub(crate) fn viewed_len(&self) -> u64 {
        let bytes = self.file.len().saturating_add(self.sidecar.len());
        let covered = self.frames.greatest_covered();
        self.file
            .len()
            .max(covered.min(bytes.saturating_mul(MOST_COVERED)))
    }

    /// The ranges of the file that are in no block.
    pub(crate) fn gaps(&self) -> &[FileSpan] {
        &self.gaps
    }

    /// Whether anything that was judged so far is damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Acquire)
    }

    /// The ranges of the file that the bands cover, ascending.
    pub(crate) fn covered(&self) -> impl Iterator<Item = Range<u64>> {
        self.places.iter().map(|place| place.start..place.end)
    }

    /// Judges the bands of a range, if they are not judged yet.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub(crate) fn judge(&self, range: Range<u64>) -> Result<()> {
        self.places_of(&range)
            .try_for_each(|place| self.found(place).map(drop))
    }

    /// What is known of each band, in order. `poll` is called before each.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), and those of `poll`.
    pub(crate) fn all(&self, mut poll: impl FnMut() -> Result<()>) -> Result<Vec<Arc<Found>>> {
        let all = (0..self.places.len()).map(|place| {
            poll()?;
            self.found(place)
        });
        all.collect()
    }

    /// Reads the file, zeros after its end, and with `repaired` its repaired blocks in their places.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8], repaired: bool) -> Result<()> {
        let range = offset..offset.saturating_add(buffer.len() as u64);
        Files::new(&*self.file, &*self.sidecar).read_file(offset, buffer)?;
        if !repaired {
            return Ok(());
        }
        for place in self.places_of(&range) {
            if self.found(place)?.differing.is_empty() {
                continue;
            }
            for patch in self.patches(place)?.iter() {
                patch.apply(&range, buffer);
            }
        }
        Ok(())
    }

    /// The report on both files, when all bands are judged.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), and those of `poll`.
    pub(crate) fn report(&self, poll: impl FnMut() -> Result<()>) -> Result<Report> {
        let all = self.all(poll)?;
        let mut blocks = Blocks::default();
        let mut worst: Option<WorstGroup> = None;
        let mut sidecar: Vec<_> = self.ranges.iter().map(|own| own.span(None)).collect();
        for (place, found) in self.places.iter().zip(&all) {
            blocks.add(&found.blocks);
            if let Some(own) = sidecar.get_mut(place.range) {
                *own = found.sidecar;
            }
        }
        // In the order of the sidecar, as when it is judged at once.
        let mut order: Vec<_> = self.places.iter().zip(&all).collect();
        order.sort_by_key(|(place, _)| place.range);
        for (_, found) in order {
            worst = worst.max_by_damage(found.worst);
        }
        self.inspect(|inspection| inspection.sum_up(blocks, sidecar, worst))
    }

    fn inspect<T>(&self, look: impl FnOnce(&Inspection<'_>) -> Result<T>) -> Result<T> {
        let files = Files::new(&*self.file, &*self.sidecar);
        look(&Inspection {
            files: &files,
            frames: self.frames.clone(),
            ranges: self.ranges.clone(),
            refused: self.refused,
            within: None,
        })
    }

    /// The bands that have bytes of a range.
    fn places_of(&self, range: &Range<u64>) -> Range<usize> {
        let first = self.places.partition_point(|own| own.end <= range.start);
        let end = self.places.partition_point(|own| own.start < range.end);
        first..end.max(first)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn found(&self, place: usize) -> Result<Arc<Found>> {
        if let Some(found) = self.lock().judged.get(place).cloned().flatten() {
            return Ok(found);
        }
        Ok(self.judge_place(place)?.0)
    }

    fn patches(&self, place: usize) -> Result<Arc<[Patch]>> {
        let recent = self.lock();
        let kept = recent.recent.iter().find(|(own, _)| *own == place);
        if let Some((_, patches)) = kept {
            return Ok(patches.clone());
        }
        drop(recent);
        Ok(self.judge_place(place)?.1)
    }

    /// Judges a band. No lock is held meanwhile: reading may wait for others.
    fn judge_place(&self, place: usize) -> Result<(Arc<Found>, Arc<[Patch]>)> {
        let own = self.places.get(place).or_bug("a band of the file")?;
        let (found, patches) = self.inspect(|inspection| {
            let range = inspection.ranges.get(own.range);
            let range = range.or_bug("the range of a frame")?;
            let band = inspection.judge(range)?.or_bug("a current frame")?;
            let blocks = band_blocks(&band)?;
            let (differing, patches) = repaired_bytes(&band, &blocks.spans)?;
            let found = Found {
                blocks,
                differing,
                sidecar: range.span(Some(&band)),
                worst: band.worst(),
            };
            Ok((found, patches))
        })?;
        let (found, patches) = (Arc::new(found), Arc::<[Patch]>::from(patches));
        let is_sound = |span: &FileSpan| span.kind == FileKind::Sound;
        if !found.spans().iter().all(is_sound) {
            self.is_damaged.store(true, Ordering::Release);
        }
        let mut state = self.lock();
        if let Some(own) = state.judged.get_mut(place) {
            *own = Some(found.clone());
        }
        if !patches.is_empty() {
            state.recent.retain(|(own, _)| *own != place);
            state.recent.push_back((place, patches.clone()));
            if state.recent.len() > KEPT_BANDS {
                state.recent.pop_front();
            }
        }
        Ok((found, patches))
    }
}

/// Where bytes of a band's repaired blocks differ from the file's, and these blocks.
fn repaired_bytes(
    band: &JudgedBand<'_>,
    spans: &[FileSpan],
) -> Result<(Vec<Range<u64>>, Vec<Patch>)> {
    let (files, band_start) = (band.current.files, band.current.band_start);
    let (mut differing, mut patches) = (Vec::<Range<u64>>::new(), Vec::new());
    let mut old = Vec::new();
    for span in spans.iter().filter(|span| span.kind == FileKind::Repaired) {
        let len = saturating_usize(span.end - span.start);
        let mut bytes = vec![0; len];
        let within = saturating_usize(span.start - band_start);
        band.known.read(files, band_start, within, &mut bytes)?;
        old.resize(len, 0);
        files.read_file(span.start, &mut old)?;
        for ((old, new), at) in old.iter().zip(&bytes).zip(span.start..) {
            if old == new && at < files.file_bytes {
                continue;
            }
            match differing.last_mut() {
                Some(last) if last.end == at => last.end += 1,
                _ => differing.push(at..at + 1),
            }
        }
        patches.push(Patch {
            start: span.start,
            bytes,
        });
    }
    Ok((differing, patches))
}

impl Patch {
    /// Puts its bytes into a buffer that has the bytes of a range.
    fn apply(&self, range: &Range<u64>, buffer: &mut [u8]) {
        let end = self.start + self.bytes.len() as u64;
        let (first, last) = (self.start.max(range.start), end.min(range.end));
        if first >= last {
            return;
        }
        let place = |start| saturating_usize(first - start)..saturating_usize(last - start);
        if let (Some(target), Some(own)) = (
            buffer.get_mut(place(range.start)),
            self.bytes.get(place(self.start)),
        ) {
            target.copy_from_slice(own);
        }
    }
}
