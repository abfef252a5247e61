//! Reads a segment's sections, each through a window of its own: entries, checksums and messages are read side by
//! side.

use std::ops::Range;
use std::sync::Arc;

use super::front::{Front, Segment};
use super::layout::{
    CHECKSUM_BYTES, ENTRY_BYTES, Entry, Header, MAX_HEADER_BYTES, Message, Parsed, UUID_BYTES,
};
use crate::bug::OrBug;
use crate::checksum::Incremental;
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};
use crate::spec::Types;
use crate::walk::Options;

/// Reads a segment's sections, without any judgement.
pub(super) struct Reader {
    pub(super) source: Arc<dyn Source>,
    pub(super) options: Options,
    pub(super) front: Front,
    /// How much is read ahead, in bytes.
    ahead: usize,
    entries: Window,
    /// If reading jumps around: blocks of the index, so that looks near each other take one read. Each window has the
    /// last one that was read of all that share it.
    blocks: Option<Vec<Window>>,
    checksums: Window,
    /// The messages that the walk emits.
    data: Window,
    /// Headers and messages elsewhere.
    probe: Window,
}

impl Reader {
    /// A reader for reading from front to back.
    pub(super) fn sequential(segment: &Segment) -> Self {
        Self::new(segment, segment.options.window_bytes, None)
    }

    /// A reader for random access. It reads what is asked for, and some entries beside that.
    pub(super) fn sparse(segment: &Segment) -> Self {
        Self::new(segment, 0, Some(Vec::new()))
    }

    /// Limits read-ahead to this entry, and to the message before its own, which begins at `data_until`.
    pub(super) const fn read_ahead_until(&mut self, entry: u64, data_until: u64) {
        // The entries after it say where the messages before them end.
        self.entries
            .read_ahead_until(self.front.entry_at(entry + 2));
        self.data.read_ahead_until(data_until);
    }

    /// Drops what was read, except for entries.
    pub(super) fn forget(&mut self) {
        for window in [&mut self.checksums, &mut self.data, &mut self.probe] {
            window.forget();
        }
    }

    fn new(segment: &Segment, ahead: usize, blocks: Option<Vec<Window>>) -> Self {
        Self {
            source: segment.source.clone(),
            options: segment.options.clone(),
            front: segment.front,
            ahead,
            entries: Window::default(),
            blocks,
            checksums: Window::default(),
            data: Window::default(),
            probe: Window::default(),
        }
    }

    /// Entry number `number`. After the last: the terminator.
    pub(super) fn entry(&mut self, number: u64) -> Result<Entry> {
        self.entry_in_view(number, 1)
    }

    /// The same, and loads the ones after it, so that there are `view` in all.
    pub(super) fn entry_in_view(&mut self, number: u64, view: u64) -> Result<Entry> {
        let at = self.front.entry_at(number);
        // Most entries are at hand: then nothing is computed of what would be read.
        if self.blocks.is_none()
            && let bytes = self.entries.bytes(&*self.source, at)
            && bytes.len() as u64 >= view * ENTRY_BYTES as u64
            && let Some(bytes) = bytes.first_chunk()
        {
            return Ok(Entry::parse(number, bytes));
        }
        self.load_entry(number, view)
    }

    /// The same as [`entry_in_view`](Self::entry_in_view), if a look at the window does not suffice.
    #[inline(never)]
    fn load_entry(&mut self, number: u64, view: u64) -> Result<Entry> {
        let (count, at) = (self.front.entries, self.front.entry_at(number));
        let bytes_of = |entries: u64| saturating_usize(entries.saturating_mul(ENTRY_BYTES as u64));
        let window = match &mut self.blocks {
            Some(blocks) if self.source.as_slice().is_none() => {
                blocks.resize_with(LIMITS.max_index_blocks, Window::default);
                let block = number / LIMITS.index_block_entries;
                let first = block * LIMITS.index_block_entries;
                let left = (count + 1).saturating_sub(first);
                let len = bytes_of(left.min(LIMITS.index_block_entries));
                let place = saturating_usize(block % LIMITS.max_index_blocks as u64);
                let window = blocks.get_mut(place).or_bug("a window for each block")?;
                window.load(&*self.source, self.front.entry_at(first), len, len)?;
                window
            }
            _ => {
                let left = count.saturating_sub(number).max(1);
                let (min, want) = (bytes_of(view.min(left)), self.ahead.min(bytes_of(left)));
                self.entries.load(&*self.source, at, min, want)?;
                &mut self.entries
            }
        };
        match window.bytes(&*self.source, at).first_chunk() {
            Some(bytes) => Ok(Entry::parse(number, bytes)),
            None => Err(self.changed(at)),
        }
    }

