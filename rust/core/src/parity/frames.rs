//! The frames of a sidecar: finding them, and which of them are current (rules 2 to 4).

use std::cmp::Reverse;

use super::bytes::Files;
use super::layout::{Geometry, HEAD_BYTES, Head, MAGIC, Set};
use crate::bug::OrBug;
use crate::cursor::Cursor;
use crate::error::Result;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};

/// A frame of a sidecar.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Where it begins in the sidecar.
    pub(super) start: u64,
    /// Where it ends. That may be after the end of the sidecar.
    pub(super) end: u64,
    pub(super) band: u64,
    /// The bytes of the file that were covered by then (C).
    pub(super) covered: u64,
    /// The bytes of the band that it covers (L).
    pub(super) len: u32,
    pub(super) is_current: bool,
}

/// The frames of a sidecar, in file order.
#[derive(Debug)]
pub(super) struct Frames {
    /// What they have in common. `None` if there is none.
    pub(super) set: Option<Set>,
    pub(super) all: Vec<Frame>,
    /// The indices of frames by band, the greatest L first, then in file order.
    order: Vec<usize>,
}

impl Frames {
    /// Finds the frames of a sidecar. The length of the file decides which are current.
    pub(super) fn find(files: &Files<'_>) -> Result<Self> {
        let mut heads = Heads::new(files.sidecar);
        let set = find_set(&mut heads)?;
        let mut frames = Self {
            set,
            all: Vec::new(),
            order: Vec::new(),
        };
        if let Some(set) = set {
            frames.all = find_frames(files.sidecar, &mut heads, &set)?;
            frames.choose(&set, files.file_bytes);
        }
        Ok(frames)
    }

    /// Rule 4.
    fn choose(&mut self, set: &Set, file_bytes: u64) {
        let all = &mut self.all;
        self.order = (0..all.len()).collect();
        self.order.sort_by_key(|index| {
            let frame = all.get(*index);
            frame.map(|frame| (frame.band, Reverse(frame.len), *index))
        });
        // The band after the last current frame, if that is a whole band.
        let mut next = None;
        let mut band = None;
        for index in &self.order {
            let Some(frame) = all.get_mut(*index) else {
                continue;
            };
            if band.replace(frame.band) == Some(frame.band) {
                continue;
            }
            if set.band_start(frame.band) <= file_bytes || next == Some(frame.band) {
                frame.is_current = true;
                let is_whole = u64::from(frame.len) == set.parameters.band_bytes();
                next = is_whole.then_some(frame.band.saturating_add(1));
            }
        }
    }

    /// The current frames by band.
    pub(super) fn current(&self) -> impl Iterator<Item = &Frame> {
        let frames = self.order.iter().filter_map(|index| self.all.get(*index));
        frames.filter(|frame| frame.is_current)
    }

    /// The superseded frames of a band, in the order of rule 7.
    pub(super) fn superseded(&self, band: u64) -> impl Iterator<Item = &Frame> {
        self.of_band(band).filter(|frame| !frame.is_current)
    }

    /// The frames of a band, the greatest L first.
    fn of_band(&self, band: u64) -> impl Iterator<Item = &Frame> {
        let first = self.order.partition_point(|index| {
            let frame = self.all.get(*index);
            frame.is_some_and(|frame| frame.band < band)
        });
        let rest = self.order.get(first..).or_bug_default("frames");
        rest.iter()
            .filter_map(|index| self.all.get(*index))
            .take_while(move |frame| frame.band == band)
    }

    /// Where frames of a band end in it (L), ascending.
    pub(super) fn ends(&self, band: u64) -> Vec<usize> {
        let mut ends: Vec<_> = self
            .of_band(band)
            .map(|frame| saturating_usize(frame.len))
            .collect();
        ends.reverse();
        ends
    }

    /// The greatest C of any frame.
    pub(super) fn greatest_covered(&self) -> u64 {
        let covered = self.all.iter().map(|frame| frame.covered);
        covered.fold(0, u64::max)
    }
}

impl Frame {
    fn new(start: u64, end: u64, head: &Head) -> Self {
        Self {
            start,
            end,
            band: head.band,
            covered: head.covered,
            len: head.len,
            is_current: false,
        }
    }

    /// The head of a copy.
    pub(super) fn head(&self, set: Set, is_second: bool) -> Head {
        Head {
            set,
            is_second,
            band: self.band,
            len: self.len,
            covered: self.covered,
        }
    }

    pub(super) fn geometry(&self, set: &Set) -> Geometry {
        Geometry::new(set.parameters, self.len)
    }

    /// Whether bytes of it are missing.
    pub(super) fn is_cut(&self, set: &Set, sidecar_bytes: u64) -> bool {
        let whole = self.start + self.geometry(set).frame_bytes() as u64;
        self.end < whole || sidecar_bytes < whole
    }
}

