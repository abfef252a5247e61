//! Chunked segments made by hand, and read whole.

use std::sync::Arc;

use seglake::Error;
use seglake::format::{IndexSource, Options, Start, Step, Value, Walk, chunked, open};
use seglake::ledger::{Cause, Kind, Span};
use seglake::source::Source;

/// A record as plain values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) position: u64,
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
    pub(crate) value: Vec<u8>,
}

/// Options that add damage to the ledger and continue.
pub(crate) fn lenient() -> Options {
    Options::default()
        .format(&chunked::FORMAT)
        .index(IndexSource::None)
        .strict(false)
}

/// Records end to end, as they are before compression.
pub(crate) fn content<V: AsRef<[u8]>>(records: &[(i64, V)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (timestamp, value) in records {
        let value = value.as_ref();
        bytes.extend_from_slice(&timestamp.to_be_bytes());
        bytes.extend_from_slice(&u32::try_from(value.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(value);
    }
    bytes
}

/// A zstd frame with content checksum.
pub(crate) fn frame(content: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::bulk::Compressor::new(3).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.compress(content).unwrap()
}

/// A zstd frame with content checksum, at a level that does not compress.
pub(crate) fn stored_frame(content: &[u8]) -> Vec<u8> {
    let level = *zstd::compression_level_range().start();
    let mut encoder = zstd::bulk::Compressor::new(level).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.compress(content).unwrap()
}

/// A chunk's header, its CRC right.
pub(crate) fn header(flags: u8, length: u32, start: i64, records: u32) -> Vec<u8> {
    let mut bytes = vec![flags];
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&start.to_be_bytes());
    bytes.extend_from_slice(&records.to_be_bytes());
    let crc = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&crc.to_be_bytes());
    bytes
}

/// Appends a chunk with this payload, and its padding.
pub(crate) fn push_chunk(file: &mut Vec<u8>, start: i64, records: u32, payload: &[u8]) {
    file.resize(file.len().next_multiple_of(0x80), 0);
    let length = u32::try_from(payload.len()).unwrap();
    file.extend_from_slice(&header(0, length, start, records));
    file.extend_from_slice(payload);
    file.resize(file.len().next_multiple_of(0x80), 0);
}

/// Appends a chunk of these records.
pub(crate) fn push_records<V: AsRef<[u8]>>(file: &mut Vec<u8>, start: i64, records: &[(i64, V)]) {
    let count = u32::try_from(records.len()).unwrap();
    push_chunk(file, start, count, &frame(&content(records)));
}

/// Bytes that do not compress.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u8::try_from(state >> 56).unwrap()
    };
    (0..len).map(|_| byte()).collect()
}

/// A segment of chunks of this many records each, message offset i having the timestamp i * 10 and a value made of i.
pub(crate) fn segment(chunks: i64, records: i64, value_len: usize) -> Vec<u8> {
    let mut file = Vec::new();
    for chunk in 0..chunks {
        let own: Vec<_> = (chunk * records..(chunk + 1) * records)
            .map(|offset| (offset * 10, value(offset, value_len)))
            .collect();
        push_records(&mut file, chunk * records, &own);
    }
    file
}

/// The value of a message offset in [`segment`].
pub(crate) fn value(offset: i64, len: usize) -> Vec<u8> {
    noise(offset.cast_unsigned() + 1, len)
}

/// Appends the records of a walk's last step.
pub(crate) fn collect(walk: &dyn Walk, records: &mut Vec<Record>) {
    let rows = walk.rows();
    for row in 0..rows.len() {
        let (Value::Int64(offset), Value::Timestamp(timestamp)) =
            (rows.field(row, 0), rows.field(row, 1))
        else {
            panic!("columns moved")
        };
        assert_eq!(rows.field(row, 2), Value::Binary(rows.value(row)));
        assert_eq!(rows.timestamp(row), Some(timestamp));
        records.push(Record {
            position: rows.position(row),
            offset,
            timestamp,
            value: rows.value(row).to_vec(),
        });
    }
}

/// The rest of a walk.
pub(crate) fn finish(mut walk: Box<dyn Walk>) -> seglake::Result<(Vec<Record>, Vec<Span>)> {
    let (mut records, mut ledger) = (Vec::new(), Vec::new());
    while walk.step()? == Step::More {
        collect(&*walk, &mut records);
        ledger.extend_from_slice(walk.spans());
    }
    Ok((records, ledger))
}

/// All records and the whole ledger.
pub(crate) fn scan(
    source: Arc<dyn Source>,
    options: &Options,
) -> seglake::Result<(Vec<Record>, Vec<Span>)> {
    finish(open(source, options, Start::Beginning)?)
}

/// The damage that strict reading raises, if any; twice, since a walk that failed fails again.
pub(crate) fn strict_error(source: Arc<dyn Source>, options: &Options) -> Option<seglake::Damage> {
    let options = options.clone().strict(true);
    let mut walk = open(source, &options, Start::Beginning).unwrap();
    loop {
        match walk.step() {
            Ok(Step::More) => {}
            Ok(_) => return None,
            Err(Error::Damage(damage)) => {
                let again = walk.step();
                assert!(matches!(&again, Err(Error::Damage(same)) if same.offset == damage.offset));
                return Some(*damage);
            }
            Err(other) => panic!("not damage: {other}"),
        }
    }
}

/// Asserts that no torn tail is followed by a chunk, and that no range is corrupt only because of a chunk that
/// does not exist.
pub(crate) fn assert_kinds(ledger: &[Span]) {
    let last_chunk = ledger.iter().rposition(|span| span.kind == Kind::Chunk);
    let refused = [
        Cause::OutOfOrder,
        Cause::UnsupportedFlags,
        Cause::OffsetOutOfBounds,
        Cause::SearchLimit,
    ];
    let unfinished = [Cause::TruncatedHeader, Cause::LengthOutOfBounds];
    let given_up = ledger
        .iter()
        .any(|span| span.cause == Some(Cause::SearchLimit));
    for (place, span) in ledger.iter().enumerate() {
        let Some(cause) = span.cause else { continue };
        let followed = given_up || last_chunk.is_some_and(|last| place < last);
        if followed || refused.contains(&cause) {
            assert_eq!(span.kind, Kind::Corrupt, "{ledger:?}");
        } else if last_chunk.is_some() || unfinished.contains(&cause) {
            assert_eq!(span.kind, Kind::TornTail, "{ledger:?}");
        }
    }
}
