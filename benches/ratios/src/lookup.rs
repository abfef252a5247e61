//! Looking up messages of a sealed segment by UUID, in random order, mapped and warm. It is compared with LMDB and SQLite with the same
//! keys and values, with binary search in the same file, and with the loads that every look-up needs.

use std::cell::RefCell;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use heed::types::Bytes;
use highway::{HighwayHash, HighwayHasher};
use seglake::checksum::{Key, hash};
use seglake::format::sealed::Writer;
use seglake::format::{Hits, Lookup, Options, RecordId, Scalar, WriteOptions, lookup};
use seglake::source::{FileSource, MappedSource, Source};
use uuid::{Timestamp, Uuid};

use crate::compare::{Beside, Comparison, Work};
use crate::messages::{Random, TYPE};

/// The value of each message, in bytes.
const VALUE_BYTES: usize = 120;
/// How many keys one run looks up.
const KEYS: usize = 1000;
/// How many keys each side has for one round. It is more than a round uses, and the keys of each round differ.
const KEYS_OF_A_ROUND: usize = 256_000;
const SEED: u64 = 7;
/// The share of the loads' speed to reach.
const TARGET: f64 = 0.5;
/// What each tier of a look-up has to gain over the look-up without it.
const TIER: f64 = 1.15;
/// An entry of the index: a UUID, and where its message begins.
const ENTRY_BYTES: usize = 24;

/// The distribution of the messages' times.
#[derive(Clone, Copy)]
enum Spread {
    /// Independent arrivals.
    Even,
    /// Bursts of some thousands, with long pauses of any length between them.
    Bursts,
    /// The pause doubles each time, up to 60 bits. No line approximates it anywhere.
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
    // SAFETY: nobody changes the file while it is measured.
    let source = unsafe { MappedSource::new(&file, path) }.unwrap();
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

/// A look-up that makes a table of at most this many bytes at once.
fn open(source: &Arc<dyn Source>, table: usize) -> Box<dyn Lookup> {
    let options = Options::default().set("lookup_table_bytes", table);
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

/// SQLite, its cache as large as its file.
fn sqlite(path: &Path, uuids: &[[u8; 16]]) -> rusqlite::Connection {
    let mut connection = rusqlite::Connection::open(path).unwrap();
    connection
        .pragma_update(None, "synchronous", "off")
        .unwrap();
    connection
        .pragma_update(None, "mmap_size", 1_i64 << 40)
        .unwrap();
    connection
        .pragma_update(None, "cache_size", -(8_i64 << 20)) // in KiB
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

/// Keys in random order, a thousand at a time. Two sides draw different ones.
struct Keys<'a> {
    uuids: &'a [[u8; 16]],
    random: Random,
    ids: Vec<RecordId>,
    next: usize,
}

impl<'a> Keys<'a> {
    fn of(uuids: &'a [[u8; 16]], seed: u64) -> RefCell<Self> {
        RefCell::new(Self {
            uuids,
            random: Random::new(SEED + seed),
            ids: Vec::new(),
            next: 0,
        })
    }

    /// Draws the keys of the next round.
    fn draw(&mut self) {
        self.next = 0;
        self.ids.clear();
        for _ in 0..KEYS_OF_A_ROUND {
            let place = self.random.next() % self.uuids.len() as u64;
            let uuid = self.uuids[usize::try_from(place).unwrap()];
            self.ids.push(RecordId::from(uuid));
        }
    }

    fn some(&mut self) -> &[RecordId] {
        let start = self.next;
        self.next = (start + KEYS) % KEYS_OF_A_ROUND;
        &self.ids[start..start + KEYS]
    }
}

fn uuid(id: &RecordId) -> &[u8; 16] {
    match id.values() {
        [Scalar::Uuid(uuid)] => uuid,
        _ => unreachable!("all are UUIDs"),
    }
}

/// Looks up one key after the other, and touches each value.
fn one_by_one(lookup: &dyn Lookup, ids: &[RecordId]) {
    for id in ids {
        touch(&lookup.get(std::slice::from_ref(id)).unwrap());
    }
}

fn all_at_once(lookup: &dyn Lookup, ids: &[RecordId]) {
    touch(&lookup.get(ids).unwrap());
}

fn touch(hits: &Hits) {
    hits.each(|found| {
        let (rows, row) = found.unwrap();
        touch_value(rows.value(row));
    });
}

/// Reads a byte of each cache line of the value.
fn touch_value(value: &[u8]) {
    assert_eq!(value.len(), VALUE_BYTES);
    black_box(value[0] ^ value[VALUE_BYTES / 2] ^ value[VALUE_BYTES - 1]);
}

/// The loads that every look-up needs: an entry of the index, and the message that it names, from the segment's own bytes. It does no
/// search, no comparison and no checksum.
struct Loads<'a> {
    bytes: &'a [u8],
    count: usize,
    random: Random,
    places: Vec<usize>,
    next: usize,
    last: usize,
}

impl<'a> Loads<'a> {
    fn of(bytes: &'a [u8], count: usize) -> RefCell<Self> {
        RefCell::new(Self {
            bytes,
            count,
            random: Random::new(SEED + 2),
            places: Vec::new(),
            next: 0,
            last: 0,
        })
    }

