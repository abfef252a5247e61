//! What the example format of docs/adding-a-format.md does that golden files do not show.

use std::sync::Arc;

use crate::common::{counting::Counting, source};
use seglake::format::{Eof, Format, Options, Start, Step, by_name, open};
use seglake::ledger::{Cause, Span};
use seglake::source::Source;

fn format() -> &'static Format {
    by_name("sharded").unwrap()
}

fn record(sequence: u64, body: &[u8]) -> Vec<u8> {
    let mut record = u32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
    record.extend([0; 8]);
    record.extend(7_u16.to_be_bytes());
    record.extend(sequence.to_be_bytes());
    record.push(1);
    let mut hashed = record.clone();
    hashed.extend_from_slice(body);
    record.extend(crc32(&hashed).to_be_bytes());
    record.extend_from_slice(body);
    record
}

/// CRC-32 (ISO-HDLC), bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

/// Where records begin, the ledger, and how it ended.
fn scan(source: Arc<dyn Source>, options: &Options) -> (Vec<u64>, Vec<Span>, Step) {
    let mut walk = open(source, options, Start::Beginning).unwrap();
    let (mut records, mut spans) = (Vec::new(), Vec::new());
    loop {
        let step = walk.step().unwrap();
        if step != Step::More {
            return (records, spans, step);
        }
        let rows = walk.rows();
        records.extend((0..rows.len()).map(|row| rows.position(row)));
        spans.extend_from_slice(walk.spans());
    }
}

/// While a record is being written, a whole record in its body is not taken for one.
#[test]
fn a_record_that_is_being_written_is_waited_for() {
    let (first, inner) = (record(1, b"first"), record(2, b"inner"));
    let outer = record(3, &[&[b'.'; 50], inner.as_slice(), &[b'.'; 50]].concat());
    let whole = [first.clone(), outer].concat();
    for strict in [false, true] {
        let options = Options::default()
            .format(format())
            .strict(strict)
            .eof(Eof::Growing);
        for end in first.len()..whole.len() {
            let (records, _, step) = scan(source(&whole[..end]), &options);
            assert_eq!((records, step), (vec![0], Step::Wait), "{end}");
        }
        let (records, _, _) = scan(source(&whole), &options);
        assert_eq!(records, [0, first.len() as u64]);
    }
}

/// Each damaged header of this file claims the rest of the file as its record, and a sound record follows it.
/// Hashing to refuse one is charged to the search budget, so the file is not hashed again and again.
#[test]
fn lengths_that_lie_cost_no_quadratic_time() {
    let sound = record(1, b"");
    let pair = 27 + sound.len();
    let pairs = 20_000;
    let len = pair * pairs;
    let mut bytes = Vec::with_capacity(len);
    for number in 0..pairs {
        let lie = u32::try_from(len - number * pair - 27 - 10).unwrap_or_default();
        bytes.extend(lie.to_be_bytes());
        bytes.extend([0xff; 23]);
        bytes.extend_from_slice(&sound);
    }
    let options = Options::default().format(format()).strict(false);
    let counting = Counting::new(bytes);
    let (records, spans, _) = scan(counting.clone(), &options);
    let (read, _) = counting.take();
    // Every lie hashed in full would be ten times as much.
    assert!(read < 1 << 30, "{read} bytes read of {len}");
    assert!(!records.is_empty());
    assert_eq!(spans.last().unwrap().cause, Some(Cause::SearchLimit));
}
