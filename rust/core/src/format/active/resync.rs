//! Behind damage: where the next good record begins, found with bounded work.

use super::layout::{
    CHECKSUM_BYTES, Header, MAX_HEADER_BYTES, MIN_RECORD_BYTES, Parsed, UUID_BYTES,
};
use super::walk::ActiveScan;
use crate::checksum::{Incremental, Key, hash};
use crate::cursor::Cursor;
use crate::engine::Options;
use crate::error::Result;
use crate::ledger::tail_end;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window, data_end};
use crate::uuid6;

/// A hash counts as at least so many bytes, and a look at what follows a candidate as so many: what each costs beside the
/// bytes, however few they are. Random bytes of any length stay below two for each of theirs.
const HASH_BYTES: u64 = 64;
const LOOK_BYTES: u64 = 128;

const _: () = assert!(LIMITS.look_piece_bytes >= MAX_HEADER_BYTES as u64);

/// Where damage ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resync {
    /// A good record begins here.
    Followed(u64),
    /// The damaged record's own lengths end it here, and only unused space is behind.
    Lengths(u64),
    /// No good record follows: the last byte that is not zero is in front of `end`. `older` if a record that checks but
    /// does not ascend was met.
    Nothing { end: u64, older: bool },
    /// The search budget ended at this candidate.
    Limit(u64),
}

/// What a search found.
enum Hit {
    At(u64),
    None { older: bool },
    Limit(u64),
}

/// Windows that a search reads through beside the walk's own, and what it learned of the file.
#[derive(Default)]
pub(super) struct Search {
    probe: Window,
    pieces: Window,
    looks: Window,
    data_end: Option<u64>,
}

impl Search {
    /// The offset behind the last byte that is not zero. Read backwards from the end, once.
    pub(super) fn data_end(&mut self, source: &dyn Source, options: &Options) -> Result<u64> {
        if let Some(end) = self.data_end {
            return Ok(end);
        }
        let end = data_end(source, || options.poll())?;
        self.data_end = Some(end);
        Ok(end)
    }

    /// The hash of `len` bytes from `start` on, read in pieces.
    pub(super) fn hash_range(
        &mut self,
        source: &dyn Source,
        options: &Options,
        key: &Key,
        start: u64,
        len: u64,
    ) -> Result<u64> {
        let mut hasher = Incremental::new(key);
        let (mut at, end) = (start, start + len);
        while at < end {
            options.poll()?;
            let piece = saturating_usize(end - at).min(LIMITS.search_piece_bytes);
            self.pieces.load(source, at, piece, piece)?;
            let bytes = self.pieces.bytes(source, at);
            hasher.update(bytes.get(..piece).unwrap_or_default());
            at += piece as u64;
        }
        Ok(hasher.finish())
    }

    /// What stands at `at`, of which at most `want` bytes are read.
    fn header_at(&mut self, source: &dyn Source, at: u64, want: usize) -> Result<Parsed> {
        let left = source.len() - at;
        let min = saturating_usize(left).min(MAX_HEADER_BYTES);
        self.probe.load(source, at, min, want)?;
        Ok(Header::parse(self.probe.bytes(source, at), left))
    }

    /// Whether the record of this header at `at` has the right checksum.
    fn checks(
        &mut self,
        source: &dyn Source,
        options: &Options,
        keys: &[(usize, Key)],
        at: u64,
        header: &Header,
    ) -> Result<bool> {
        if let Some(checks) = checks_in(self.probe.bytes(source, at), keys, header) {
            return Ok(checks);
        }
        self.checks_in_pieces(source, options, keys, at, header)
    }

