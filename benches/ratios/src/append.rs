//! Appending to an active segment, compared with hashing and writing the same bytes once, with the same without checksums, and with the
//! crate `seglog`. Appending and syncing a few records, compared with writing and syncing the same bytes, and with a file that grows.

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use seglake::checksum::{Key, hash_many};
use seglake::format::{WriteOptions, Writer as _, active};
use tempfile::TempDir;
use uuid::{Timestamp, Uuid};

use crate::compare::{Beside, Clock, Comparison, Work};
use crate::messages::{Lengths, Random, TYPE};

/// How many bytes of values one run appends.
const VALUE_BYTES: usize = 24 << 20;
/// The buffer of seglake's writers. Its bytes have the same place in their cache line as in the file.
const BUFFER_BYTES: usize = 1 << 20;
const CACHE_LINE_BYTES: usize = 64;
/// Records and bytes that are hashed together while they are in the second cache.
const GROUP: usize = 512;
const GROUP_BYTES: usize = 256 << 10;
/// How many records are synced together.
const RECORDS_A_SYNC: usize = 16;
const SYNCED_VALUE_BYTES: usize = 120;
/// The bytes of records synced together, at least and at most.
const BYTES_A_SYNC: usize = RECORDS_A_SYNC * (16 + 1 + TYPE.len() + 4 + SYNCED_VALUE_BYTES + 8);
const ROOM_A_SYNC: u64 = 4 << 10;
/// Room for all that is synced.
const PREALLOCATED_BYTES: u64 = 128 << 20;
/// The shares of the limits' speeds to reach.
const TARGET: f64 = 0.85;
const SYNC_TARGET: f64 = 0.9;

pub(crate) fn run(comparison: &mut Comparison) {
    for (name, lengths) in Lengths::ALL {
        let messages = Messages::new(lengths);
        let framed = Framed::of(&messages);
        let work = Work::Bytes(messages.values.len());
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("ours");
        let other = folder.path().join("theirs");
        let name = format!("append, {name}");
        comparison.run(
            &name,
            Beside::Limit("hashing, then writing the same bytes once"),
            work,
            TARGET,
            || messages.append(&path),
            || framed.hash_and_write(&other),
        );
        comparison.run(
            &name,
            Beside::Limit("the same without checksums"),
            work,
            None,
            || messages.append(&path),
            || messages.frame(&other),
        );
        comparison.run(
            &name,
            Beside::Peer("seglog"),
            work,
            1.0,
            || messages.append(&path),
            || messages.append_seglog(&other),
        );
    }
    sync(comparison);
}

/// Messages to append: UUIDs, and adjacent values.
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

    /// As seglake appends.
    fn append(&self, path: &Path) {
        let mut writer = active::Writer::open(path, &WriteOptions::default()).unwrap();
        for (uuid, value) in self.iter() {
            writer.append(uuid, TYPE, value).unwrap();
        }
        writer.close().unwrap();
        std::fs::remove_file(path).unwrap();
    }

    /// The same bytes, but with checksums of 0, with the same checks of UUIDs, through the same buffer.
    fn frame(&self, path: &Path) {
        let mut out = Buffer::new(path);
        let mut last = Uuid::nil();
        for (uuid, value) in self.iter() {
            assert!(*uuid > last && uuid.get_version_num() == 6);
            last = *uuid;
            out.bytes.extend_from_slice(uuid.as_bytes());
            out.bytes.push(u8::try_from(TYPE.len()).unwrap());
            out.bytes.extend_from_slice(TYPE);
            let len = u32::try_from(value.len()).unwrap();
            out.bytes.extend_from_slice(&len.to_be_bytes());
            out.bytes.extend_from_slice(value);
            out.bytes.extend_from_slice(&0_u64.to_be_bytes());
            if out.bytes.len() - out.padding >= BUFFER_BYTES {
                out.write();
            }
        }
        out.write();
        std::fs::remove_file(path).unwrap();
    }

    /// As the crate `seglog` appends. It must know the file's length beforehand. UUIDs are its headers.
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

/// A file with the buffer of seglake's writers: it is written when it is full, and its bytes have the same place in
/// their cache line as in the file's pages.
struct Buffer {
    file: File,
    at: u64,
    bytes: Vec<u8>,
    padding: usize,
}

impl Buffer {
    fn new(path: &Path) -> Self {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .unwrap();
        file.lock().unwrap();
        Self {
            file,
            at: 0,
            bytes: Vec::new(),
            padding: 0,
        }
    }

    fn write(&mut self) {
        let bytes = &self.bytes[self.padding..];
        self.file.write_all_at(bytes, self.at).unwrap();
        self.at += bytes.len() as u64;
        self.bytes.clear();
        self.bytes.shrink_to(BUFFER_BYTES * 2);
        self.padding = padding(self.bytes.as_ptr(), self.at);
        self.bytes.resize(self.padding, 0);
    }
}