    /// Where an entry's message begins by its offset. After the last entry: where the data ends.
    pub(super) fn beginning(&mut self, number: u64) -> Result<u64> {
        if number >= self.front.entries {
            return Ok(self.front.data_end);
        }
        Ok(self.entry(number)?.offset)
    }

    /// What the file has of the checksum of entry number `number`: its bits, and a mask of the ones that are there.
    pub(super) fn checksum(&mut self, number: u64) -> Result<(u64, u64)> {
        let source = &*self.source;
        let Some(trailer) = &self.front.trailer else {
            return Ok((0, 0));
        };
        let at = trailer.checksum_at(number);
        if self.front.trailer_of(number).is_some() {
            let want = self.ahead.min(LIMITS.checksums_ahead_bytes);
            let stored = self.checksums.exact_array(source, at, want)?;
            return Ok((u64::from_be_bytes(*stored), u64::MAX));
        }
        let (mut stored, mut mask) = ([0; CHECKSUM_BYTES], [0; CHECKSUM_BYTES]);
        for ((at, stored), mask) in (at..source.len()).zip(&mut stored).zip(&mut mask) {
            source.read_exact_at(at, std::slice::from_mut(stored))?;
            *mask = u8::MAX;
        }
        Ok((u64::from_be_bytes(stored), u64::from_be_bytes(mask)))
    }

    /// The entries with these numbers that are in the window.
    pub(super) fn entries_in_view(&self, numbers: Range<u64>) -> &[[u8; ENTRY_BYTES]] {
        let at = self.front.entry_at(numbers.start);
        let count = saturating_usize(numbers.end.saturating_sub(numbers.start));
        let entries = self.entries.bytes(&*self.source, at).as_chunks().0;
        entries.split_at(count.min(entries.len())).0
    }

    /// The checksums from this offset on that are in the window, and the bytes after them.
    pub(super) fn checksums_in_view(&self, at: u64) -> &[[u8; CHECKSUM_BYTES]] {
        self.checksums.bytes(&*self.source, at).as_chunks().0
    }

    /// The message header at `at` of the data.
    pub(super) fn header(&mut self, at: u64) -> Result<Parsed> {
        if let Some(parsed) = self.header_in_window(at) {
            return Ok(parsed);
        }
        let left = self.front.data_end.saturating_sub(at);
        Ok(Header::parse(self.probed(at, header_bytes(left))?, left))
    }

    /// Bytes that need not be emitted.
    fn probed(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        let source = &*self.source;
        let most = LIMITS.sealed_probe_bytes;
        self.probe.exact_wary(source, at, len, most)
    }

    /// The same, if the window of emitted messages has enough of it.
    pub(super) fn header_in_window(&self, at: u64) -> Option<Parsed> {
        let left = self.front.data_end.saturating_sub(at);
        let bytes = self.bytes(at);
        match Header::parse(bytes, left) {
            Err(short) if short.in_header && bytes.len() < header_bytes(left) => None,
            parsed => Some(parsed),
        }
    }

    /// Whether a message's type is one of these.
    pub(super) fn has_type(&mut self, message: &Message, types: &Types) -> Result<bool> {
        if types.are_all() {
            return Ok(true);
        }
        let (at, start) = (message.position, message.header.value_start());
        let bytes = match self.in_window(at, start) {
            Some(bytes) => bytes,
            None => self.probed(at, saturating_usize(start))?,
        };
        Ok(types.contain(message.type_bytes(bytes)))
    }

