//! Records that follow each other in one window, parsed and hashed together: a fast path, which only finds that all of them are sound.
//! And the verified ones of a step, as rows.

use std::ops::Range;

use super::judge::{Sums, record, verdict};
use super::layout::{CHECKSUM_BYTES, Header, MIN_HEADER_BYTES, UUID_BYTES, type_of};
use crate::bug::OrBug;
use crate::checksum::{Key, hash_many};
use crate::cursor::Cursor;
use crate::limits::LIMITS;
use crate::prefetch::prefetch_all;
use crate::private::Sealed;
use crate::record::{ColumnBuffer, Rows, Value};
use crate::saturating::saturating_usize;
use crate::uuid6;

/// For short records, the parser prefetches blocks of `PREFETCH_BYTES`, `AHEAD_BYTES` before it reaches them. A
/// block is about as long as a record. The distance is about what the parser covers while the second-nearest cache
/// answers. For longer records most of these blocks would hold no header.
const PREFETCH_BYTES: usize = 256;
const AHEAD_BYTES: usize = 1 << 10;
const SHORT_BYTES: usize = 384;

/// A record in a buffer: where it begins, and how many bytes are hashed. The checksum follows those.
pub(super) type Extent = (usize, usize);

/// The input that a group is parsed from.
pub(super) struct Input<'a> {
    /// The available bytes, which begin with the first record.
    pub(super) bytes: &'a [u8],
    /// The file's length from there on, `bytes` included.
    pub(super) left: u64,
    /// How many bytes a group may have. Its first record may have more.
    pub(super) limit: u64,
    /// The last good UUID before these bytes.
    pub(super) last: Option<[u8; UUID_BYTES]>,
}

/// Adjacent records whose lengths fit and whose UUIDs ascend.
#[derive(Debug)]
pub(super) struct Group {
    extents: Box<[Extent; LIMITS.group_records]>,
    /// The checksums as stored.
    stored: Box<[u64; LIMITS.group_records]>,
    hashes: Vec<u64>,
    /// How many records were parsed.
    len: usize,
    /// The offset after the last record.
    end: usize,
    /// The last UUID.
    last: [u8; UUID_BYTES],
    /// Whether most records of the group before this one were short.
    short: bool,
    /// How long the type of the next record is expected to be.
    type_len: u8,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            extents: Box::new([(0, 0); LIMITS.group_records]),
            stored: Box::new([0; LIMITS.group_records]),
            hashes: Vec::new(),
            len: 0,
            end: 0,
            last: [0; UUID_BYTES],
            short: false,
            type_len: 0,
        }
    }
}

impl Group {
    /// Parses the records that lie whole in these bytes and ascend, up to the batch limit.
    pub(super) fn parse(&mut self, input: &Input<'_>) {
        self.short = self.end <= self.len * SHORT_BYTES;
        (self.len, self.end) = (0, 0);
        // Zeros are less than any UUID of version 6.
        self.last = input.last.unwrap_or([0; UUID_BYTES]);
        self.parse_more(input, 1, usize::MAX);
        let limit = saturating_usize(input.limit);
        if self.len == 1 {
            self.parse_more(input, LIMITS.least_group_records, limit);
        }
        if self.len == LIMITS.least_group_records {
            self.parse_more(input, LIMITS.group_records, limit.min(LIMITS.group_bytes));
        }
    }

    /// Parses until there are `len` records, or `limit` bytes of them.
    fn parse_more(&mut self, input: &Input<'_>, len: usize, limit: usize) {
        let (bytes, _) = input.bytes.split_at(limit.min(input.bytes.len()));
        let extents = self
            .extents
            .get_mut(self.len..len)
            .or_bug_default("no more records than there is room for");
        let stored = self
            .stored
            .get_mut(self.len..len)
            .or_bug_default("no more records than there is room for");
        let short = self.short;
        // Locals let the loop keep these in registers.
        let (mut offset, mut last, mut count) = (self.end, &self.last, self.len);
        let mut type_len = self.type_len;
        let mut last_half = uuid6::first_half(last);
        for (extent, stored) in extents.iter_mut().zip(stored) {
            let Some(rest) = bytes.get(offset..) else {
                break;
            };
            if short && let Some(ahead) = rest.get(AHEAD_BYTES..).and_then(<[u8]>::first_chunk) {
                prefetch_all::<PREFETCH_BYTES>(ahead);
            }
            let peeked = Header::peek(rest, &mut type_len);
            let Some((uuid, hashed)) = peeked.or_else(|| at_edge(rest, input.left - offset as u64))
            else {
                break;
            };
            let Some(checksum) = rest.get(hashed..).and_then(<[u8]>::first_chunk) else {
                break;
            };
            let half = uuid6::first_half(uuid);
            // The first half nearly always tells.
            if !(half > last_half || uuid > last) || !uuid6::is_v6(uuid) {
                break;
            }
            *extent = (offset, hashed);
            *stored = u64::from_be_bytes(*checksum);
            offset += hashed + CHECKSUM_BYTES;
            (last, last_half) = (uuid, half);
            count += 1;
        }
        self.last = *last;
        (self.end, self.len, self.type_len) = (offset, count, type_len);
    }

