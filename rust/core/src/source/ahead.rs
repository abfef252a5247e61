//! Reads ahead of a slow source: an object store, where each read costs a round trip.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{Source, passed_on};
use crate::bug::OrBug;
use crate::error::{Error, Result};
use crate::saturating::saturating_usize;
use crate::sync::{Builder, Condvar, Mutex, MutexGuard, Unpoisoned as _};

/// How many pieces are read ahead of a stream at a time.
const AHEAD_PIECES: usize = 2;
/// How many streams are read ahead at once. A sealed segment's walk has three: entries, checksums, messages.
const STREAMS: usize = 3;

/// The sizes of pieces, in bytes. Only tests, which read short files, change the defaults.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct PieceSizes {
    /// The smallest read; at least 1.
    pub least: usize,
    /// The largest piece read ahead; at least `least`.
    pub most: usize,
    /// A source of up to this many bytes is read whole; at least `least`.
    pub whole: usize,
    /// After this many consecutive bytes, a stream is read ahead.
    pub proven: u64,
    /// How many bytes before a stream's position stay in memory.
    pub back: u64,
}

impl Default for PieceSizes {
    fn default() -> Self {
        Self {
            least: ReadAhead::LEAST_BYTES,
            most: ReadAhead::MOST_BYTES,
            whole: ReadAhead::WHOLE_BYTES,
            proven: 256 << 10,
            back: 2 << 20,
        }
    }
}

impl PieceSizes {
    /// The most bytes in memory: the pieces ahead of all streams, and those that they are in.
    const fn cached(&self) -> usize {
        self.most.saturating_mul((AHEAD_PIECES + 1) * STREAMS)
    }
}

/// An invariant of pieces, for errors.
const NAMED: &str = "a piece that has the bytes it is found by";

/// Another source, read in fewer and larger pieces.
///
/// Short reads also read the bytes after them, at least [`LEAST_BYTES`](Self::LEAST_BYTES) in total. For consecutive
/// reads, threads read the next pieces meanwhile. The more consecutive bytes were requested, the more is read ahead, up
/// to twice [`MOST_BYTES`](Self::MOST_BYTES). So at most twice the requested bytes are read, and
/// [`LEAST_BYTES`](Self::LEAST_BYTES) for each jump.
///
/// An error of such a thread is returned to the read that needs the bytes. If none does, it is dropped.
pub struct ReadAhead {
    source: Arc<dyn Source>,
    shared: Arc<Shared>,
}

struct Shared {
    source: Arc<dyn Source>,
    sizes: PieceSizes,
    state: Mutex<Cache>,
    /// Notified when a pending piece has arrived or failed.
    arrived: Condvar,
}

#[derive(Default)]
struct Cache {
    sizes: PieceSizes,
    /// By their offsets. They do not overlap.
    pieces: BTreeMap<u64, Piece>,
    streams: [Stream; STREAMS],
    /// A counter of reads, to find the least recently used piece.
    now: u64,
}

struct Piece {
    len: usize,
    content: Content,
    used: u64,
}

enum Content {
    Coming,
    Here(Arc<Vec<u8>>),
    Failed(Error),
}

/// A stream: reads at consecutive offsets.
#[derive(Clone, Copy, Default)]
struct Stream {
    /// The offset of the next read.
    next: u64,
    /// How many bytes were requested.
    bytes: u64,
    used: u64,
}

/// What is in memory for an offset.
enum At {
    /// The piece with its bytes, and the piece's offset.
    Cached(u64, Arc<Vec<u8>>),
    /// Nothing before this offset.
    Missing(u64),
}

impl ReadAhead {
    /// The smallest read, in bytes: an object store takes no longer for it than for one byte.
    pub const LEAST_BYTES: usize = 16 << 10;
    /// The largest piece read ahead, in bytes.
    pub const MOST_BYTES: usize = 4 << 20;
    /// A source of up to this many bytes is read whole, at once.
    pub const WHOLE_BYTES: usize = 256 << 10;

    /// Reads ahead of `source`. Its reads must work from any thread, and several at a time.
    #[must_use]
    pub fn new(source: Arc<dyn Source>) -> Self {
        Self::with_sizes(source, PieceSizes::default())
    }

    /// Reads ahead of `source` in pieces of other sizes.
    #[doc(hidden)]
    #[must_use]
    pub fn with_sizes(source: Arc<dyn Source>, sizes: PieceSizes) -> Self {
        let state = Cache {
            sizes,
            ..Cache::default()
        };
        let shared = Shared {
            source: source.clone(),
            sizes,
            state: Mutex::new(state),
            arrived: Condvar::new(),
        };
        Self {
            source,
            shared: Arc::new(shared),
        }
    }
}

