//! The bytes of a segment, each part through a window of its own: entries, checksums and messages are read side by side.

use std::sync::Arc;

use super::index_blocks::IndexBlocks;
use super::layout::{
    CHECKSUM_BYTES, ENTRY_BYTES, Entry, Header, MAX_HEADER_BYTES, Message, Parsed, UUID_BYTES,
};
use crate::checksum::{Incremental, Key, hash};
use crate::cursor::Cursor;
use crate::engine::{Options, Types};
use crate::error::{Error, Result};
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};

/// Reads a segment's parts. Nothing here knows what is right.
pub(super) struct Reader {
    pub(super) source: Arc<dyn Source>,
    options: Options,
    /// How much is read ahead, in bytes.
    ahead: usize,
    entries: Window,
    /// Where reading goes here and there: what was read of the index.
    blocks: Option<IndexBlocks>,
    checksums: Window,
    /// The messages that the walk hands out.
    data: Window,
    /// Headers and short messages elsewhere.
    probe: Window,
    /// Messages that do not lie in `data`.
    pieces: Window,
    /// A UUID and its message.
    joined: Vec<u8>,
}

impl Reader {
    /// For reading from front to back.
    pub(super) fn sequential(source: Arc<dyn Source>, options: &Options) -> Self {
        let ahead = options.window_bytes;
        Self::new(source, options, ahead, None)
    }

    /// For reading here and there, no more than is asked for, but for some entries beside those.
    pub(super) fn sparse(source: Arc<dyn Source>, options: &Options) -> Self {
        Self::new(source, options, 0, Some(IndexBlocks::default()))
    }

    /// Reads nothing ahead behind an entry and the message in front of its own, which begins at `data_until`.
    pub(super) const fn read_ahead_until(&mut self, entry: u64, data_until: u64) {
        let end = entry.saturating_mul(ENTRY_BYTES as u64);
        // The entries behind it say where the messages in front of them end.
        self.entries
            .read_ahead_until(end.saturating_add(2 * ENTRY_BYTES as u64));
        self.data.read_ahead_until(data_until);
    }

    /// Forgets what was read, but for entries.
    pub(super) fn forget(&mut self) {
        for window in [
            &mut self.checksums,
            &mut self.data,
            &mut self.probe,
            &mut self.pieces,
        ] {
            window.forget();
        }
    }

    fn new(
        source: Arc<dyn Source>,
        options: &Options,
        ahead: usize,
        blocks: Option<IndexBlocks>,
    ) -> Self {
        Self {
            source,
            options: options.clone(),
            ahead,
            entries: Window::default(),
            blocks,
            checksums: Window::default(),
            data: Window::default(),
            probe: Window::default(),
            pieces: Window::default(),
            joined: Vec::new(),
        }
    }

    /// Entry number `number` of an index of `count` entries.
    pub(super) fn entry(&mut self, number: u64, count: u64) -> Result<Entry> {
        self.entry_in_view(number, count, 1)
    }

    /// The same, and makes sure that the two behind it need no reading: they say where its message and the next one end.
    pub(super) fn entry_and_next(&mut self, number: u64, count: u64) -> Result<Entry> {
        self.entry_in_view(number, count, 3)
    }

    fn entry_in_view(&mut self, number: u64, count: u64, view: u64) -> Result<Entry> {
        let at = number.saturating_mul(ENTRY_BYTES as u64);
        if let Some(blocks) = &mut self.blocks
            && self.source.as_slice().is_none()
        {
            let entry = blocks.entry(&*self.source, number, count)?;
            return entry.ok_or_else(|| self.changed(at));
        }
        let left = count.saturating_sub(number).max(1);
        let bytes_of = |entries: u64| {
            let entries = saturating_usize(entries);
            entries.saturating_mul(ENTRY_BYTES)
        };
        let (min, want) = (bytes_of(view.min(left)), self.ahead.min(bytes_of(left)));
        self.entries.load(&*self.source, at, min, want)?;
        match self.entries.bytes(&*self.source, at).first_chunk() {
            Some(bytes) => Ok(Entry::parse(bytes)),
            None => Err(self.changed(at)),
        }
    }