/// The number of bytes to skip from this address, so that the next byte has the place in its cache line that `at` has in a page.
fn padding(address: *const u8, at: u64) -> usize {
    let within_line = usize::try_from(at).unwrap() % CACHE_LINE_BYTES;
    within_line.wrapping_sub(address.addr()) % CACHE_LINE_BYTES
}

/// The bytes of a segment, made beforehand.
struct Framed {
    bytes: Vec<u8>,
    /// The first byte of the segment, which is at the start of a cache line.
    padding: usize,
    /// Where each record begins, and how many bytes of it are hashed.
    records: Vec<(usize, usize)>,
}

impl Framed {
    fn of(messages: &Messages) -> Self {
        let record = 16 + 1 + TYPE.len() + 4 + 8;
        let room = messages.values.len() + record * messages.uuids.len();
        let mut bytes = Vec::with_capacity(room + CACHE_LINE_BYTES);
        let padding = padding(bytes.as_ptr(), 0);
        bytes.resize(padding, 0);
        let mut records = Vec::with_capacity(messages.uuids.len());
        for (uuid, value) in messages.iter() {
            let start = bytes.len();
            active::encode(&mut bytes, &Key::DEFAULT, uuid.as_bytes(), TYPE, value).unwrap();
            records.push((start, bytes.len() - 8 - start));
        }
        Self {
            bytes,
            padding,
            records,
        }
    }

    /// Hashes group by group, and writes a writer's buffer right after it was hashed.
    fn hash_and_write(&self, path: &Path) {
        let file = File::create_new(path).unwrap();
        let (mut hashes, mut at) = (Vec::new(), self.padding);
        let mut write = |end: usize, least: usize| {
            while end - at >= least.max(1) {
                let piece = BUFFER_BYTES.min(end - at);
                let offset = (at - self.padding) as u64;
                file.write_all_at(&self.bytes[at..at + piece], offset)
                    .unwrap();
                at += piece;
            }
        };
        let mut rest = &*self.records;
        while let Some((first, _)) = rest.first() {
            let within = |(start, len): &&(usize, usize)| start + len - first <= GROUP_BYTES;
            let count = rest.iter().take(GROUP).take_while(within).count().max(1);
            let (group, others) = rest.split_at(count);
            hash_many(&Key::DEFAULT, &self.bytes, group, &mut hashes);
            black_box(&hashes);
            let (start, len) = group[count - 1];
            write(start + len + 8, BUFFER_BYTES);
            rest = others;
        }
        write(self.bytes.len(), 1);
        std::fs::remove_file(path).unwrap();
    }
}

/// The n-th UUID.
fn uuid(number: usize) -> Uuid {
    let tick = 0x01ee_0000_0000_0000 + 10 * number as u64;
    Uuid::new_v6(Timestamp::from_gregorian_time(tick, 7), &[1, 2, 3, 4, 5, 6])
}

/// Small batches, each synced, in wall time, which is mostly waiting.
fn sync(comparison: &mut Comparison) {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut preallocated = Synced::new(&path("preallocated"), PREALLOCATED_BYTES);
    let mut growing = Synced::new(&path("growing"), 0);
    let mut by_hand = ByHand::new(&path("by hand"));
    let work = Work::Items(RECORDS_A_SYNC);
    comparison.clock(Clock::Wall);
    let name = format!("append and sync {RECORDS_A_SYNC} records");
    comparison.run(
        &name,
        Beside::Limit("as many bytes and fdatasync, by hand"),
        work,
        SYNC_TARGET,
        || preallocated.append(),
        || by_hand.append(),
    );
    comparison.run(
        format!("{name}, preallocated"),
        Beside::Itself("a file that grows"),
        work,
        None,
        || preallocated.append(),
        || growing.append(),
    );
}

/// A preallocated file of zeros, into which as many bytes as the records have are written and synced.
struct ByHand {
    file: File,
    at: u64,
}

impl ByHand {
    fn new(path: &Path) -> Self {
        let file = File::create_new(path).unwrap();
        let zeros = vec![0; 1 << 20];
        for at in (0..PREALLOCATED_BYTES).step_by(zeros.len()) {
            file.write_all_at(&zeros, at).unwrap();
        }
        file.sync_all().unwrap();
        Self { file, at: 0 }
    }

    fn append(&mut self) {
        if self.at + ROOM_A_SYNC > PREALLOCATED_BYTES {
            self.at = 0;
        }
        let records = [0x5a; BYTES_A_SYNC];
        self.file.write_all_at(&records, self.at).unwrap();
        self.file.sync_data().unwrap();
        self.at += BYTES_A_SYNC as u64;
    }
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
        let options = WriteOptions::default().set("preallocate", preallocate);
        let mut synced = Self {
            path: path.to_path_buf(),
            preallocate,
            writer: active::Writer::open(path, &options).unwrap(),
            records: 0,
        };
        // The zeros are written to the disk with the first records.
        synced.append();
        synced
    }

    fn append(&mut self) {
        if self.writer.position() + ROOM_A_SYNC > PREALLOCATED_BYTES {
            // If syncs take no time, in memory, the room would be used up.
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