    /// HighwayHash-64 of a UUID and the message of `len` bytes at `at`.
    pub(super) fn hash(&mut self, uuid: &[u8; UUID_BYTES], at: u64, len: u64) -> Result<u64> {
        let mut hasher = Incremental::new(&self.front.key);
        hasher.update(uuid);
        let (mut at, end) = (at, at.saturating_add(len));
        while at < end {
            let piece = saturating_usize(end - at).min(LIMITS.sealed_piece_bytes);
            let bytes = match self.in_window(at, piece as u64) {
                Some(bytes) => bytes,
                None => self.probed(at, piece)?,
            };
            hasher.update(bytes);
            at += piece as u64;
            if at < end {
                self.options.poll()?;
            }
        }
        Ok(hasher.finish())
    }

    /// How many bytes of a message are emitted.
    pub(super) const fn emitted_bytes(&self, message: &Message) -> u64 {
        match self.options.values {
            true => message.header.total(),
            false => message.header.value_start(),
        }
    }

    /// Refuses a message that is larger than may be emitted.
    ///
    /// # Errors
    /// [`Error::Limit`].
    pub(super) fn admit(&self, message: &Message) -> Result<()> {
        match self.options.values && message.header.total() > self.options.record_bytes {
            true => Err(self.too_large(message)),
            false => Ok(()),
        }
    }

    #[cold]
    fn too_large(&self, message: &Message) -> Error {
        let (total, most) = (message.header.total(), self.options.record_bytes);
        let what = format!("the message at offset {}", message.position);
        Error::record_too_large(self.source.path(), what, total, most)
    }

    /// Loads the message at `at` into the window of emitted messages: its lengths and type, and all of it if
    /// `body` is set and it is not too long to be loaded unverified. Moves the window. A message of the `expected`
    /// length takes one read.
    pub(super) fn load_message(&mut self, at: u64, body: bool, expected: u64) -> Result<()> {
        let left = self.front.data_end.saturating_sub(at);
        let expected = saturating_usize(expected.min(left));
        let want = match body {
            true => self.ahead.max(expected.min(LIMITS.sealed_probe_bytes)),
            false => self.ahead,
        };
        self.load(at, header_bytes(left), want)?;
        match Header::parse(self.bytes(at), left) {
            Ok(header) if body && header.total() <= LIMITS.unverified_bytes => {
                self.load_whole(at, header.total())
            }
            _ => Ok(()),
        }
    }

    /// Loads a whole message into the window of emitted messages. Moves the window.
    pub(super) fn load_whole(&mut self, at: u64, len: u64) -> Result<()> {
        let len = saturating_usize(len);
        self.load(at, len, self.ahead)
    }

    /// Loads the bytes from `at` on into the window of emitted messages, and the length of a UUID before them.
    fn load(&mut self, at: u64, min: usize, want: usize) -> Result<()> {
        let from = at.saturating_sub(UUID_BYTES as u64);
        let [min, want] = [min, want].map(|len| len.saturating_add(UUID_BYTES));
        self.data.load(&*self.source, from, min, want)
    }

    /// The window's bytes from `at` on, together with the bytes before them, as many as a UUID has, if the window
    /// has those. Returns the number of bytes before `at`, and all bytes.
    pub(super) fn bytes_led(&self, at: u64) -> (usize, &[u8]) {
        let led = at.checked_sub(UUID_BYTES as u64).map(|at| self.bytes(at));
        match led {
            Some(bytes) if bytes.len() > UUID_BYTES => (UUID_BYTES, bytes),
            _ => (0, self.bytes(at)),
        }
    }

    /// The bytes from `at` on in the window of emitted messages.
    pub(super) fn bytes(&self, at: u64) -> &[u8] {
        self.data.bytes(&*self.source, at)
    }

    /// The `len` bytes at `at`, if the window of emitted messages has them.
    pub(super) fn in_window(&self, at: u64, len: u64) -> Option<&[u8]> {
        self.bytes(at).get(..saturating_usize(len))
    }

    /// The error of bytes that are no longer there.
    pub(super) fn changed(&self, at: u64) -> Error {
        Error::changed(self.source.path(), &format!("the message at offset {at}"))
    }
}

/// How many bytes a message's lengths and type can take if `left` bytes are left.
fn header_bytes(left: u64) -> usize {
    saturating_usize(left).min(MAX_HEADER_BYTES)
}
