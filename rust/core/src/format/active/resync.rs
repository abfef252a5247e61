//! Resynchronising (rule 10): finds where damage ends, with bounded work (rule 34).

use super::judge::{Structure, Sums, checksum, key_of, order, sequence, structure, version};
use super::layout::{CHECKSUM_BYTES, Header, MAX_HEADER_BYTES, MIN_RECORD_BYTES, UUID_BYTES};
use crate::bug::OrBug;
use crate::checksum::{Incremental, Key};
use crate::error::Result;
use crate::ledger::tail_end;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};
use crate::walk::stream::Input;
use crate::walk::{Budget, follows_plausibly};

/// The budget charges each hash and each look after a candidate at least this many bytes: their cost apart from
/// the bytes themselves. Random bytes then cost less than two for each byte of the file.
const HASH_BYTES: u64 = 64;
const LOOK_BYTES: u64 = 128;

const _: () = assert!(LIMITS.look_piece_bytes >= MAX_HEADER_BYTES as u64);

/// Where damage ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A good record begins here.
    Followed(u64),
    /// The damaged record's own lengths end it here, and only unused space follows.
    Lengths(u64),
    /// No good record follows. The last nonzero byte is before this offset.
    Nothing(u64),
    /// The search budget ended at this candidate.
    Limit(u64),
}

/// The result of resynchronising.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resynced {
    pub(super) end: End,
    /// Whether the search met a verified record. Unless that record is the end, its UUID does not ascend.
    pub(super) proven: bool,
}

/// The result for one candidate.
enum Candidate {
    Verified,
    Failed,
    /// The search budget ends here.
    Limit,
}

/// Windows that only searches read through.
#[derive(Default)]
pub(super) struct Search {
    probe: Window,
    pieces: Window,
    looks: Window,
}

/// A search of a file, with the state that it needs from the walk.
pub(super) struct Resync<'a> {
    /// Its window holds short damage whole.
    pub(super) input: &'a Input,
    pub(super) search: &'a mut Search,
    /// The budget that all searches of the walk share.
    pub(super) budget: &'a mut Budget,
    /// The keys that a record may be under: the file's key, or all of them while it is unknown.
    pub(super) keys: &'a [Key],
    /// The last good UUID.
    pub(super) last: Option<[u8; UUID_BYTES]>,
}

impl<'a> Resync<'a> {
    /// Finds where the damage that begins at `start` ends: by its own lengths, else by searching. The walk's
    /// window must hold the longest header from there on, or reach the end of the file.
    pub(super) fn end(&mut self, start: u64) -> Result<Resynced> {
        let data_end = self.input.data_end()?;
        match self.end_by_lengths(start, data_end)? {
            Some(end) => Ok(Resynced { end, proven: false }),
            None => self.search(start + 1, data_end),
        }
    }

    /// The end by the damaged record's own lengths, if these can be trusted.
    fn end_by_lengths(&mut self, start: u64, data_end: u64) -> Result<Option<End>> {
        let bytes = self.input.bytes(start);
        let Some(header) = structure(bytes, self.input.len() - start).record() else {
            return Ok(None);
        };
        let end = start + header.total();
        if end < self.input.len() && self.is_good(end)? {
            return Ok(Some(End::Followed(end)));
        }
        let ends = end >= data_end && stored_checksum(&*self.input.source, start, &header)? != 0;
        Ok(ends.then_some(End::Lengths(end)))
    }

    /// Whether a good record begins at `at`.
    fn is_good(&mut self, at: u64) -> Result<bool> {
        // Most of it is in the walk's own window.
        let bytes = self.input.bytes(at);
        let mut found = structure(bytes, self.input.len() - at);
        if found == Structure::NeedMore {
            found = self.probe(at, MAX_HEADER_BYTES)?;
        }
        let Some(header) = found.record() else {
            return Ok(false);
        };
        if sequence(header.uuid, self.last).is_err() || !self.affords(&header) {
            return Ok(false);
        }
        let available = self.verified_in(bytes, &header);
        self.is_verified(available, at, &header)
    }

