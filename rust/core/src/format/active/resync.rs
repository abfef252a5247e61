//! Resynchronising (rule 10): finds where damage ends, with bounded work (rule 34).

use super::judge::{Sums, checksum, order, record, sequence, version};
use super::layout::{Header, MAX_HEADER_BYTES};
use super::walk::ActiveScan;
use crate::bug::OrBug;
use crate::checksum::{Incremental, hash};
use crate::error::Result;
use crate::ledger::Fate;
use crate::limits::LIMITS;
use crate::saturating::saturating_usize;
use crate::walk::follows_plausibly;
use crate::walk::input::{Input, Search};
use crate::walk::stream::End;

/// The budget charges each hash and each look after a candidate at least this many bytes: their cost apart from
/// the bytes themselves. Random bytes then cost less than two for each byte of the file.
const HASH_BYTES: u64 = 64;
const LOOK_BYTES: u64 = 128;

const _: () = assert!(LIMITS.look_piece_bytes >= MAX_HEADER_BYTES as u64);

/// The result for one candidate.
enum Candidate {
    Verified,
    Failed,
    /// The search budget ends here.
    Limit,
}

impl ActiveScan {
    /// Finds where the damage that begins at `start` ends: by its own lengths, else by searching. The window has the longest header
    /// from there on, or the rest of the file.
    pub(super) fn end_of_damage(&mut self, start: u64) -> Result<End> {
        let data_end = self.input.data_end()?;
        match self.end_by_lengths(start, data_end)? {
            Some(end) => Ok(end),
            None => self.search(start + 1, data_end),
        }
    }

    /// The end by the damaged record's own lengths, if these can be trusted.
    fn end_by_lengths(&mut self, start: u64, data_end: u64) -> Result<Option<End>> {
        let len = self.input.len();
        let Some(header) = record(self.input.bytes(start), len - start) else {
            return Ok(None);
        };
        let end = start + header.total();
        if end < len && self.is_good(end)? {
            return Ok(Some(End::Followed(end)));
        }
        let ends = end >= data_end && self.stored(start, &header)? != 0;
        Ok(ends.then_some(End::Last(end, Fate::of_tail(self.state.verified))))
    }

    /// Whether a good record begins at `at`.
    fn is_good(&mut self, at: u64) -> Result<bool> {
        let Some(header) = self.header(at, MAX_HEADER_BYTES)? else {
            return Ok(false);
        };
        if sequence(header.uuid, self.state.last).is_err() || !self.affords(&header) {
            return Ok(false);
        }
        self.is_verified(at, &header)
    }

    /// Searches byte by byte for a good record at or after `from`.
    fn search(&mut self, from: u64, data_end: u64) -> Result<End> {
        // A UUID's version is not zero, so no record begins after the last nonzero byte.
        let (mut search, mut proven) = (Search::new(from, data_end), false);
        while let Some((at, header)) =
            search.next(&mut self.input, MAX_HEADER_BYTES, 1, next_candidate)?
        {
            let ascends = order(header.uuid, self.state.last).is_ok();
            if !ascends && proven {
                continue; // one proven record is known already, another changes nothing
            }
            match self.try_candidate(at, &header, data_end)? {
                Candidate::Failed => continue,
                Candidate::Limit => return Ok(End::Limit(at)),
                Candidate::Verified => {}
            }
            proven = true;
            (self.state.verified, self.state.suspects_key) = (true, false);
            if ascends {
                return Ok(End::Followed(at));
            }
        }
        Ok(End::Nothing(match proven {
            true => Fate::Corrupt,
            false => Fate::of_tail(self.state.verified),
        }))
    }

