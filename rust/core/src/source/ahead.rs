//! Reading ahead of what is slow to answer: an object store, where each read costs a round trip.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::Source;
use crate::bug::OrBug;
use crate::error::{Error, Result};
use crate::saturating::saturating_usize;

/// How many pieces are read ahead of a run at a time.
const AHEAD_PIECES: usize = 2;
/// How many runs go on side by side. A sealed segment's walk has three: entries, checksums, messages.
const RUNS: usize = 3;

/// How large pieces are, in bytes. Other sizes than the default are for tests, which read short files.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct PieceSizes {
    /// The least that is read at once, at least 1.
    pub least: usize,
    /// The most that is read ahead at once, no less than `least`.
    pub most: usize,
    /// A source of no more bytes is read whole: no less than `least`.
    pub whole: usize,
    /// Who has asked for so many bytes in a row is read ahead of.
    pub proven: u64,
    /// How much is kept of what a run has come through.
    pub behind: u64,
}

impl Default for PieceSizes {
    fn default() -> Self {
        Self {
            least: ReadAhead::LEAST_BYTES,
            most: ReadAhead::MOST_BYTES,
            whole: ReadAhead::WHOLE_BYTES,
            proven: 256 << 10,
            behind: 2 << 20,
        }
    }
}

impl PieceSizes {
    /// The most that is held of what was read: what is ahead of all runs, and what they are in.
    const fn held(&self) -> usize {
        self.most.saturating_mul((AHEAD_PIECES + 1) * RUNS)
    }
}

/// What holds of each piece, for errors.
const NAMED: &str = "a piece that has the bytes it is found by";

/// Another source, read in fewer and larger pieces.
///
/// Short reads take what stands behind them along, [`LEAST_BYTES`](Self::LEAST_BYTES) at least. Where reading goes on and
/// on, the next pieces are read by threads of their own meanwhile: the more was asked for in a row, the more, up to twice
/// [`MOST_BYTES`](Self::MOST_BYTES). So no more is read than twice what was asked for, and
/// [`LEAST_BYTES`](Self::LEAST_BYTES) for each jump. What such a thread runs into is the error of whoever asks for those
/// bytes, and of nobody if nobody does.
pub struct ReadAhead {
    shared: Arc<Shared>,
}

struct Shared {
    source: Arc<dyn Source>,
    sizes: PieceSizes,
    state: Mutex<State>,
    /// Told whenever a piece that was coming has come, or failed.
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    sizes: PieceSizes,
    /// By where they begin. They do not overlap.
    pieces: BTreeMap<u64, Piece>,
    runs: [Run; RUNS],
    /// Counts reads, to tell what was used last.
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

/// Reads that go on one behind the other.
#[derive(Clone, Copy, Default)]
struct Run {
    /// Where the next one is expected.
    next: u64,
    /// How many bytes were asked for.
    bytes: u64,
    used: u64,
}

/// What there is at an offset.
enum At {
    /// The piece that has it, and where that begins.
    Held(u64, Arc<Vec<u8>>),
    /// Nothing before this offset.
    Nothing(u64),
}

impl ReadAhead {
    /// The least that is read at once, in bytes: it takes an object store no longer than a single one does.
    pub const LEAST_BYTES: usize = 16 << 10;
    /// The most that is read ahead at once, in bytes.
    pub const MOST_BYTES: usize = 4 << 20;
    /// A source of no more bytes is read whole, at once.
    pub const WHOLE_BYTES: usize = 256 << 10;

    /// Reads ahead of `source`, whose reads may be called from any thread, and several at a time.
    #[must_use]
    pub fn new(source: Arc<dyn Source>) -> Self {
        Self::with_sizes(source, PieceSizes::default())
    }

    /// Reads ahead of `source` in pieces of other sizes.
    #[doc(hidden)]
    #[must_use]
    pub fn with_sizes(source: Arc<dyn Source>, sizes: PieceSizes) -> Self {
        let state = State {
            sizes,
            ..State::default()
        };
        Self {
            shared: Arc::new(Shared {
                source,
                sizes,
                state: Mutex::new(state),
                arrived: Condvar::new(),
            }),
        }
    }
}

impl Source for ReadAhead {
    fn len(&self) -> u64 {
        self.shared.source.len()
    }

