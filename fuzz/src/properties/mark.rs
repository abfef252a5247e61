//! Any synced mark of a log: its records are read, in order, or an error says why not; and a writer that goes on loses none.

use std::fs;
use std::path::Path;

use seglake::Result;
use seglake::checksum::{Key, hash};
use seglake::format::{Format, Options};
use seglake::store::{LogOptions, LogReader, SegmentLog};

use super::{Draw, folder};

macro_rules! golden {
    ($name:literal) => {
        (
            $name,
            include_bytes!(concat!("../../../tests/vectors/log/", $name)).as_slice(),
        )
    };
}

/// A log of a sealed segment, one that is complete, and one that is being written.
const SEGMENTS: [(&str, &[u8]); 4] = [
    golden!("00000000000000000001-1eeaf8df-7728-668c-b9f1-1b8e6a30ade3.sealed"),
    golden!("00000000000000000002-1eeaf8df-93c4-6a0c-b9f1-1b8e6a30ade3.active"),
    golden!("00000000000000000003-1eeaf8df-a6d7-670c-b9f1-1b8e6a30ade3.active"),
    golden!("_00000000000000000002-1eeaf8df-93c4-6a0c-b9f1-1b8e6a30ade3.end"),
];
/// The records of complete segments.
const COMPLETE: usize = 5;
const MARK: (&str, &[u8]) = golden!("_mark");
/// Where the two slots begin, and how long they are without their hash.
const SLOTS: [usize; 2] = [0, 4096];
const HASHED_BYTES: usize = 56;
/// Where counter, sequence, offset and UUID begin in a slot.
const FIELDS: [usize; 4] = [16, 24, 32, 40];

pub(super) fn check(_: &'static Format, bytes: &[u8]) {
    let mut draw = Draw::of(bytes);
    let folder = folder();
    let path = folder.path();
    for (name, content) in SEGMENTS.into_iter().chain([MARK]) {
        fs::write(path.join(name), content).unwrap();
    }
    let (all, sound) = read(path);
    assert!(sound.is_ok() && all.len() == 6);
    fs::write(path.join(MARK.0), mark(bytes, &mut draw)).unwrap();

    let (given, end) = read(path);
    assert!(all.starts_with(&given));
    // The segment that is being written is read up to the mark.
    assert!(end.is_err() || given.len() >= COMPLETE, "{given:?}");
    let options = LogOptions::default().seal(false);
    // Writing takes a hundred times as long.
    if draw.below(4) == 0 && write_on(path, options).is_ok() {
        let (given, end) = read(path);
        assert!(end.is_err() || given.starts_with(&all), "{given:?}");
    }
}

/// A mark: bytes as they are, or the log's own with some of its fields replaced and its hashes right.
fn mark(bytes: &[u8], draw: &mut Draw) -> Vec<u8> {
    if draw.below(4) == 0 {
        return bytes.to_vec();
    }
    let mut mark = MARK.1.to_vec();
    let mut from = bytes.chunks(8).cycle();
    for slot in SLOTS {
        for field in FIELDS.map(|field| slot + field) {
            match draw.below(4) {
                0 => {}
                1 => mark[field + 7] = u8::try_from(draw.below(256)).unwrap(),
                2 => mark[field..field + 8].fill(0),
                _ => {
                    let new = from.next().unwrap_or_default();
                    mark[field..field + new.len()].copy_from_slice(new);
                }
            }
        }
        let hashed = slot + HASHED_BYTES;
        let right = hash(&Key::DEFAULT, &mark[slot..hashed]);
        mark[hashed..hashed + 8].copy_from_slice(&right.to_be_bytes());
    }
    if draw.below(8) == 0 {
        mark.truncate(draw.below(mark.len()));
    }
    mark
}

/// The values of a log's records, up to an error.
fn read(path: &Path) -> (Vec<Vec<u8>>, Result<()>) {
    let mut values = Vec::new();
    let records = LogReader::open(path, Options::default()).and_then(|log| log.records());
    let end = records.and_then(|mut records| {
        records.try_for_each(|record| {
            values.push(record?.value().to_vec());
            Ok(())
        })
    });
    (values, end)
}

/// Opens a log, writes a record and closes it.
fn write_on(path: &Path, options: LogOptions) -> Result<()> {
    let log = SegmentLog::open(path, options)?;
    let written = log.write(b"type", b"more");
    log.close()?;
    written.map(drop)
}