/// Rule 2: what the first pair has in common; if there is none, the last head.
fn find_set(heads: &mut Heads<'_>) -> Result<Option<Set>> {
    let (mut start, mut last) = (0, None);
    while let Some((offset, head)) = heads.next(start, u64::MAX)? {
        if heads.is_pair(offset, &head)? {
            return Ok(Some(head.set));
        }
        last = Some(head.set);
        start = offset + 1;
    }
    Ok(last)
}

/// Rule 3. Each byte is searched at most twice: for the head of the next frame, and for a pair inside of that.
fn find_frames(sidecar: &dyn Source, heads: &mut Heads<'_>, set: &Set) -> Result<Vec<Frame>> {
    let (mut frames, mut start) = (Vec::new(), 0);
    while let Some((begin, head)) = next_frame(heads, set, start)? {
        let mut end = begin + head.geometry().frame_bytes() as u64;
        let is_followed = end == sidecar.len()
            || heads
                .at(end)?
                .is_some_and(|next| next.set == *set && !next.is_second);
        if !is_followed && let Some(pair) = next_pair(heads, set, begin + 1, end)? {
            end = pair;
        }
        frames.push(Frame::new(begin, end, &head));
        start = end;
    }
    Ok(frames)
}

/// The next frame that does not begin before `start`: where it begins, and its first head that is there.
fn next_frame(heads: &mut Heads<'_>, set: &Set, start: u64) -> Result<Option<(u64, Head)>> {
    // Usually it begins here, and nothing has to be searched.
    if let Some(head) = heads.at(start)?
        && head.set == *set
        && !head.is_second
    {
        return Ok(Some((start, head)));
    }
    let mut from = start;
    while let Some((offset, head)) = heads.next(from, u64::MAX)? {
        from = offset + 1;
        let begin = if head.is_second {
            offset.checked_sub(head.geometry().second_front() as u64)
        } else {
            Some(offset)
        };
        if head.set == *set
            && let Some(begin) = begin.filter(|begin| *begin >= start)
        {
            return Ok(Some((begin, head)));
        }
    }
    Ok(None)
}

/// Where the first pair from `start` on and before `end` begins.
fn next_pair(heads: &mut Heads<'_>, set: &Set, start: u64, end: u64) -> Result<Option<u64>> {
    let mut from = start;
    while let Some((offset, head)) = heads.next(from, end)? {
        if head.set == *set && heads.is_pair(offset, &head)? {
            return Ok(Some(offset));
        }
        from = offset + 1;
    }
    Ok(None)
}

/// How many bytes are read at a time to search them.
const WINDOW_BYTES: usize = 64 << 10;

/// Finds heads in a sidecar.
pub(super) struct Heads<'a> {
    source: &'a dyn Source,
    window: Window,
}

impl<'a> Heads<'a> {
    pub(super) fn new(source: &'a dyn Source) -> Self {
        Self {
            source,
            window: Window::default(),
        }
    }

    /// The head at an offset.
    pub(super) fn at(&self, offset: u64) -> Result<Option<Head>> {
        if offset
            .checked_add(HEAD_BYTES as u64)
            .is_none_or(|end| end > self.source.len())
        {
            return Ok(None);
        }
        let mut bytes = [0; HEAD_BYTES];
        self.source.read_exact_at(offset, &mut bytes)?;
        Ok(Head::parse(&bytes))
    }

    /// The first head from `start` on and before `end`.
    pub(super) fn next(&mut self, mut start: u64, end: u64) -> Result<Option<(u64, Head)>> {
        let (source, window) = (self.source, &mut self.window);
        let last = source.len().saturating_sub(HEAD_BYTES as u64 - 1);
        let end = end.min(last);
        while start < end {
            window.load(source, start, HEAD_BYTES, WINDOW_BYTES)?;
            let bytes = Cursor::new(window.bytes(source, start)).run_up_to(WINDOW_BYTES);
            let mut places = bytes.windows(MAGIC.len());
            let Some(found) = places.position(|bytes| bytes == MAGIC.as_slice()) else {
                start += (bytes.len() - MAGIC.len() + 1) as u64;
                continue;
            };
            start += found as u64;
            if start >= end {
                break;
            }
            let head = window.exact_array(source, start, WINDOW_BYTES)?;
            if let Some(head) = Head::parse(head) {
                return Ok(Some((start, head)));
            }
            start += 1;
        }
        Ok(None)
    }

    /// Whether a head at `offset` is the first of a pair.
    pub(super) fn is_pair(&self, offset: u64, head: &Head) -> Result<bool> {
        if head.is_second {
            return Ok(false);
        }
        let second = offset.checked_add(head.geometry().second_front() as u64);
        let Some(second) = second else {
            return Ok(false);
        };
        let expected = Head {
            is_second: true,
            ..*head
        };
        Ok(self.at(second)? == Some(expected))
    }
}
