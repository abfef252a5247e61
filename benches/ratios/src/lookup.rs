//! Looking up messages of a sealed segment by UUID, in random order and warm, beside LMDB and SQLite with the same keys and
//! values, and beside binary search in the same file.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use heed::types::Bytes;
use highway::{HighwayHash, HighwayHasher};
use seglake::format::sealed::Writer;
use seglake::format::{Lookup, Options, RecordId, WriteOptions, lookup};
use seglake::source::{MappedSource, Source};
use uuid::{Timestamp, Uuid};

use crate::compare::{Comparison, Work};
use crate::messages::{Random, TYPE};

/// The value of each message, in bytes.
const VALUE_BYTES: usize = 120;
/// How many keys one run looks up.
const KEYS: usize = 1000;
/// How many different keys are asked for, in a random order.
const ASKED: usize = 1 << 20;
const SEED: u64 = 7;

/// How the times of messages are spread.
#[derive(Clone, Copy)]
enum Spread {
    /// As of independent arrivals.
    Even,
    /// Bursts of some thousands, with long pauses of any length in between.
    Bursts,
    /// Twice as long a pause each time, as far as 60 bits go: no line is near it anywhere.
    Exponential,
}

/// The UUIDs of so many messages, ascending.
fn uuids(spread: Spread, count: usize) -> Vec<[u8; 16]> {
    let mut random = Random::new(SEED);
    let mut tick = 0x01ee_0000_0000_0000_u64;
    let uuid = |number: usize| {
        tick += match spread {
            Spread::Even => random.next() % 100_000 + 1,
            Spread::Bursts if random.next().is_multiple_of(4096) => {
                1 << (random.next() % 40) // up to a day
            }
            Spread::Bursts => 1,
            Spread::Exponential if number.is_multiple_of(count / 40) => {
                1 << (number / (count / 40))
            }
            Spread::Exponential => 1,
        };
        Uuid::new_v6(Timestamp::from_gregorian_time(tick, 7), &[1, 2, 3, 4, 5, 6]).into_bytes()
    };
    (0..count).map(uuid).collect()
}

/// The value of a message, into `value`.
fn fill(value: &mut [u8; VALUE_BYTES], random: &mut Random) {
    for eight in value.as_chunks_mut::<8>().0 {
        *eight = random.next().to_le_bytes();
    }
}

fn sealed(path: &Path, uuids: &[[u8; 16]]) -> Arc<dyn Source> {
    let (mut random, mut value) = (Random::new(SEED), [0; VALUE_BYTES]);
    let mut writer = Writer::create(path, &WriteOptions::default()).unwrap();
    for uuid in uuids {
        fill(&mut value, &mut random);
        writer
            .append(&Uuid::from_bytes(*uuid), TYPE, &value)
            .unwrap();
    }
    seglake::format::Writer::close(&mut writer).unwrap();
    let file = std::fs::File::open(path).unwrap();
    let source = MappedSource::new(&file, path).unwrap();
    // Warm: every page is in memory and mapped.
    black_box(
        source
            .as_slice()
            .unwrap()
            .iter()
            .step_by(4096)
            .fold(0, |all, byte| all ^ byte),
    );
    Arc::new(source)
}

/// A look-up that makes a table of at most so many bytes, at once.
fn open(source: &Arc<dyn Source>, table: usize) -> Box<dyn Lookup> {
    let options = Options {
        lookup_table_bytes: table,
        ..Options::default()
    };
    let lookup = lookup(source.clone(), &options).unwrap();
    lookup.prepare().unwrap();
    lookup
}

struct Lmdb {
    env: heed::Env,
    database: heed::Database<Bytes, Bytes>,
}

impl Lmdb {
    fn make(folder: &Path, uuids: &[[u8; 16]]) -> Self {
        std::fs::create_dir(folder).unwrap();
        let mut options = heed::EnvOpenOptions::new();
        options.map_size(uuids.len() * 512 + (64 << 20));
        // SAFETY: nothing else opens this environment, and nothing truncates its file.
        let env = unsafe { options.flags(heed::EnvFlags::NO_SYNC).open(folder) }.unwrap();
        let mut write = env.write_txn().unwrap();
        let database = env
            .create_database::<Bytes, Bytes>(&mut write, None)
            .unwrap();
        let (mut random, mut value) = (Random::new(SEED), [0; VALUE_BYTES]);
        for uuid in uuids {
            fill(&mut value, &mut random);
            let flags = heed::PutFlags::APPEND; // pages as full as they can be
            database
                .put_with_flags(&mut write, flags, uuid, &value)
                .unwrap();
        }
        write.commit().unwrap();
        let read = env.read_txn().unwrap();
        for pair in database.iter(&read).unwrap() {
            black_box(pair.unwrap().1[VALUE_BYTES - 1]);
        }
        drop(read);
        Self { env, database }
    }
}

fn sqlite(path: &Path, uuids: &[[u8; 16]]) -> rusqlite::Connection {
    let mut connection = rusqlite::Connection::open(path).unwrap();
    connection
        .pragma_update(None, "synchronous", "off")
        .unwrap();
    connection
        .pragma_update(None, "mmap_size", 1_i64 << 40)
        .unwrap();
    let table = "create table messages (uuid blob primary key, value blob) without rowid";
    connection.execute(table, ()).unwrap();
    let transaction = connection.transaction().unwrap();
    let (mut random, mut value) = (Random::new(SEED), [0; VALUE_BYTES]);
    {
        let mut insert = transaction
            .prepare("insert into messages values (?, ?)")
            .unwrap();
        for uuid in uuids {
            fill(&mut value, &mut random);
            insert.execute((uuid, &value)).unwrap();
        }
    }
    transaction.commit().unwrap();
    connection
}