    /// All records, as positions in the bytes that they were parsed from.
    pub(super) fn extents(&self) -> &[Extent] {
        self.extents
            .get(..self.len)
            .or_bug_default("no more records than there is room for")
    }

    /// Whether the checksums of all records match. `bytes` are the bytes that they were parsed from.
    pub(super) fn is_sound(&mut self, key: &Key, bytes: &[u8]) -> bool {
        let extents = self.extents.get(..self.len);
        let extents = extents.or_bug_default("no more records than there is room for");
        hash_many(key, bytes, extents, &mut self.hashes);
        self.stored.get(..self.len) == Some(&self.hashes)
    }

    /// Whether `judge` finds each record in these bytes good.
    pub(super) fn is_judged_good(
        &self,
        bytes: &[u8],
        left: u64,
        mut last: Option<[u8; UUID_BYTES]>,
        key: &Key,
    ) -> bool {
        let records = self.extents().iter().zip(&*self.stored).zip(&self.hashes);
        let mut records = records.map(|((extent, stored), computed)| (*extent, *stored, *computed));
        records.all(|((offset, hashed), stored, computed)| {
            let rest = bytes.get(offset..);
            let Some(header) = rest.and_then(|rest| record(rest, left - offset as u64)) else {
                return false;
            };
            let sums = Sums {
                stored,
                computed,
                key: *key,
            };
            let good = verdict(&header, &sums, last);
            last = Some(header.uuid);
            header.hashed() == hashed as u64 && good.is_ok()
        })
    }

    /// The offset after the last record.
    pub(super) const fn end(&self) -> usize {
        self.end
    }
}

/// The offset after a record.
pub(super) const fn end_of((offset, hashed): &Extent) -> usize {
    *offset + *hashed + CHECKSUM_BYTES
}

/// Like [`Header::peek`], for bytes that may end within the longest header.
#[cold]
fn at_edge(bytes: &[u8], left: u64) -> Option<(&[u8; UUID_BYTES], usize)> {
    let header = record(bytes, left)?;
    Some((bytes.first_chunk()?, saturating_usize(header.hashed())))
}

/// Verified records, as positions in `bytes`, which begin at the absolute offset `base`. At least the UUID and the
/// type length of each are there. The value may be absent if the walk was opened without values.
pub(crate) struct ActiveRows<'a> {
    pub(super) base: u64,
    pub(super) bytes: &'a [u8],
    pub(super) records: &'a [Extent],
}

impl ActiveRows<'_> {
    #[allow(
        clippy::indexing_slicing,
        reason = "a row beyond the rows is the caller's mistake, as with any slice"
    )]
    fn record(&self, row: usize) -> Extent {
        self.records[row]
    }

    /// The available bytes of a record before its checksum.
    fn hashed(&self, record @ (_, hashed): Extent) -> &[u8] {
        Cursor::new(self.from(record)).run_up_to(hashed)
    }

    /// The bytes from a record's beginning on.
    fn from(&self, (offset, _): Extent) -> &[u8] {
        let bytes = self.bytes.get(offset..);
        bytes.or_bug_default("the bytes that a record begins with")
    }

    fn uuid(&self, record: Extent) -> &[u8; UUID_BYTES] {
        let uuid = self.from(record).first_chunk();
        uuid.or_bug_value("a UUID in each record", &[0; UUID_BYTES])
    }

    fn micros(&self, record: Extent) -> i64 {
        uuid6::timestamp_micros(self.uuid(record))
    }

    /// The type. Empty if it is incomplete.
    fn type_bytes(&self, record: Extent) -> &[u8] {
        type_of(self.hashed(record))
    }

    /// The value. Empty if it is incomplete. The hashed bytes end with the value, so its length need not be read.
    fn value_bytes(&self, (offset, hashed): Extent) -> &[u8] {
        // Branches that are always predicted, and no conditional moves: this runs for each value.
        let value = || {
            let whole = self.bytes.get(offset..)?.get(..hashed)?;
            whole.get(MIN_HEADER_BYTES + usize::from(*whole.get(UUID_BYTES)?)..)
        };
        match value() {
            Some(value) => value,
            None => &[],
        }
    }
}