    /// The checksum at this offset of the trailer.
    pub(super) fn checksum(&mut self, at: u64) -> Result<u64> {
        let want = self.ahead.min(LIMITS.checksums_ahead_bytes);
        self.checksums
            .load(&*self.source, at, CHECKSUM_BYTES, want)?;
        let stored = Cursor::new(self.checksums.bytes(&*self.source, at)).u64_be();
        stored.ok_or_else(|| self.changed(at))
    }

    /// What is in view of `count` entries from number `number` on.
    pub(super) fn entries_in_view(&self, number: u64, count: usize) -> &[[u8; ENTRY_BYTES]] {
        let at = number.saturating_mul(ENTRY_BYTES as u64);
        let entries = self.entries.bytes(&*self.source, at).as_chunks().0;
        entries.split_at(count.min(entries.len())).0
    }

    /// What is in view of the checksums from this offset on, and of what is behind them.
    pub(super) fn checksums_in_view(&self, at: u64) -> &[[u8; CHECKSUM_BYTES]] {
        self.checksums.bytes(&*self.source, at).as_chunks().0
    }

    /// What stands at `at` of data that ends at `end`.
    pub(super) fn header(&mut self, at: u64, end: u64) -> Result<Parsed> {
        if let Some(parsed) = self.held_header(at, end) {
            return Ok(parsed);
        }
        let left = end.saturating_sub(at);
        let needed = header_bytes(left);
        self.probe
            .load_wary(&*self.source, at, needed, LIMITS.sealed_probe_bytes)?;
        Ok(Header::parse(self.probe.bytes(&*self.source, at), left))
    }

    /// The same, if the window that is handed out has enough of it.
    pub(super) fn held_header(&self, at: u64, end: u64) -> Option<Parsed> {
        let left = end.saturating_sub(at);
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
        if let Some(bytes) = self.held(at, start) {
            return Ok(types.contain(message.type_bytes(bytes)));
        }
        let needed = saturating_usize(start);
        self.probe
            .load_wary(&*self.source, at, needed, LIMITS.sealed_probe_bytes)?;
        let bytes = held(&self.probe, &*self.source, at, start);
        let bytes = bytes.ok_or_else(|| self.changed(at))?;
        Ok(types.contain(message.type_bytes(bytes)))
    }

    /// HighwayHash-64 of a UUID and the message of `len` bytes at `at`.
    pub(super) fn hash(
        &mut self,
        key: &Key,
        uuid: &[u8; UUID_BYTES],
        at: u64,
        len: u64,
    ) -> Result<u64> {
        let source = &*self.source;
        let message = held(&self.data, source, at, len);
        if let Some(message) = message.filter(|_| len <= LIMITS.copied_bytes) {
            self.joined.clear();
            self.joined.extend_from_slice(uuid);
            self.joined.extend_from_slice(message);
            return Ok(hash(key, &self.joined));
        }
        let mut hasher = Incremental::new(key);
        hasher.update(uuid);
        if let Some(message) = message.filter(|held| held.len() <= LIMITS.sealed_piece_bytes) {
            hasher.update(message);
            return Ok(hasher.finish());
        }
        if let Some(short) = usize::try_from(len)
            .ok()
            .filter(|len| *len <= LIMITS.sealed_probe_bytes)
        {
            self.probe
                .load_wary(&*self.source, at, short, LIMITS.sealed_probe_bytes)?;
            let message = held(&self.probe, &*self.source, at, len);
            hasher.update(message.ok_or_else(|| self.changed(at))?);
            return Ok(hasher.finish());
        }
        let (mut at, end) = (at, at.saturating_add(len));
        while at < end {
            self.options.poll()?;
            let piece = saturating_usize(end - at).min(LIMITS.sealed_piece_bytes);
            let held = held(&self.data, &*self.source, at, piece as u64);
            let bytes = match held {
                Some(bytes) => bytes,
                None => {
                    self.pieces.load(&*self.source, at, piece, piece)?;
                    let bytes = self.pieces.bytes(&*self.source, at).get(..piece);
                    bytes.ok_or_else(|| self.changed(at))?
                }
            };
            hasher.update(bytes);
            at += piece as u64;
        }
        Ok(hasher.finish())
    }