/// Gives keys, a thousand at a time, in a random order that does not end.
struct Keys {
    ids: Vec<RecordId>,
    next: usize,
}

impl Keys {
    fn of(uuids: &[[u8; 16]]) -> Self {
        let mut random = Random::new(SEED + 1);
        let pick = |_| {
            let place = random.next() % uuids.len() as u64;
            RecordId::Uuid(uuids[usize::try_from(place).unwrap()])
        };
        Self {
            ids: (0..ASKED).map(pick).collect(),
            next: 0,
        }
    }

    fn some(&mut self) -> &[RecordId] {
        self.next = (self.next + KEYS) % (self.ids.len() - KEYS);
        &self.ids[self.next..self.next + KEYS]
    }
}

fn uuid(id: &RecordId) -> &[u8; 16] {
    match id {
        RecordId::Uuid(uuid) => uuid,
        _ => unreachable!("all are UUIDs"),
    }
}

fn one_by_one(lookup: &dyn Lookup, ids: &[RecordId]) {
    for id in ids {
        let hits = lookup.get(std::slice::from_ref(id)).unwrap();
        assert!(hits.places[0].is_some());
    }
}

fn all_at_once(lookup: &dyn Lookup, ids: &[RecordId]) {
    let hits = lookup.get(ids).unwrap();
    assert!(hits.places.iter().all(Option::is_some));
}

/// Binary search by hand, and the checksum of what it finds.
fn by_halving(bytes: &[u8], count: usize, uuid: &[u8; 16]) {
    let entry = |number: usize| &bytes[24 * number..24 * number + 24];
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if entry(middle)[..16] < uuid[..] {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let found = entry(low);
    assert_eq!(&found[..16], uuid);
    let offset = usize::try_from(u64::from_be_bytes(found[16..].try_into().unwrap())).unwrap();
    let len = 5 + TYPE.len() + VALUE_BYTES;
    let mut hasher = HighwayHasher::new(highway::Key([0; 4]));
    hasher.append(uuid);
    hasher.append(&bytes[offset..offset + len]);
    let trailer = bytes.len() - 32 - 8 * count + 8 * low;
    assert_eq!(
        hasher.finalize64().to_be_bytes(),
        bytes[trailer..trailer + 8]
    );
}

pub(crate) fn run(comparison: &mut Comparison) {
    let messages = std::env::var("SEGLAKE_RATIOS_MESSAGES").map(|text| text.parse().unwrap());
    let messages = messages.unwrap_or(10_000_000);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let work = Work::Items(KEYS);

    let even = uuids(Spread::Even, messages);
    let source = sealed(&path("even.sealed"), &even);
    let lmdb = Lmdb::make(&path("lmdb"), &even);
    let (mut own, mut other) = (Keys::of(&even), Keys::of(&even));
    let read = lmdb.env.read_txn().unwrap();
    let mut theirs = || {
        for id in other.some() {
            let value = lmdb.database.get(&read, uuid(id)).unwrap();
            black_box(value.unwrap());
        }
    };
    let plain = open(&source, 0);
    let lookup = open(&source, Options::LOOKUP_TABLE_BYTES);
    comparison.run(
        "get, no table",
        "LMDB",
        work,
        3.0,
        || one_by_one(&*plain, own.some()),
        &mut theirs,
    );
    comparison.run(
        "get",
        "LMDB",
        work,
        6.0,
        || one_by_one(&*lookup, own.some()),
        &mut theirs,
    );
    comparison.run(
        "get_many of 1,000, no table",
        "LMDB, a loop",
        work,
        None,
        || all_at_once(&*plain, own.some()),
        &mut theirs,
    );
    comparison.run(
        "get_many of 1,000",
        "LMDB, a loop",
        work,
        15.0,
        || all_at_once(&*lookup, own.some()),
        &mut theirs,
    );
    drop(read);
    drop(lmdb);
    let connection = sqlite(&path("sqlite"), &even);
    let mut select = connection
        .prepare("select value from messages where uuid = ?")
        .unwrap();
    comparison.run(
        "get",
        "SQLite",
        work,
        None,
        || one_by_one(&*lookup, own.some()),
        || {
            for id in other.some() {
                let len: usize = select
                    .query_row((uuid(id),), |row| Ok(row.get_ref(0)?.as_blob()?.len()))
                    .unwrap();
                assert_eq!(len, VALUE_BYTES);
            }
        },
    );
    for (name, spread) in [
        ("even", Spread::Even),
        ("bursts", Spread::Bursts),
        ("exponential", Spread::Exponential),
    ] {
        let keys = uuids(spread, messages / 4);
        let source = sealed(&path(name), &keys);
        let bytes = source.as_slice().unwrap();
        let (mut own, mut other) = (Keys::of(&keys), Keys::of(&keys));
        for (table, bytes_of_table) in [(", no table", 0), ("", Options::LOOKUP_TABLE_BYTES)] {
            let lookup = open(&source, bytes_of_table);
            comparison.run(
                format!("get{table}, times {name}"),
                "binary search",
                work,
                1.0,
                || one_by_one(&*lookup, own.some()),
                || {
                    for id in other.some() {
                        by_halving(bytes, keys.len(), uuid(id));
                    }
                },
            );
        }
    }
}