    /// Searches byte by byte for a good record at or after `from`.
    fn search(&mut self, from: u64, data_end: u64) -> Result<Resynced> {
        let len = self.input.len();
        let (mut at, mut proven, mut polled) = (from, false, from);
        let mut want = LIMITS.first_search_piece_bytes;
        // A UUID's version is not zero, so no record begins after the last nonzero byte.
        while at < data_end && at + MIN_RECORD_BYTES <= len {
            if at >= polled {
                self.input.options.poll()?;
                polled = at + LIMITS.search_piece_bytes as u64;
            }
            let bytes = self.load(at, want)?;
            // A header may continue in the next bytes, so the last bytes are searched again together with those.
            let last_whole = if bytes.len() as u64 == len - at {
                bytes.len()
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
            let ascends = order(header.uuid, self.last).is_ok();
            if !ascends && proven {
                continue; // one proven record is known already, another changes nothing
            }
            let end = match self.try_candidate(position, &header, data_end)? {
                Candidate::Failed => continue,
                Candidate::Limit => End::Limit(position),
                Candidate::Verified => {
                    proven = true;
                    if !ascends {
                        continue;
                    }
                    End::Followed(position)
                }
            };
            return Ok(Resynced { end, proven });
        }
        let end = End::Nothing(tail_end(data_end, 1, len));
        Ok(Resynced { end, proven })
    }

    /// Hashes a candidate that the last [`load`](Self::load) made available, if the budget allows it.
    fn try_candidate(&mut self, at: u64, header: &Header, data_end: u64) -> Result<Candidate> {
        if self.budget.wants_plausible(header.total()) {
            if !self.budget.try_spend(LOOK_BYTES, self.input.len()) {
                return Ok(Candidate::Limit);
            }
            // Uses a window of its own, because the probe's window holds the candidates.
            let (source, looks) = (&*self.input.source, &mut self.search.looks);
            let after = at + header.total();
            if !follows_plausibly(after, data_end, |at| end_of_plausible(source, looks, at))? {
                return Ok(Candidate::Failed);
            }
        }
        if !self.affords(header) {
            return Ok(Candidate::Limit);
        }
        let available = self.verified_in(self.available(at), header);
        Ok(match self.is_verified(available, at, header)? {
            true => Candidate::Verified,
            false => Candidate::Failed,
        })
    }

    /// Whether no record is verified although lengths and UUIDs are sound from the beginning of the file to its
    /// end, or through enough records that only an interrupted write explains the end.
    ///
    /// Stops at the first verified record, so a file is hashed whole only if it really is under another key.
    pub(super) fn nothing_verifies(&mut self) -> Result<bool> {
        let data_end = self.input.data_end()?;
        let (mut at, mut last, mut records) = (0, None, 0);
        while at < data_end {
            self.input.options.poll()?;
            let header = match self.probe(at, LIMITS.search_piece_bytes)? {
                // A checksum of zeros was never written, whatever the key.
                Structure::Record(header)
                    if self.stored(at, &header)? != 0 && sequence(header.uuid, last).is_ok() =>
                {
                    header
                }
                _ => return Ok(records >= LIMITS.wrong_key_records),
            };
            let available =
                self.verified_in(self.search.probe.bytes(&*self.input.source, at), &header);
            if self.is_verified(available, at, &header)? {
                return Ok(false);
            }
            at += header.total();
            last = Some(header.uuid);
            records += 1;
        }
        Ok(true)
    }

    /// The structure at `at`, through the probe's window. A read takes up to `want` bytes.
    fn probe(&mut self, at: u64, want: usize) -> Result<Structure> {
        let left = self.input.len() - at;
        let min = saturating_usize(left).min(MAX_HEADER_BYTES);
        let probe = &mut self.search.probe;
        probe.load(&*self.input.source, at, min, want)?;
        Ok(structure(probe.bytes(&*self.input.source, at), left))
    }

    /// The stored checksum of a record that the probe's window covers.
    fn stored(&self, at: u64, header: &Header) -> Result<u64> {
        match header.split(self.search.probe.bytes(&*self.input.source, at)) {
            Some((_, stored)) => Ok(stored),
            None => stored_checksum(&*self.input.source, at, header),
        }
    }

    /// Makes the longest header from `at` on available, or the rest of the file.
    fn load(&mut self, at: u64, want: usize) -> Result<&[u8]> {
        if self.in_window(at).is_none() {
            self.probe(at, want)?;
        }
        Ok(self.available(at))
    }

    /// The bytes from `at` on in the walk's own window, if they suffice for any header.
    fn in_window(&self, at: u64) -> Option<&'a [u8]> {
        let enough = saturating_usize(self.input.len() - at).min(MAX_HEADER_BYTES);
        let bytes = self.input.bytes(at);
        (bytes.len() >= enough).then_some(bytes)
    }