/// A record with its stored checksum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) uuid: [u8; UUID_BYTES],
    pub(crate) type_: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) checksum: u64,
}

impl ActiveRows<'_> {
    /// A record whose value was read.
    pub(super) fn stored_record(&self, row: usize) -> Record<'_> {
        let record @ (offset, hashed) = self.record(row);
        let checksum = self.bytes.get(offset + hashed..);
        let checksum = checksum.and_then(|checksum| Cursor::new(checksum).u64_be());
        let (type_, value) = (self.type_bytes(record), self.value_bytes(record));
        Record {
            uuid: *self.uuid(record),
            type_,
            value,
            checksum: checksum.or_bug_default("the checksum of a record whose value was read"),
        }
    }
}

impl Sealed for ActiveRows<'_> {}

impl Rows for ActiveRows<'_> {
    fn len(&self) -> usize {
        self.records.len()
    }

    fn position(&self, row: usize) -> u64 {
        self.base + self.record(row).0 as u64
    }

    fn end(&self, row: usize) -> u64 {
        let (offset, hashed) = self.record(row);
        self.base + (offset + hashed + CHECKSUM_BYTES) as u64
    }

    fn value(&self, row: usize) -> &[u8] {
        self.value_bytes(self.record(row))
    }

    fn timestamp(&self, row: usize) -> Option<i64> {
        Some(self.micros(self.record(row)))
    }

    fn field(&self, row: usize, column: usize) -> Value<'_> {
        let record = self.record(row);
        match column {
            0 => Value::Uuid(*self.uuid(record)),
            1 => Value::Timestamp(self.micros(record)),
            2 => Value::Text(self.type_bytes(record)),
            _ => Value::Binary(self.value_bytes(record)),
        }
    }

    fn times(&self) -> Option<(i64, i64)> {
        // UUIDs ascend, and a greater UUID never has an earlier time.
        let (first, last) = (self.records.first()?, self.records.last()?);
        Some((self.micros(*first), self.micros(*last)))
    }

    fn fill(&self, rows: Range<usize>, column: usize, buffer: &mut ColumnBuffer) {
        let records = self.records.get(rows);
        let records = records.or_bug_default("rows that are there").iter();
        match column {
            0 => buffer.extend_uuids(records.map(|record| self.uuid(*record))),
            1 => buffer.extend_int64(records.map(|record| self.micros(*record))),
            2 => buffer.extend_text(records.map(|record| self.type_bytes(*record))),
            _ => buffer.extend_bytes(records.map(|record| self.value_bytes(*record))),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::judge::sequence;
    use super::super::layout::MAX_HEADER_BYTES;
    use super::*;
    use crate::checksum::hash;

    const KEY: Key = Key::DEFAULT;

    /// The slow reference: each record is judged by itself. Returns extents, stored checksums, and whether all are good.
    fn parse_slowly(input: &Input<'_>) -> (Vec<Extent>, Vec<u64>, bool) {
        let (mut extents, mut stored, mut good) = (Vec::new(), Vec::new(), true);
        let (mut at, mut last) = (0, input.last);
        while extents.len() < LIMITS.group_records {
            let rest = &input.bytes[at..];
            let Some(header) = record(rest, input.left - at as u64) else {
                break;
            };
            let end = at as u64 + header.total();
            let full =
                extents.len() >= LIMITS.least_group_records && end > LIMITS.group_bytes as u64;
            let distrusted = !extents.is_empty() && end > input.limit;
            let whole = end <= input.bytes.len() as u64;
            let ascends = sequence(header.uuid, last).is_ok();
            if !ascends || !whole || full || distrusted {
                break;
            }
            let (body, checksum) = header.split(rest).unwrap();
            let sums = Sums {
                stored: checksum,
                computed: hash(&KEY, body),
                key: KEY,
            };
            good &= verdict(&header, &sums, last).is_ok();
            last = Some(header.uuid);
            extents.push((at, body.len()));
            stored.push(checksum);
            at += body.len() + CHECKSUM_BYTES;
        }
        (extents, stored, good)
    }

    fn assert_alike(group: &mut Group, input: &Input<'_>) {
        group.parse(input);
        let (extents, stored, good) = parse_slowly(input);
        assert_eq!(group.extents(), extents);
        assert_eq!(&group.stored[..extents.len()], stored);
        assert_eq!(group.end(), extents.last().map_or(0, end_of));
        assert_eq!(group.is_sound(&KEY, input.bytes), good);
        let (left, last) = (input.left, input.last);
        assert_eq!(group.is_judged_good(input.bytes, left, last, &KEY), good);
    }

    /// A record as its UUID's step, the length of its type and of its value.
    type Shape = (u64, u8, usize);

    fn shapes() -> impl Strategy<Value = Vec<Shape>> {
        let step = prop_oneof![40 => 1..9_u64, 1 => Just(0)];
        let type_len = prop_oneof![9 => Just(13), 3 => Just(0), 1 => any::<u8>()];
        let value_len = prop_oneof![8 => 0..300_usize, 1 => 0..6000_usize];
        vec((step, type_len, value_len), 0..700)
    }

    fn segment(shapes: &[Shape]) -> Vec<u8> {
        let (mut bytes, mut tick) = (Vec::new(), 1);
        for (step, type_len, value_len) in shapes {
            tick += step;
            let mut uuid = (u128::from(tick) << 80 | 6 << 76 | 0b10 << 62).to_be_bytes();
            uuid[15] = *type_len;
            let start = bytes.len();
            bytes.extend_from_slice(&uuid);
            bytes.push(*type_len);
            bytes.resize(bytes.len() + usize::from(*type_len), b't');
            bytes.extend_from_slice(&u32::try_from(*value_len).unwrap().to_be_bytes());
            bytes.resize(bytes.len() + value_len, b'v');
            let checksum = hash(&KEY, &bytes[start..]);
            bytes.extend_from_slice(&checksum.to_be_bytes());
        }
        bytes
    }

    proptest! {
        #[test]
        fn groups_are_what_the_careful_parser_finds(
            shapes in shapes(),
            changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
            cut in any::<prop::sample::Index>(),
            beyond in prop_oneof![Just(0), 0..1000_u64],
            limit in prop_oneof![Just(u64::MAX), 0..200_000_u64],
            last in prop_oneof![Just(None), any::<[u8; UUID_BYTES]>().prop_map(Some)],
        ) {
            let mut bytes = segment(&shapes);
            for (place, byte) in changes {
                if !bytes.is_empty() {
                    let place = place.index(bytes.len());
                    bytes[place] = byte;
                }
            }
            let whole = bytes.len();
            let mut group = Group::default();
            // Each parse expects what the one before it found, so the same group is parsed repeatedly.
            for len in [whole, cut.index(whole + 1), whole] {
                let mut at = 0;
                while at < len {
                    let bytes = &bytes[at..len];
                    let left = bytes.len() as u64 + beyond;
                    assert_alike(&mut group, &Input { bytes, left, limit, last });
                    if group.end() == 0 {
                        break;
                    }
                    at += group.end();
                }
            }
        }

        #[test]
        fn headers_are_what_the_careful_parser_finds(
            mut bytes in vec(any::<u8>(), 0..600),
            zeroed in 0..40_usize,
            mut expected: u8,
        ) {
            // Lengths of short types as well.
            bytes.iter_mut().skip(UUID_BYTES).take(zeroed).for_each(|byte| *byte = 0);
            let careful = Header::parse(&bytes).ok();
            match Header::peek(&bytes, &mut expected) {
                Some((uuid, hashed)) => {
                    let found = careful.map(|header| (header.uuid, header.hashed(), header.type_len));
                    prop_assert_eq!(Some((*uuid, hashed as u64, expected)), found);
                }
                None => prop_assert!(bytes.len() < MAX_HEADER_BYTES),
            }
        }
    }
}