    /// Asks whether to stop.
    pub(super) fn poll(&self) -> Result<()> {
        self.options.poll()
    }

    /// Makes the message at `at` of data that ends at `end` part of the window that is handed out: its lengths and type,
    /// and all of it if `body` is set and it is not too long to be believed unchecked. Moves the window.
    pub(super) fn bring(&mut self, at: u64, end: u64, body: bool) -> Result<()> {
        self.bring_expected(at, end, body, 0)
    }

    /// As [`bring`](Self::bring), of a message that is expected to be so long, so that one read does.
    pub(super) fn bring_expected(
        &mut self,
        at: u64,
        end: u64,
        body: bool,
        expected: u64,
    ) -> Result<()> {
        let left = end.saturating_sub(at);
        let expected = saturating_usize(expected.min(left));
        let want = self.ahead.max(if body {
            expected.min(LIMITS.sealed_probe_bytes)
        } else {
            0
        });
        self.load(at, header_bytes(left), want)?;
        let header = Header::parse(self.data.bytes(&*self.source, at), left);
        match header {
            Ok(header) if body && header.total() <= LIMITS.unverified_bytes => {
                self.bring_whole(at, header.total())
            }
            _ => Ok(()),
        }
    }

    /// Makes all of a message part of the window that is handed out. Moves the window.
    pub(super) fn bring_whole(&mut self, at: u64, len: u64) -> Result<()> {
        let len = saturating_usize(len);
        self.load(at, len, self.ahead)
    }

    /// Makes the bytes from `at` on part of the window that is handed out, and as many in front of them as a UUID has.
    fn load(&mut self, at: u64, min: usize, want: usize) -> Result<()> {
        let from = at.saturating_sub(UUID_BYTES as u64);
        let [min, want] = [min, want].map(|len| len.saturating_add(UUID_BYTES));
        self.data.load(&*self.source, from, min, want)
    }

    /// The bytes from `at` on of the window that is handed out, and, where they are there, as many in front of them as a UUID
    /// has: how many that is, and all of them.
    pub(super) fn bytes_led(&self, at: u64) -> (usize, &[u8]) {
        let led = at.checked_sub(UUID_BYTES as u64).map(|at| self.bytes(at));
        match led {
            Some(bytes) if bytes.len() > UUID_BYTES => (UUID_BYTES, bytes),
            _ => (0, self.bytes(at)),
        }
    }

    /// The bytes from `at` on of the window that is handed out.
    pub(super) fn bytes(&self, at: u64) -> &[u8] {
        self.data.bytes(&*self.source, at)
    }

    /// The `len` bytes at `at`, if the window that is handed out has them.
    pub(super) fn held(&self, at: u64, len: u64) -> Option<&[u8]> {
        held(&self.data, &*self.source, at, len)
    }

    /// The error of bytes that should be there and are not.
    pub(super) fn changed(&self, at: u64) -> Error {
        Error::changed(self.source.path(), &format!("the message at offset {at}"))
    }
}

fn held<'a>(window: &'a Window, source: &'a dyn Source, at: u64, len: u64) -> Option<&'a [u8]> {
    window.bytes(source, at).get(..usize::try_from(len).ok()?)
}

/// How many bytes a message's lengths and type can take where so many are left.
fn header_bytes(left: u64) -> usize {
    saturating_usize(left).min(MAX_HEADER_BYTES)
}

/// The `N` bytes at `at`; the caller has made sure that they are within the source.
pub(super) fn read_array<const N: usize>(source: &dyn Source, at: u64) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    source.read_exact_at(at, &mut bytes)?;
    Ok(bytes)
}
