//! Appending to an active segment, beside the same without checksums, and beside the crate `seglog`; and what preallocating
//! saves where every few records are synced.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};

use seglake::format::{WriteOptions, active};
use tempfile::TempDir;
use uuid::{Timestamp, Uuid};

use crate::compare::{Clock, Comparison, Work};
use crate::messages::{Lengths, Random, TYPE};

/// How many bytes of values one run appends.
const VALUE_BYTES: usize = 24 << 20;
/// The buffer of seglake's writers.
const BUFFER_BYTES: usize = 1 << 20;
/// How many records are synced together.
const RECORDS_A_SYNC: usize = 16;
const SYNCED_VALUE_BYTES: usize = 120;
/// The most bytes that records synced together take.
const ROOM_A_SYNC: u64 = 4 << 10;
/// Room for all that is synced.
const PREALLOCATED_BYTES: u64 = 128 << 20;

pub(crate) fn run(comparison: &mut Comparison) {
    for (name, lengths) in Lengths::ALL {
        let messages = Messages::new(lengths);
        let work = Work::Bytes(messages.values.len());
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("ours");
        let other = folder.path().join("theirs");
        comparison.run(
            format!("append {name}"),
            "the same without hash",
            work,
            0.85,
            || messages.append(&path),
            || messages.frame(&other),
        );
        comparison.run(
            format!("append {name}, beside seglog"),
            "seglog, append",
            work,
            1.8,
            || messages.append(&path),
            || messages.append_seglog(&other),
        );
    }
    sync(comparison);
}

/// Messages to append: UUIDs, and values that lie one behind the other.
struct Messages {
    uuids: Vec<Uuid>,
    values: Vec<u8>,
    ends: Vec<usize>,
}

impl Messages {
    fn new(lengths: Lengths) -> Self {
        let mut random = Random::new(42);
        let (mut uuids, mut ends, mut end) = (Vec::new(), Vec::new(), 0);
        while end < VALUE_BYTES {
            end += lengths.next(&mut random);
            ends.push(end);
            uuids.push(uuid(ends.len()));
        }
        let mut values = vec![0; end];
        for bytes in values.chunks_mut(8) {
            let number = random.next().to_le_bytes();
            bytes.copy_from_slice(&number[..bytes.len()]);
        }
        Self {
            uuids,
            values,
            ends,
        }
    }

    fn iter(&self) -> impl Iterator<Item = (&Uuid, &[u8])> {
        let mut start = 0;
        self.uuids.iter().zip(&self.ends).map(move |(uuid, end)| {
            let value = &self.values[start..*end];
            start = *end;
            (uuid, value)
        })
    }

    /// As seglake does it.
    fn append(&self, path: &Path) {
        let mut writer = active::Writer::open(path, &WriteOptions::default()).unwrap();
        for (uuid, value) in self.iter() {
            writer.append(uuid, TYPE, value).unwrap();
        }
        writer.close().unwrap();
        std::fs::remove_file(path).unwrap();
    }

    /// The same bytes but for the checksums, which are 0.
    fn frame(&self, path: &Path) {
        let mut file = File::create_new(path).unwrap();
        let mut buffer = Vec::new();
        for (uuid, value) in self.iter() {
            buffer.extend_from_slice(uuid.as_bytes());
            buffer.push(u8::try_from(TYPE.len()).unwrap());
            buffer.extend_from_slice(TYPE);
            buffer.extend_from_slice(&u32::try_from(value.len()).unwrap().to_be_bytes());
            buffer.extend_from_slice(value);
            buffer.extend_from_slice(&0_u64.to_be_bytes());
            if buffer.len() >= BUFFER_BYTES {
                file.write_all(&buffer).unwrap();
                buffer.clear();
            }
        }
        file.write_all(&buffer).unwrap();
        std::fs::remove_file(path).unwrap();
    }

    /// As the crate `seglog` does it, which needs to know the file's length beforehand: UUIDs as its headers.
    fn append_seglog(&self, path: &Path) {
        let len = self.values.len() + self.uuids.len() * (8 + 16 + TYPE.len()) + 64;
        let mut writer = seglog::write::Writer::<16>::create(path, len, 0).unwrap();
        for (uuid, value) in self.iter() {
            black_box(writer.append(uuid.as_bytes(), value).unwrap());
        }
        writer.flush_writer().unwrap();
        drop(writer);
        std::fs::remove_file(path).unwrap();
    }
}

/// The n-th UUID.
fn uuid(number: usize) -> Uuid {
    let tick = 0x01ee_0000_0000_0000 + 10 * number as u64;
    Uuid::new_v6(Timestamp::from_gregorian_time(tick, 7), &[1, 2, 3, 4, 5, 6])
}

/// Small batches, each synced: to a segment that was filled with zeros beforehand, and to one that grows. By the time that
/// passes, since what it takes is waiting.
fn sync(comparison: &mut Comparison) {
    let folder = TempDir::new().unwrap();
    let mut preallocated = Synced::new(&folder.path().join("preallocated"), PREALLOCATED_BYTES);
    let mut growing = Synced::new(&folder.path().join("growing"), 0);
    comparison.clock(Clock::Wall);
    comparison.run(
        format!("append and sync {RECORDS_A_SYNC} records, preallocated"),
        "growing",
        Work::Items(RECORDS_A_SYNC),
        1.35,
        || preallocated.append(),
        || growing.append(),
    );
}

/// A writer that is synced every few records.
struct Synced {
    path: PathBuf,
    preallocate: u64,
    writer: active::Writer,
    records: usize,
}

impl Synced {
    fn new(path: &Path, preallocate: u64) -> Self {
        let options = WriteOptions {
            preallocate,
            ..WriteOptions::default()
        };
        let mut synced = Self {
            path: path.to_path_buf(),
            preallocate,
            writer: active::Writer::open(path, &options).unwrap(),
            records: 0,
        };
        // The zeros go to the disk with the first ones.
        synced.append();
        synced
    }

    fn append(&mut self) {
        if self.writer.position() + ROOM_A_SYNC > PREALLOCATED_BYTES {
            // Where syncs take no time, in memory, the room does not last.
            std::fs::remove_file(&self.path).unwrap();
            *self = Self::new(&self.path.clone(), self.preallocate);
        }
        for _ in 0..RECORDS_A_SYNC {
            self.records += 1;
            let value = [0x5a; SYNCED_VALUE_BYTES];
            let uuid = uuid(self.records);
            self.writer.append(&uuid, TYPE, &value).unwrap();
        }
        self.writer.sync().unwrap();
    }
}