    /// The bytes of the walk's window if they suffice, else those of the probe's.
    fn available(&self, at: u64) -> &[u8] {
        match self.in_window(at) {
            Some(bytes) => bytes,
            None => self.search.probe.bytes(&*self.input.source, at),
        }
    }

    /// Charges the budget for hashing a record under each key, if that much is left.
    fn affords(&mut self, header: &Header) -> bool {
        let each = header.total().max(HASH_BYTES);
        let all = each.saturating_mul(self.keys.len() as u64);
        self.budget.try_spend(all, self.input.len())
    }

    /// Whether this header's record, which begins `bytes`, is verified under one of the keys. `None` if the record
    /// is incomplete in `bytes`, or too long to be hashed at once.
    fn verified_in(&self, bytes: &[u8], header: &Header) -> Option<bool> {
        let is_short = header.hashed() <= LIMITS.search_piece_bytes as u64;
        let hashed = header.split(bytes).filter(|_| is_short)?;
        Some(key_of(self.keys, hashed).is_some())
    }

    /// The same. Hashes in pieces if `available` is `None`.
    fn is_verified(&mut self, available: Option<bool>, at: u64, header: &Header) -> Result<bool> {
        match available {
            Some(checks) => Ok(checks),
            None => {
                let (_, sums) = self.sums(at, header)?;
                Ok(checksum(&sums).is_ok())
            }
        }
    }

    /// Hashes a record in pieces, under each key in turn until its checksum matches. Returns the index of the last
    /// key tried and the sums under it.
    pub(super) fn sums(&mut self, at: u64, header: &Header) -> Result<(usize, Sums)> {
        let stored = stored_checksum(&*self.input.source, at, header)?;
        let mut last = None;
        for (place, key) in self.keys.iter().enumerate() {
            let sums = Sums {
                stored,
                computed: self.hash_range(key, at, header.hashed())?,
                key: *key,
            };
            last = Some((place, sums));
            if checksum(&sums).is_ok() {
                break;
            }
        }
        last.or_bug("at least one key")
    }

    /// The hash of `len` bytes from `start` on, read in pieces.
    fn hash_range(&mut self, key: &Key, start: u64, len: u64) -> Result<u64> {
        let mut hasher = Incremental::new(key);
        let (mut at, end) = (start, start + len);
        while at < end {
            self.input.options.poll()?;
            let piece = saturating_usize(end - at).min(LIMITS.search_piece_bytes);
            hasher.update(
                self.search
                    .pieces
                    .exact(&*self.input.source, at, piece, piece)?,
            );
            at += piece as u64;
        }
        Ok(hasher.finish())
    }
}

/// The offset after the record at `at`, if its header is plausible.
fn end_of_plausible(source: &dyn Source, looks: &mut Window, at: u64) -> Result<Option<u64>> {
    let left = source.len() - at;
    if looks.bytes(source, at).len() < saturating_usize(left).min(MAX_HEADER_BYTES) {
        let skip = at % LIMITS.look_piece_bytes;
        let want = saturating_usize((skip + LIMITS.look_piece_bytes).min(skip + left));
        looks.load(source, at - skip, want, want)?;
    }
    let header = structure(looks.bytes(source, at), left).record();
    let plausible = header.filter(|header| version(header.uuid).is_ok());
    Ok(plausible.map(|header| at + header.total()))
}

/// The stored checksum of this header's record at `at`.
fn stored_checksum(source: &dyn Source, at: u64, header: &Header) -> Result<u64> {
    let mut stored = [0; CHECKSUM_BYTES];
    source.read_exact_at(at + header.hashed(), &mut stored)?;
    Ok(u64::from_be_bytes(stored))
}

/// How many bytes the search tests together.
const BLOCK_BYTES: usize = 16;