    /// Draws the entries of the next round.
    fn draw(&mut self) {
        self.next = 0;
        self.places.clear();
        let place = |_| usize::try_from(self.random.next() % self.count as u64).unwrap();
        self.places.extend((0..KEYS_OF_A_ROUND).map(place));
    }

    fn some(&mut self) -> std::ops::Range<usize> {
        let start = self.next;
        self.next = (start + KEYS) % KEYS_OF_A_ROUND;
        start..start + KEYS
    }

    fn entry(&self, place: usize) -> usize {
        let at = ENTRY_BYTES * place + 16;
        let offset = self.bytes[at..].first_chunk().unwrap();
        usize::try_from(u64::from_be_bytes(*offset)).unwrap()
    }

    fn message(&self, offset: usize) -> usize {
        usize::from(self.bytes[offset] ^ self.bytes[offset + TYPE.len() + VALUE_BYTES])
    }

    /// One pair after the other: the next entry's address depends on the last message.
    fn in_turn(&mut self) {
        // Always zero, but neither the compiler nor the processor can know that.
        let zero = black_box(0);
        for place in self.some() {
            let offset = self.entry(self.places[place] + (self.last & zero));
            self.last = self.message(offset);
        }
        black_box(self.last);
    }

    /// Independent pairs: first the entries of a group, then its messages.
    fn side_by_side(&mut self) {
        let mut all = 0;
        for place in self.some().step_by(GROUP) {
            let mut offsets = [0; GROUP];
            for (offset, place) in offsets.iter_mut().zip(&self.places[place..]) {
                *offset = self.entry(*place);
            }
            for offset in offsets {
                all ^= self.message(offset);
            }
        }
        black_box(all);
    }
}

/// Loads that are started together: more than the processor can have in flight. A divisor of [`KEYS`].
const GROUP: usize = 40;

/// Binary search by hand, and the checksum of the result.
fn by_halving(bytes: &[u8], count: usize, uuid: &[u8; 16]) {
    let entry = |number: usize| {
        *bytes[ENTRY_BYTES * number..]
            .first_chunk::<ENTRY_BYTES>()
            .unwrap()
    };
    let (low, found) = halve(entry, count, uuid);
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

/// The number of the entry with this UUID, and the entry.
fn halve(
    entry: impl Fn(usize) -> [u8; ENTRY_BYTES],
    count: usize,
    uuid: &[u8; 16],
) -> (usize, [u8; ENTRY_BYTES]) {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if entry(middle)[..16] < uuid[..] {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    (low, entry(low))
}

/// Binary search in a file that is not mapped, a read for each look, and one for the message.
fn by_reads(file: &dyn Source, count: usize, uuid: &[u8; 16]) {
    let entry = |number: usize| {
        let mut entry = [0; ENTRY_BYTES];
        let at = (ENTRY_BYTES * number) as u64;
        file.read_exact_at(at, &mut entry).unwrap();
        entry
    };
    let (_, found) = halve(entry, count, uuid);
    assert_eq!(&found[..16], uuid);
    let mut message = [0; 5 + TYPE.len() + VALUE_BYTES];
    let at = u64::from_be_bytes(found[16..].try_into().unwrap());
    file.read_exact_at(at, &mut message).unwrap();
    black_box(hash(&Key::DEFAULT, &message));
}

pub(crate) fn run(comparison: &mut Comparison) {
    let messages = std::env::var("SEGLAKE_RATIOS_MESSAGES").map(|text| text.parse().unwrap());
    let messages = messages.unwrap_or(10_000_000);
    let folder = tempfile::tempdir().unwrap();
    beside_databases(comparison, folder.path(), messages);
    for (name, spread) in [
        ("even", Spread::Even),
        ("bursts", Spread::Bursts),
        ("exponential", Spread::Exponential),
    ] {
        let keys = uuids(spread, messages / 4);
        let source = sealed(&folder.path().join(name), &keys);
        let bytes = source.as_slice().unwrap();
        let [without, with] = [0, 16 << 20].map(|bytes| open(&source, bytes));
        let sides = Sides::of(&keys);
        for (table, lookup) in [(", no table", &without), ("", &with)] {
            sides.run(
                comparison,
                &format!("get, times {name}{table}"),
                Beside::Peer("binary search by hand"),
                1.0,
                |ids| one_by_one(&**lookup, ids),
                |ids| {
                    ids.iter()
                        .for_each(|id| by_halving(bytes, keys.len(), uuid(id)))
                },
            );
        }
        sides.run(
            comparison,
            &format!("get, times {name}"),
            Beside::Itself("without its table"),
            TIER,
            |ids| one_by_one(&*with, ids),
            |ids| one_by_one(&*without, ids),
        );
        sides.run(
            comparison,
            &format!("get_many of {KEYS}, times {name}"),
            Beside::Itself("get of each"),
            TIER,
            |ids| all_at_once(&*with, ids),
            |ids| one_by_one(&*with, ids),
        );
        if matches!(spread, Spread::Even) {
            let file: Arc<dyn Source> =
                Arc::new(FileSource::open(&folder.path().join(name)).unwrap());
            let guessing = open(&file, 0);
            sides.run(
                comparison,
                &format!("get, times {name}, no table, not mapped"),
                Beside::Peer("binary search by hand, a read for each look"),
                TIER,
                |ids| one_by_one(&*guessing, ids),
                |ids| {
                    ids.iter()
                        .for_each(|id| by_reads(&*file, keys.len(), uuid(id)))
                },
            );
        }
    }
}

/// The keys of both sides.
struct Sides<'a> {
    own: RefCell<Keys<'a>>,
    other: RefCell<Keys<'a>>,
}

impl<'a> Sides<'a> {
    fn of(uuids: &'a [[u8; 16]]) -> Self {
        Self {
            own: Keys::of(uuids, 1),
            other: Keys::of(uuids, 3),
        }
    }

    /// Measures two ways to look up so many keys, which differ in each round.
    fn run(
        &self,
        comparison: &mut Comparison,
        name: &str,
        beside: Beside<'_>,
        target: impl Into<Option<f64>>,
        mut ours: impl FnMut(&[RecordId]),
        mut theirs: impl FnMut(&[RecordId]),
    ) {
        let Self { own, other } = self;
        comparison.run_each(
            name,
            beside,
            [Work::Items(KEYS); 2],
            target,
            || {
                [own, other]
                    .into_iter()
                    .for_each(|keys| keys.borrow_mut().draw())
            },
            || ours(own.borrow_mut().some()),
            || theirs(other.borrow_mut().some()),
        );
    }
}

fn beside_databases(comparison: &mut Comparison, folder: &Path, messages: usize) {
    let even = uuids(Spread::Even, messages);
    let source = sealed(&folder.join("even.sealed"), &even);
    let lookup = open(&source, 16 << 20);
    let (get, many) = ("get", format!("get_many of {KEYS}"));
    let sides = Sides::of(&even);

    let loads = Loads::of(source.as_slice().unwrap(), even.len());
    let own = &sides.own;
    let draw = || {
        own.borrow_mut().draw();
        loads.borrow_mut().draw();
    };
    comparison.run_each(
        get,
        Beside::Limit("two loads, one after the other"),
        [Work::Items(KEYS); 2],
        TARGET,
        draw,
        || one_by_one(&*lookup, own.borrow_mut().some()),
        || loads.borrow_mut().in_turn(),
    );
    comparison.run_each(
        &many,
        Beside::Limit("two loads for each key, all at once"),
        [Work::Items(KEYS); 2],
        None,
        draw,
        || all_at_once(&*lookup, own.borrow_mut().some()),
        || loads.borrow_mut().side_by_side(),
    );

    let lmdb = Lmdb::make(&folder.join("lmdb"), &even);
    let read = lmdb.env.read_txn().unwrap();
    let value = |id: &RecordId| lmdb.database.get(&read, uuid(id)).unwrap().unwrap();
    let touched = |ids: &[RecordId]| ids.iter().for_each(|id| touch_value(value(id)));
    let hashed = |ids: &[RecordId]| {
        for id in ids {
            black_box(hash(&Key::DEFAULT, value(id)));
        }
    };
    let one = |ids: &[RecordId]| one_by_one(&*lookup, ids);
    let all = |ids: &[RecordId]| all_at_once(&*lookup, ids);
    let peer = Beside::Peer("LMDB, values touched");
    sides.run(comparison, get, peer, 1.0, one, touched);
    let peer = Beside::Peer("LMDB, values hashed");
    sides.run(comparison, get, peer, 1.0, one, hashed);
    let peer = Beside::Peer("LMDB in a loop, values touched");
    sides.run(comparison, &many, peer, 1.0, all, touched);
    let peer = Beside::Peer("LMDB in a loop, values hashed");
    sides.run(comparison, &many, peer, 1.0, all, hashed);
    drop(read);
    drop(lmdb);

    let connection = sqlite(&folder.join("sqlite"), &even);
    // One read transaction around all look-ups, and every page read once.
    connection.execute_batch("begin").unwrap();
    let sum = "select sum(length(value)), max(value) from messages";
    let warmed: i64 = connection.query_row(sum, (), |row| row.get(0)).unwrap();
    assert_eq!(warmed as usize, even.len() * VALUE_BYTES);
    let mut select = connection
        .prepare("select value from messages where uuid = ?")
        .unwrap();
    let peer = Beside::Peer("SQLite, one warm read transaction");
    sides.run(comparison, get, peer, 1.0, one, |ids| {
        for id in ids {
            let mut rows = select.query((uuid(id),)).unwrap();
            let row = rows.next().unwrap().unwrap();
            touch_value(row.get_ref(0).unwrap().as_blob().unwrap());
        }
    });
}