impl Source for ReadAhead {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let (shared, len) = (&self.shared, buffer.len() as u64);
        let within = offset.checked_add(len).is_some_and(|end| end <= self.len());
        if !within {
            return self.source.read_exact_at(offset, buffer); // its error says what is wrong
        }
        let (mut at, mut left) = (offset, buffer);
        while !left.is_empty() {
            let copied = match shared.at(at, left.len())? {
                At::Cached(start, bytes) => {
                    let skip = saturating_usize(at - start);
                    copy(bytes.get(skip..).or_bug(NAMED)?, left)
                }
                At::Missing(until) => shared.fetch(at, until, left)?,
            };
            at += copied as u64;
            left = left
                .get_mut(copied..)
                .or_bug("no more bytes copied than were asked for")?;
        }
        if len > 0 {
            for (start, len) in shared.note(offset, len) {
                shared.fetch_aside(start, len);
            }
        }
        Ok(())
    }

    passed_on!(other);
}

/// Copies as much as exists and fits. Returns the number of bytes.
fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let len = from.len().min(to.len());
    if let (Some(to), Some(from)) = (to.get_mut(..len), from.get(..len)) {
        to.copy_from_slice(from);
    }
    len
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.state.lock().unpoisoned()
    }

    /// The bytes in memory from `at` on, or where the next ones begin. Waits for a pending piece.
    fn at(&self, at: u64, len: usize) -> Result<At> {
        let end = at.saturating_add(len as u64);
        let mut state = self.lock();
        loop {
            let now = state.now;
            let Some((&start, piece)) = state.pieces.range_mut(..=at).next_back() else {
                return Ok(At::Missing(state.until(at, end)));
            };
            if at - start >= piece.len as u64 {
                return Ok(At::Missing(state.until(at, end)));
            }
            piece.used = now;
            match &piece.content {
                Content::Here(bytes) => return Ok(At::Cached(start, bytes.clone())),
                Content::Coming => {
                    let waited = self.arrived.wait(state);
                    state = waited.unpoisoned();
                }
                Content::Failed(_) => {
                    if let Some(Content::Failed(error)) =
                        state.pieces.remove(&start).map(|piece| piece.content)
                    {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Reads the bytes up to `until` into `buffer`; for a short read also its surroundings. They must not be in memory.
    /// Returns how many bytes of `buffer` were filled.
    fn fetch(&self, at: u64, until: u64, buffer: &mut [u8]) -> Result<usize> {
        let missing = saturating_usize(until - at);
        let buffer = match buffer.get_mut(..missing) {
            Some(part) => part,
            None => buffer,
        };
        let Some((start, len)) = self.range(at, buffer.len()) else {
            self.source.read_exact_at(at, buffer)?;
            return Ok(buffer.len());
        };
        let Some((start, len)) = self.lock().claim(start, len, at) else {
            return Ok(0); // another thread has just begun to read it
        };
        let bytes = self.bring(start, len)?;
        let skip = saturating_usize(at - start);
        Ok(copy(bytes.get(skip..).or_bug(NAMED)?, buffer))
    }

    /// The range to read at once for `len` bytes at `at`; `None` if it is just these.
    fn range(&self, at: u64, len: usize) -> Option<(u64, usize)> {
        let total = self.source.len();
        match usize::try_from(total) {
            Ok(whole) if whole <= self.sizes.whole => Some((0, whole)),
            _ if len >= self.sizes.least => None,
            // The end of a file is one piece, because trailers are read backwards.
            _ => {
                let last = total.saturating_sub(self.sizes.least as u64);
                Some((at.min(last), self.sizes.least))
            }
        }
    }

    /// Reads a claimed piece and adds it.
    fn bring(&self, start: u64, len: usize) -> Result<Arc<Vec<u8>>> {
        let claim = Claim {
            shared: self,
            start,
        };
        let mut bytes = vec![0; len];
        self.source.read_exact_at(start, &mut bytes)?;
        let bytes = Arc::new(bytes);
        claim.keep(Content::Here(bytes.clone()));
        Ok(bytes)
    }

    /// Reads a claimed piece in a thread of its own.
    fn fetch_aside(self: &Arc<Self>, start: u64, len: usize) {
        let shared = self.clone();
        let work = move || {
            let claim = Claim {
                shared: &shared,
                start,
            };
            let mut bytes = vec![0; len];
            claim.keep(match shared.source.read_exact_at(start, &mut bytes) {
                Ok(()) => Content::Here(Arc::new(bytes)),
                Err(error) => Content::Failed(error),
            });
        };
        let thread = Builder::new().name("seglake-read-ahead".into());
        if thread.spawn(work).is_err() {
            // Then the bytes are read when they are needed.
            drop(Claim {
                shared: self,
                start,
            });
        }
    }

    /// Records that `len` bytes were read at `offset`. Claims and returns the pieces to read ahead.
    fn note(&self, offset: u64, len: u64) -> Vec<(u64, usize)> {
        let mut state = self.lock();
        let end = offset + len;
        match state.follow(offset, end) {
            Some(stream) if stream.bytes >= self.sizes.proven => {
                state.drop_passed(stream);
                state.claim_ahead(stream, self.source.len())
            }
            _ => Vec::new(),
        }
    }
}

/// A pending piece. If it is dropped, also by a panic while reading, no reader waits for it any longer.
struct Claim<'a> {
    shared: &'a Shared,
    start: u64,
}

impl Claim<'_> {
    fn keep(self, content: Content) {
        let mut state = self.shared.lock();
        if let Some(piece) = state.pieces.get_mut(&self.start) {
            piece.content = content;
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let coming = |piece: &Piece| matches!(piece.content, Content::Coming);
        if state.pieces.get(&self.start).is_some_and(coming) {
            state.pieces.remove(&self.start);
        }
        drop(state);
        self.shared.arrived.notify_all();
    }
}

impl Cache {
    /// Where the range from `at` to `end`, whose beginning is not in memory, meets a piece or ends.
    fn until(&self, at: u64, end: u64) -> u64 {
        let next = self.pieces.range(at..).next();
        next.map_or(end, |(start, _)| end.min(*start))
    }

    /// The end of the last piece that begins at or before `at`; 0 if there is none.
    fn end_before(&self, at: u64) -> u64 {
        let piece = self.pieces.range(..=at).next_back();
        match piece {
            Some((start, piece)) => start + piece.len as u64,
            None => 0,
        }
    }

    /// Claims a pending piece: the part of a range around `at` that is not in memory. `None` if `at` is in memory by
    /// now.
    fn claim(&mut self, start: u64, len: usize, at: u64) -> Option<(u64, usize)> {
        let before = self.end_before(at);
        if before > at {
            return None;
        }
        let end = self.until(at, start + len as u64);
        let start = start.max(before);
        let len = saturating_usize(end - start); // at most the old length
        let piece = Piece {
            len,
            content: Content::Coming,
            used: self.now,
        };
        self.pieces.insert(start, piece);
        self.trim();
        Some((start, len))
    }

    /// The stream that this read continues; `None` if it begins one.
    fn follow(&mut self, offset: u64, end: u64) -> Option<Stream> {
        self.now += 1;
        let (now, near) = (self.now, self.sizes.least as u64);
        let follows = |stream: &&mut Stream| {
            stream.used > 0 && (stream.next..=stream.next.saturating_add(near)).contains(&offset)
        };
        if let Some(stream) = self.streams.iter_mut().find(follows) {
            stream.next = end;
            stream.bytes = stream.bytes.saturating_add(end - offset);
            stream.used = now;
            return Some(*stream);
        }
        let oldest = self.streams.iter_mut().min_by_key(|stream| stream.used)?;
        *oldest = Stream {
            next: end,
            bytes: end - offset,
            used: now,
        };
        None
    }

    /// Drops the pieces that a stream has passed, except the last: walks look back a little.
    fn drop_passed(&mut self, stream: Stream) {
        let passed = stream.next.saturating_sub(self.sizes.back);
        let first = stream.next.saturating_sub(stream.bytes).min(passed);
        let within = self.pieces.range(first..passed);
        let passed = within.filter(|(start, piece)| {
            **start + piece.len as u64 <= passed && !matches!(piece.content, Content::Coming)
        });
        for start in passed.map(|(start, _)| *start).collect::<Vec<_>>() {
            self.pieces.remove(&start);
        }
    }

    /// Claims the pieces to read ahead of a stream in a source of `total` bytes.
    fn claim_ahead(&mut self, stream: Stream, total: u64) -> Vec<(u64, usize)> {
        let share = saturating_usize(stream.bytes) / AHEAD_PIECES;
        let want = share.clamp(self.sizes.least, self.sizes.most);
        let (mut claimed, mut edge) = (Vec::new(), stream.next.max(self.end_before(stream.next)));
        for _ in 0..AHEAD_PIECES {
            if let Some(piece) = self.pieces.get(&edge) {
                edge += piece.len as u64;
                continue;
            }
            let left = saturating_usize(total.saturating_sub(edge));
            // At most as much as was requested, also if the stream is still within the previous piece.
            let end = edge.saturating_add(want as u64);
            if left == 0 || end > stream.next.saturating_add(stream.bytes) {
                break;
            }
            let Some((start, len)) = self.claim(edge, want.min(left), edge) else {
                break;
            };
            claimed.push((start, len));
            edge = start + len as u64;
        }
        claimed
    }

    /// Drops the least recently used pieces until the memory limit is met.
    fn trim(&mut self) {
        let mut cached: usize = self.pieces.values().map(|piece| piece.len).sum();
        while cached > self.sizes.cached() {
            let idle = self
                .pieces
                .iter()
                .filter(|(_, piece)| !matches!(piece.content, Content::Coming));
            let Some((oldest, len)) = idle
                .min_by_key(|(_, piece)| piece.used)
                .map(|(start, piece)| (*start, piece.len))
            else {
                return;
            };
            self.pieces.remove(&oldest);
            cached -= len;
        }
    }
}