/// The first position within the first `reach` bytes at which a record with a version-6 UUID and lengths that fit
/// could begin. The file has `left` bytes from the first of `bytes` on.
fn next_candidate(bytes: &[u8], reach: usize, left: u64) -> Option<(usize, Header)> {
    let mut from = 0;
    while from < reach {
        let versions = bytes.get(from + 6..)?;
        let variants = bytes.get(from + 8..)?;
        let is_v6 = |version: &u8, variant: &u8| (version >> 4 == 6) & (variant >> 6 == 0b10);
        // Skips blocks without a candidate, without a branch for each byte.
        if let (Some(versions), Some(variants)) = (
            versions.first_chunk::<BLOCK_BYTES>(),
            variants.first_chunk::<BLOCK_BYTES>(),
        ) {
            let pairs = versions.iter().zip(variants);
            if !pairs.fold(false, |any, (version, variant)| {
                any | is_v6(version, variant)
            }) {
                from += BLOCK_BYTES;
                continue;
            }
        }
        let mut pairs = versions
            .iter()
            .zip(variants)
            .take((reach - from).min(BLOCK_BYTES));
        let Some(skip) = pairs.position(|(version, variant)| is_v6(version, variant)) else {
            from += BLOCK_BYTES;
            continue;
        };
        let place = from + skip;
        let structure = structure(bytes.get(place..)?, left - place as u64);
        if let Some(header) = structure.record() {
            return Some((place, header));
        }
        from = place + 1;
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use std::sync::Arc;

    use super::super::layout::encode;
    use super::*;
    use crate::source::BytesSource;
    use crate::walk::Options;

    fn uuid(tick: u8) -> [u8; UUID_BYTES] {
        (u128::from(tick) << 80 | 6 << 76 | 0b10 << 62).to_be_bytes()
    }

    /// Rule 10, offset by offset, without a budget.
    fn end_slowly(bytes: &[u8], start: usize, last: Option<[u8; UUID_BYTES]>) -> Resynced {
        let judged = |at: usize| {
            let header = structure(&bytes[at..], (bytes.len() - at) as u64).record()?;
            let checks = key_of(&[Key::DEFAULT], header.split(&bytes[at..]).unwrap()).is_some();
            Some((
                at + saturating_usize(header.total()),
                checks && version(header.uuid).is_ok(),
                header,
            ))
        };
        let ascends = |header: &Header| order(header.uuid, last).is_ok();
        let data_end = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |at| at + 1);
        if let Some((end, _, header)) = judged(start) {
            let proven = false;
            if judged(end).is_some_and(|(_, checks, next)| checks && ascends(&next)) {
                let end = End::Followed(end as u64);
                return Resynced { end, proven };
            }
            if end >= data_end && header.split(&bytes[start..]).unwrap().1 != 0 {
                let end = End::Lengths(end as u64);
                return Resynced { end, proven };
            }
        }
        let mut proven = false;
        for at in start + 1..data_end {
            if let Some((_, true, header)) = judged(at) {
                proven = true;
                if ascends(&header) {
                    let end = End::Followed(at as u64);
                    return Resynced { end, proven };
                }
            }
        }
        let end = End::Nothing(data_end as u64);
        Resynced { end, proven }
    }

    proptest! {
        #[test]
        fn damage_ends_where_judging_each_offset_ends_it(
            records in vec((any::<u8>(), 0..3_u8, 0..40_usize), 1..8),
            changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            unused in prop_oneof![Just(0), 0..400_usize],
            start in any::<prop::sample::Index>(),
            last in prop_oneof![Just(None), any::<u8>().prop_map(|tick| Some(uuid(tick)))],
        ) {
            let (mut bytes, mut starts) = (Vec::new(), Vec::new());
            for (tick, type_len, value_len) in records {
                starts.push(bytes.len());
                let type_ = vec![b't'; type_len.into()];
                let value = vec![b'v'; value_len];
                encode(&mut bytes, &Key::DEFAULT, &uuid(tick), &type_, &value).unwrap();
            }
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            let start = *start.get(&starts);
            bytes.resize(bytes.len() + unused, 0);
            let source = BytesSource::new(bytes.clone());
            let found = Resync {
                input: &Input::new(Arc::new(source), Options::default()),
                search: &mut Search::default(),
                budget: &mut Budget::default(),
                keys: &[Key::DEFAULT],
                last,
            }
            .end(start as u64);
            prop_assert_eq!(found.unwrap(), end_slowly(&bytes, start, last));
        }
    }
}