    fn path(&self) -> Option<&Path> {
        self.shared.source.path()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let (shared, len) = (&self.shared, buffer.len() as u64);
        let within = offset.checked_add(len).is_some_and(|end| end <= self.len());
        if !within {
            return shared.source.read_exact_at(offset, buffer); // which says what is wrong
        }
        let (mut at, mut left) = (offset, buffer);
        while !left.is_empty() {
            let copied = match shared.at(at, left.len())? {
                At::Held(start, bytes) => {
                    let skip = saturating_usize(at - start);
                    copy(bytes.get(skip..).or_bug(NAMED)?, left)
                }
                At::Nothing(until) => shared.fetch(at, until, left)?,
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

    fn beside(&self, extension: &str) -> Result<Option<Arc<dyn Source>>> {
        self.shared.source.beside(extension)
    }

    fn is_replaceable(&self) -> bool {
        self.shared.source.is_replaceable()
    }

    fn confirm(&self) -> Result<()> {
        self.shared.source.confirm()
    }
}

/// Copies as much as there is and fits; says how much that is.
fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let len = from.len().min(to.len());
    if let (Some(to), Some(from)) = (to.get_mut(..len), from.get(..len)) {
        to.copy_from_slice(from);
    }
    len
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What there is of `len` bytes from `at` on. Waits for what is coming.
    fn at(&self, at: u64, len: usize) -> Result<At> {
        let end = at.saturating_add(len as u64);
        let mut state = self.lock();
        loop {
            let now = state.now;
            let Some((&start, piece)) = state.pieces.range_mut(..=at).next_back() else {
                return Ok(At::Nothing(state.until(at, end)));
            };
            if at - start >= piece.len as u64 {
                return Ok(At::Nothing(state.until(at, end)));
            }
            piece.used = now;
            match &piece.content {
                Content::Here(bytes) => return Ok(At::Held(start, bytes.clone())),
                Content::Coming => {
                    let waited = self.arrived.wait(state);
                    state = waited.unwrap_or_else(PoisonError::into_inner);
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

    /// Reads what nothing is held of up to `until`, into `buffer` and, if that is short, what is around it. Says how many
    /// bytes of `buffer` that filled.
    fn fetch(&self, at: u64, until: u64, buffer: &mut [u8]) -> Result<usize> {
        let missing = saturating_usize(until - at);
        let buffer = match buffer.get_mut(..missing) {
            Some(part) => part,
            None => buffer,
        };
        let Some((start, len)) = self.stretch(at, buffer.len()) else {
            self.source.read_exact_at(at, buffer)?;
            return Ok(buffer.len());
        };
        let Some((start, len)) = self.lock().claim(start, len, at) else {
            return Ok(0); // somebody else has just begun to read it
        };
        let bytes = self.bring(start, len)?;
        let skip = saturating_usize(at - start);
        Ok(copy(bytes.get(skip..).or_bug(NAMED)?, buffer))
    }

    /// What is best read at once, and held, for `len` bytes at `at`; `None` where that is just them.
    fn stretch(&self, at: u64, len: usize) -> Option<(u64, usize)> {
        let total = self.source.len();
        match usize::try_from(total) {
            Ok(whole) if whole <= self.sizes.whole => Some((0, whole)),
            _ if len >= self.sizes.least => None,
            // The end of a file is one piece: trailers are read backwards.
            _ => {
                let last = total.saturating_sub(self.sizes.least as u64);
                Some((at.min(last), self.sizes.least))
            }
        }
    }

    /// Reads a piece that was claimed, and holds it.
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

    /// Has a thread of its own read a piece that was claimed.
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
        let thread = thread::Builder::new().name("seglake-read-ahead".into());
        if thread.spawn(work).is_err() {
            // Then it is read when it is asked for.
            drop(Claim {
                shared: self,
                start,
            });
        }
    }

    /// Notes that `len` bytes were read at `offset`, and claims what is to be read ahead of that now.
    fn note(&self, offset: u64, len: u64) -> Vec<(u64, usize)> {
        let mut state = self.lock();
        let end = offset + len;
        match state.follow(offset, end) {
            Some(run) if run.bytes >= self.sizes.proven => {
                state.forget_behind(run);
                state.claim_ahead(run, self.source.len())
            }
            _ => Vec::new(),
        }
    }
}

/// A piece that is coming. If it is dropped, also where reading panics, nobody waits for it any more.
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

impl State {
    /// Where the stretch from `at` to `end`, of which nothing is held where it begins, meets a piece or ends.
    fn until(&self, at: u64, end: u64) -> u64 {
        let next = self.pieces.range(at..).next();
        next.map_or(end, |(start, _)| end.min(*start))
    }

    /// Where the piece ends that begins last of those that begin at or before `at`; 0 if there is none.
    fn end_before(&self, at: u64) -> u64 {
        let piece = self.pieces.range(..=at).next_back();
        piece.map_or(0, |(start, piece)| start + piece.len as u64)
    }

    /// Makes the part of a stretch around `at` that nothing is held of a piece that is coming; `None` if `at` is held by now.
    fn claim(&mut self, start: u64, len: usize, at: u64) -> Option<(u64, usize)> {
        let before = self.end_before(at);
        if before > at {
            return None;
        }
        let end = self.until(at, start + len as u64);
        let start = start.max(before);
        let len = saturating_usize(end - start); // no more than it was
        let piece = Piece {
            len,
            content: Content::Coming,
            used: self.now,
        };
        self.pieces.insert(start, piece);
        self.trim();
        Some((start, len))
    }

    /// The run that a read goes on with; `None` if it begins one.
    fn follow(&mut self, offset: u64, end: u64) -> Option<Run> {
        self.now += 1;
        let (now, near) = (self.now, self.sizes.least as u64);
        let follows = |run: &&mut Run| {
            run.used > 0 && (run.next..=run.next.saturating_add(near)).contains(&offset)
        };
        if let Some(run) = self.runs.iter_mut().find(follows) {
            run.next = end;
            run.bytes = run.bytes.saturating_add(end - offset);
            run.used = now;
            return Some(*run);
        }
        let oldest = self.runs.iter_mut().min_by_key(|run| run.used)?;
        *oldest = Run {
            next: end,
            bytes: end - offset,
            used: now,
        };
        None
    }

    /// Drops the pieces that a run has come through, but for the last: walks look back a little.
    fn forget_behind(&mut self, run: Run) {
        let behind = run.next.saturating_sub(self.sizes.behind);
        let first = run.next.saturating_sub(run.bytes).min(behind);
        let within = self.pieces.range(first..behind);
        let passed = within.filter(|(start, piece)| {
            **start + piece.len as u64 <= behind && !matches!(piece.content, Content::Coming)
        });
        for start in passed.map(|(start, _)| *start).collect::<Vec<_>>() {
            self.pieces.remove(&start);
        }
    }

    /// Claims what is to be read ahead of a run in a source of `total` bytes.
    fn claim_ahead(&mut self, run: Run, total: u64) -> Vec<(u64, usize)> {
        let share = saturating_usize(run.bytes) / AHEAD_PIECES;
        let want = share.clamp(self.sizes.least, self.sizes.most);
        let (mut claimed, mut frontier) = (Vec::new(), run.next.max(self.end_before(run.next)));
        for _ in 0..AHEAD_PIECES {
            if let Some(piece) = self.pieces.get(&frontier) {
                frontier += piece.len as u64;
                continue;
            }
            let left = saturating_usize(total.saturating_sub(frontier));
            // No more than was asked for, also where the run is still within the piece before.
            let end = frontier.saturating_add(want as u64);
            if left == 0 || end > run.next.saturating_add(run.bytes) {
                break;
            }
            let Some((start, len)) = self.claim(frontier, want.min(left), frontier) else {
                break;
            };
            claimed.push((start, len));
            frontier = start + len as u64;
        }
        claimed
    }

    /// Drops what was used least lately, until no more is held than may be.
    fn trim(&mut self) {
        let mut held: usize = self.pieces.values().map(|piece| piece.len).sum();
        while held > self.sizes.held() {
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
            held -= len;
        }
    }
}