    /// Hashes a candidate of the search, if the budget allows it.
    fn try_candidate(&mut self, at: u64, header: &Header, data_end: u64) -> Result<Candidate> {
        if self.budget.wants_plausible(header.total()) {
            if !self.budget.try_spend(LOOK_BYTES, self.input.len()) {
                return Ok(Candidate::Limit);
            }
            let (input, after) = (&mut self.input, at + header.total());
            if !follows_plausibly(after, data_end, |at| end_of_plausible(input, at))? {
                return Ok(Candidate::Failed);
            }
        }
        if !self.affords(header) {
            return Ok(Candidate::Limit);
        }
        Ok(match self.is_verified(at, header)? {
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
            let header = match self.header(at, LIMITS.search_piece_bytes)? {
                // A checksum of zeros was never written, whatever the key.
                Some(header)
                    if self.stored(at, &header)? != 0 && sequence(header.uuid, last).is_ok() =>
                {
                    header
                }
                _ => return Ok(records >= LIMITS.wrong_key_records),
            };
            if self.is_verified(at, &header)? {
                return Ok(false);
            }
            at += header.total();
            last = Some(header.uuid);
            records += 1;
        }
        Ok(true)
    }

    /// The header of a record at `at`, ahead of the window, that lies within the file. A read takes up to `want` bytes.
    fn header(&mut self, at: u64, want: usize) -> Result<Option<Header>> {
        let left = self.input.len() - at;
        let min = saturating_usize(left).min(MAX_HEADER_BYTES);
        Ok(record(self.input.ahead(at, min, want)?, left))
    }

    /// The stored checksum of this header's record at `at`.
    fn stored(&self, at: u64, header: &Header) -> Result<u64> {
        Ok(u64::from_be_bytes(self.input.array(at + header.hashed())?))
    }

    /// Charges the budget for hashing a record under each key, if that much is left.
    fn affords(&mut self, header: &Header) -> bool {
        let each = header.total().max(HASH_BYTES);
        let all = each.saturating_mul(self.keys().len() as u64);
        self.budget.try_spend(all, self.input.len())
    }

    /// Whether this header's record at `at` is verified under one of the keys.
    fn is_verified(&mut self, at: u64, header: &Header) -> Result<bool> {
        let (_, sums) = self.sums(at, header)?;
        Ok(checksum(&sums).is_ok())
    }

    /// Hashes a record under each key in turn until its checksum matches, in pieces if it is long or not in memory. Returns the index
    /// of the last key tried and the sums under it.
    pub(super) fn sums(&mut self, at: u64, header: &Header) -> Result<(usize, Sums)> {
        let (stored, hashed) = (self.stored(at, header)?, header.hashed());
        let (is_short, mut last) = (hashed <= LIMITS.search_piece_bytes as u64, None);
        for place in 0..self.keys().len() {
            let key = *self.keys().get(place).or_bug("as many keys as there are")?;
            let body = self.input.seen(at, saturating_usize(hashed));
            let computed = match body.filter(|_| is_short) {
                Some(body) => hash(&key, body),
                None => {
                    let mut hasher = Incremental::new(&key);
                    let hashed = at..at + hashed;
                    self.input.pieces(hashed, |piece| hasher.update(piece))?;
                    hasher.finish()
                }
            };
            let sums = Sums {
                stored,
                computed,
                key,
            };
            last = Some((place, sums));
            if checksum(&sums).is_ok() {
                break;
            }
        }
        last.or_bug("at least one key")
    }
}

/// The offset after the record at `at`, if its header is plausible.
fn end_of_plausible(input: &mut Input, at: u64) -> Result<Option<u64>> {
    let left = input.len() - at;
    let header = record(input.look(at, MAX_HEADER_BYTES)?, left);
    let plausible = header.filter(|header| version(header.uuid).is_ok());
    Ok(plausible.map(|header| at + header.total()))
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
        if let Some(header) = record(bytes.get(place..)?, left - place as u64) {
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

    use super::super::judge::key_of;
    use super::super::layout::{UUID_BYTES, encode};
    use super::super::walk::ActiveWalk;
    use super::*;
    use crate::checksum::Key;
    use crate::source::BytesSource;
    use crate::walk::{Begin, Options};

    fn uuid(tick: u8) -> [u8; UUID_BYTES] {
        (u128::from(tick) << 80 | 6 << 76 | 0b10 << 62).to_be_bytes()
    }

    /// Rule 10, offset by offset, without a budget: the end, and whether any record was verified.
    fn end_slowly(bytes: &[u8], start: usize, last: Option<[u8; UUID_BYTES]>) -> (End, bool) {
        let judged = |at: usize| {
            let header = record(&bytes[at..], (bytes.len() - at) as u64)?;
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
            if judged(end).is_some_and(|(_, checks, next)| checks && ascends(&next)) {
                return (End::Followed(end as u64), false);
            }
            if end >= data_end && header.split(&bytes[start..]).unwrap().1 != 0 {
                return (End::Last(end as u64, Fate::Unchecked), false);
            }
        }
        let mut proven = false;
        for at in start + 1..data_end {
            if let Some((_, true, header)) = judged(at) {
                proven = true;
                if ascends(&header) {
                    return (End::Followed(at as u64), proven);
                }
            }
        }
        let fate = if proven {
            Fate::Corrupt
        } else {
            Fate::Unchecked
        };
        (End::Nothing(fate), proven)
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
            let mut walk =
                ActiveWalk::open(Arc::new(source), &Options::default(), Begin::Beginning).unwrap();
            let scan = walk.scan_mut();
            scan.state.last = last;
            let end = scan.end_of_damage(start as u64).unwrap();
            prop_assert_eq!((end, scan.state.verified), end_slowly(&bytes, start, last));
        }
    }
}