    /// The same of a record that is not at hand.
    fn checks_in_pieces(
        &mut self,
        source: &dyn Source,
        options: &Options,
        keys: &[(usize, Key)],
        at: u64,
        header: &Header,
    ) -> Result<bool> {
        let stored = stored_checksum(source, at, header)?;
        for (_, key) in keys {
            if self.hash_range(source, options, key, at, header.hashed())? == stored {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a record that ends at `at` is followed by what may follow one: two plausible headers, unused space, the end.
    fn follows_plausibly(
        &mut self,
        source: &dyn Source,
        mut at: u64,
        data_end: u64,
    ) -> Result<bool> {
        for _ in 0..2 {
            if at >= data_end {
                return Ok(true);
            }
            let left = source.len() - at;
            let whole = saturating_usize(left);
            // Not through the probe: that holds the candidates.
            if self.looks.bytes(source, at).len() < whole.min(MAX_HEADER_BYTES) {
                let skip = at % LIMITS.look_piece_bytes;
                let want = (skip + LIMITS.look_piece_bytes).min(skip + left);
                let want = saturating_usize(want);
                self.looks.load(source, at - skip, want, want)?;
            }
            match Header::parse(self.looks.bytes(source, at), left) {
                Parsed::Record(header) if uuid6::is_v6(&header.uuid) => at += header.total(),
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

impl ActiveScan {
    /// Finds where the damage that begins at the walk's offset ends: by its own lengths, else by searching.
    pub(super) fn resync(&mut self) -> Result<Resync> {
        let (source, start) = (self.source.clone(), self.state.at);
        let data_end = self.search.data_end(&*source, &self.options)?;
        // The walk has loaded the longest header there is.
        let bytes = self.window.bytes(&*source, start);
        if let Parsed::Record(header) = Header::parse(bytes, source.len() - start) {
            let end = start + header.total();
            if end < source.len() && self.is_good(end)? {
                return Ok(Resync::Followed(end));
            }
            if end >= data_end && stored_checksum(&*source, start, &header)? != 0 {
                return Ok(Resync::Lengths(end));
            }
        }
        Ok(match self.find_good(start + 1, data_end)? {
            Hit::At(found) => Resync::Followed(found),
            Hit::None { older } => Resync::Nothing {
                end: tail_end(data_end, 1, source.len()),
                older,
            },
            Hit::Limit(at) => Resync::Limit(at),
        })
    }

    /// Whether a good record begins at `at`: version 6, variant 10, greater than the last good one, checksum right.
    fn is_good(&mut self, at: u64) -> Result<bool> {
        let source = self.source.clone();
        // Most of it is in the walk's own window.
        let mut parsed = Header::parse(self.window.bytes(&*source, at), source.len() - at);
        if parsed == Parsed::NeedMore {
            parsed = self.search.header_at(&*source, at, MAX_HEADER_BYTES)?;
        }
        let Parsed::Record(header) = parsed else {
            return Ok(false);
        };
        if !uuid6::is_v6(&header.uuid) || self.state.last.is_some_and(|last| header.uuid <= last) {
            return Ok(false);
        }
        let keys = self.candidate_keys();
        if !self.afford(&header, &keys) {
            return Ok(false);
        }
        if let Some(checks) = checks_in(self.window.bytes(&*source, at), &keys, &header) {
            return Ok(checks);
        }
        self.search
            .checks_in_pieces(&*source, &self.options, &keys, at, &header)
    }

    /// Takes what hashing a record under each of these keys costs from the budget, if that much is left.
    fn afford(&mut self, header: &Header, keys: &[(usize, Key)]) -> bool {
        let each = header.total().max(HASH_BYTES);
        self.spend(each.saturating_mul(keys.len() as u64))
    }

    /// Takes so much from the budget, if it is left.
    fn spend(&mut self, bytes: u64) -> bool {
        self.state.budget.try_spend(bytes, self.source.len())
    }

    /// Searches byte by byte for a good record at `from` or behind it.
    fn find_good(&mut self, from: u64, data_end: u64) -> Result<Hit> {
        let source = self.source.clone();
        let len = source.len();
        let keys = self.candidate_keys();
        let (mut at, mut older, mut polled) = (from, false, from);
        let mut want = LIMITS.first_search_piece_bytes;
        // A UUID's version is not zero, so no record begins behind the last byte that is not.
        while at < data_end && at + MIN_RECORD_BYTES <= len {
            if at >= polled {
                self.options.poll()?;
                polled = at + LIMITS.search_piece_bytes as u64;
            }
            let left = saturating_usize(len - at);
            // Short damage lies in the walk's own window.
            let min = left.min(MAX_HEADER_BYTES);
            let is_held = self.window.bytes(&*source, at).len() >= min;
            if !is_held {
                self.search.probe.load(&*source, at, min, want)?;
            }
            let window = if is_held {
                &self.window
            } else {
                &self.search.probe
            };
            let bytes = window.bytes(&*source, at);
            // Where the window ends before the file does, its last bytes are looked at from the next one.
            let last_whole = if bytes.len() == left {
                left
            } else {
                bytes.len() - MAX_HEADER_BYTES + 1
            };
            let reach = last_whole.min(LIMITS.search_piece_bytes);
            let Some((skip, header)) = next_candidate(bytes, reach, len - at) else {
                at += reach as u64;
                want = LIMITS.search_piece_bytes.min(want * 2);
                continue;
            };
            let position = at + skip as u64;
            at = position + 1;
            let ascends = self.state.last.is_none_or(|last| header.uuid > last);
            if !ascends && older {
                continue; // that one such record checks is known, and more of them change nothing
            }
            let end = position + header.total();
            if self.state.budget.wants_plausible(header.total()) {
                if !self.spend(LOOK_BYTES) {
                    return Ok(Hit::Limit(position));
                }
                if !self.search.follows_plausibly(&*source, end, data_end)? {
                    continue;
                }
            }
            if !self.afford(&header, &keys) {
                return Ok(Hit::Limit(position));
            }
            let window = if is_held {
                &self.window
            } else {
                &self.search.probe
            };
            let checks = match checks_in(window.bytes(&*source, position), &keys, &header) {
                Some(checks) => checks,
                None => self.search.checks_in_pieces(
                    &*source,
                    &self.options,
                    &keys,
                    position,
                    &header,
                )?,
            };
            if checks {
                self.state.checked = true;
                self.suspects_key = false;
                if ascends {
                    return Ok(Hit::At(position));
                }
                older = true;
            }
        }
        Ok(Hit::None { older })
    }

    /// Whether not one record checks although lengths and UUIDs lead soundly from the beginning of the file to its end, or
    /// through so many records that only an unfinished write can have ended them.
    ///
    /// Stops at the first record that checks, so only a file that really is under another key is hashed whole.
    pub(super) fn nothing_checks(&mut self) -> Result<bool> {
        let source = self.source.clone();
        let data_end = self.search.data_end(&*source, &self.options)?;
        let keys = self.candidate_keys();
        let (mut at, mut last, mut records) = (0, None, 0);
        while at < data_end {
            self.options.poll()?;
            let Parsed::Record(header) =
                self.search
                    .header_at(&*source, at, LIMITS.search_piece_bytes)?
            else {
                return Ok(records >= LIMITS.wrong_key_records);
            };
            let ascends = last.is_none_or(|last: [u8; UUID_BYTES]| header.uuid > last);
            // A checksum of zeros was not written yet, under no key.
            let written = match stored_in(self.search.probe.bytes(&*source, at), &header) {
                Some(stored) => stored != 0,
                None => stored_checksum(&*source, at, &header)? != 0,
            };
            if !uuid6::is_v6(&header.uuid) || !ascends || !written {
                return Ok(records >= LIMITS.wrong_key_records);
            }
            if self
                .search
                .checks(&*source, &self.options, &keys, at, &header)?
            {
                return Ok(false);
            }
            at += header.total();
            last = Some(header.uuid);
            records += 1;
        }
        Ok(true)
    }
}

/// Whether the record of this header, with which `bytes` begin, has the right checksum under one of these keys; `None` where
/// it is not whole in `bytes`, or too long to be hashed in one go.
fn checks_in(bytes: &[u8], keys: &[(usize, Key)], header: &Header) -> Option<bool> {
    let stored = stored_in(bytes, header)?;
    let len = usize::try_from(header.hashed()).ok();
    let body = bytes.get(..len.filter(|len| *len <= LIMITS.search_piece_bytes)?)?;
    Some(keys.iter().any(|(_, key)| hash(key, body) == stored))
}

/// The checksum of the record of this header, with which `bytes` begin, if they reach that far.
fn stored_in(bytes: &[u8], header: &Header) -> Option<u64> {
    let start = usize::try_from(header.hashed()).ok()?;
    Cursor::new(bytes.get(start..)?).u64_be()
}

/// How many bytes of a search are looked at together.
const STRETCH_BYTES: usize = 16;

/// The checksum that the record of this header at `at` has in the file.
pub(super) fn stored_checksum(source: &dyn Source, at: u64, header: &Header) -> Result<u64> {
    let mut stored = [0; CHECKSUM_BYTES];
    source.read_exact_at(at + header.hashed(), &mut stored)?;
    Ok(u64::from_be_bytes(stored))
}

/// The first place within the first `reach` bytes at which a record with a version-6 UUID and lengths that fit could begin;
/// the file has `left` bytes from the first of `bytes` on.
fn next_candidate(bytes: &[u8], reach: usize, left: u64) -> Option<(usize, Header)> {
    let mut from = 0;
    while from < reach {
        let versions = bytes.get(from + 6..)?;
        let variants = bytes.get(from + 8..)?;
        let is_v6 = |version: &u8, variant: &u8| (version >> 4 == 6) & (variant >> 6 == 0b10);
        // Whole stretches without one are passed over without a branch for each byte.
        if let (Some(versions), Some(variants)) = (
            versions.first_chunk::<STRETCH_BYTES>(),
            variants.first_chunk::<STRETCH_BYTES>(),
        ) {
            let pairs = versions.iter().zip(variants);
            if !pairs.fold(false, |any, (version, variant)| {
                any | is_v6(version, variant)
            }) {
                from += STRETCH_BYTES;
                continue;
            }
        }
        let mut pairs = versions
            .iter()
            .zip(variants)
            .take((reach - from).min(STRETCH_BYTES));
        let Some(skip) = pairs.position(|(version, variant)| is_v6(version, variant)) else {
            from += STRETCH_BYTES;
            continue;
        };
        let place = from + skip;
        if let Parsed::Record(header) = Header::parse(bytes.get(place..)?, left - place as u64) {
            return Some((place, header));
        }
        from = place + 1;
    }
    None
}
