//! Random steps on a log, beside a model of it: a list of records, each in the log, or perhaps, or not.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::Config;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};
use seglake::checksum::Key;
use seglake::format::Filter;
use seglake::store::{Durability, LogReader, NewRecord, Retention, SegmentLog, Tail, TailFrom};
use seglake::{Error, Record, Value};
use uuid::Uuid;

use crate::schedule::run;
use crate::simulated::{Simulated, Trouble};
use crate::workload::{folder, options, reader};

const SEGMENT_BYTES: u64 = 1500;
/// In bytes: around a sector, a segment, and what is buffered.
const SIZES: [usize; 10] = [0, 1, 100, 460, 483, 512, 1471, 1472, 4096, (1 << 20) + 1];

/// What is done with a log.
#[derive(Clone, Debug)]
enum Action {
    Write(usize),
    WriteBatch(Vec<usize>),
    Sync,
    Roll,
    WaitSealed,
    Retain(u64),
    Reopen,
    /// Power is lost, and the seed says what survives. A second time so many calls later, while the log is put in order.
    Crash(u64, Option<usize>),
    /// Something goes wrong so many calls later.
    Trouble(usize, Trouble),
    BreakRead(usize),
    MakeRoom,
    WrongKey,
    Get(usize),
    Range(usize, usize),
    Tail(usize),
    Poll,
}

/// What the steps need of the log to make sense: how many records there were to be.
#[derive(Clone, Debug)]
struct Begun {
    /// Says which thread goes on.
    seed: u64,
    durability: Durability,
    records: usize,
}

struct Steps;

impl ReferenceStateMachine for Steps {
    type State = Begun;
    type Transition = Action;

    fn init_state() -> BoxedStrategy<Begun> {
        let durability = prop_oneof![
            4 => Just(Durability::Fsync),
            1 => Just(Durability::Flush),
            1 => Just(Durability::None),
        ];
        let begun = |(seed, durability)| Begun {
            seed,
            durability,
            records: 0,
        };
        (any::<u64>(), durability).prop_map(begun).boxed()
    }

    fn transitions(begun: &Begun) -> BoxedStrategy<Action> {
        let size = || prop_oneof![40 => 0..SIZES.len() - 1, 1 => Just(SIZES.len() - 1)];
        let trouble = prop_oneof![
            Just(Trouble::Broken),
            Just(Trouble::Full),
            Just(Trouble::Short)
        ];
        let place = || 0..begun.records.max(1);
        prop_oneof![
            12 => size().prop_map(Action::Write),
            3 => prop::collection::vec(size(), 0..5).prop_map(Action::WriteBatch),
            2 => Just(Action::Sync),
            3 => Just(Action::Roll),
            2 => Just(Action::WaitSealed),
            1 => (0..8000_u64).prop_map(Action::Retain),
            2 => Just(Action::Reopen),
            4 => (any::<u64>(), prop::option::of(0..30_usize))
                .prop_map(|(seed, again)| Action::Crash(seed, again)),
            2 => (0..20_usize, trouble).prop_map(|(at, own)| Action::Trouble(at, own)),
            1 => (0..40_usize).prop_map(Action::BreakRead),
            2 => Just(Action::MakeRoom),
            1 => Just(Action::WrongKey),
            2 => place().prop_map(Action::Get),
            2 => (place(), place()).prop_map(|(from, to)| Action::Range(from, to)),
            1 => place().prop_map(Action::Tail),
            4 => Just(Action::Poll),
        ]
        .boxed()
    }

    fn apply(mut begun: Begun, action: &Action) -> Begun {
        begun.records += match action {
            Action::Write(_) => 1,
            Action::WriteBatch(sizes) => sizes.len(),
            _ => 0,
        };
        begun
    }
}

/// What is known of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// It is in the log, also after a loss of power.
    Durable,
    /// It is, unless power is lost.
    Taken,
    /// It may be.
    Maybe,
}

/// A log, and the records that it should have. Those that are not in it are not in the model.
struct Live {
    disk: Simulated,
    log: Option<SegmentLog>,
    durability: Durability,
    records: BTreeMap<Uuid, (Vec<u8>, Known)>,
    /// All that were to be written: the next one has this number.
    begun: usize,
    tail: Option<Tail>,
    /// After which record the tail goes on.
    followed: Option<Uuid>,
}

/// The UUID of the record of a number. They ascend.
fn uuid(number: usize) -> Uuid {
    let ticks = 0x1f15_0000_0000_0000 + 10 * number as u64;
    let time = uuid::Timestamp::from_gregorian_time(ticks, 0);
    Uuid::new_v6(time, &[1; 6])
}

fn found(record: &Record) -> (Uuid, Vec<u8>) {
    let Some(Value::Uuid(uuid)) = record.field("uuid") else {
        panic!("a record without a UUID");
    };
    (Uuid::from_bytes(uuid), record.value().to_vec())
}

fn read(log: &LogReader, filter: &Filter) -> seglake::Result<Vec<(Uuid, Vec<u8>)>> {
    log.range(filter)?
        .map(|record| Ok(found(&record?)))
        .collect()
}

impl Live {
    fn open(&self) -> seglake::Result<SegmentLog> {
        let options = options(&self.disk, SEGMENT_BYTES)
            .durability(self.durability)
            .max_clock_ahead(Duration::MAX);
        SegmentLog::open(folder(), options)
    }

    fn log(&self) -> &SegmentLog {
        self.log.as_ref().unwrap()
    }

    /// The error of an injected fault, of which nothing more is to be said.
    fn tolerate<T>(told: seglake::Result<T>) -> Option<T> {
        match told {
            Ok(own) => Some(own),
            Err(Error::Io { .. } | Error::OutcomeUnknown { .. }) => None,
            Err(other) => panic!("{other}"),
        }
    }

    /// All that was taken so far has become this.
    fn all(&mut self, known: Known) {
        for (_, own) in self.records.values_mut() {
            if *own == Known::Taken {
                *own = known;
            }
        }
    }

    /// That these of some records are written, as durably as was promised.
    fn keep(&mut self, records: &[(Uuid, Vec<u8>)], written: &[Uuid]) {
        let known = match self.durability {
            Durability::Fsync => Known::Durable,
            _ => Known::Taken,
        };
        let is_written = |(uuid, _): &&(Uuid, Vec<u8>)| written.contains(uuid);
        for (uuid, value) in records.iter().filter(is_written) {
            self.records.insert(*uuid, (value.clone(), known));
        }
    }

    fn write(&mut self, sizes: &[usize]) {
        let first = self.begun;
        self.begun += sizes.len();
        let value = |number: usize, size: usize| {
            let mut value = format!("{number} ").into_bytes();
            value.resize(value.len() + SIZES[size], b'v');
            value
        };
        let records: Vec<_> = (first..)
            .zip(sizes)
            .map(|(number, size)| (uuid(number), value(number, *size)))
            .collect();
        let told = match &records[..] {
            [(uuid, value)] => self
                .log()
                .write_as(Some(*uuid), b"t", value)
                .map(|own| vec![own]),
            many => {
                let many = many
                    .iter()
                    .map(|(uuid, value)| NewRecord::new(b"t", value).uuid(*uuid));
                self.log().write_batch(many)
            }
        };
        let (uuids, known) = match told {
            Ok(uuids) => {
                assert!(uuids.iter().eq(records.iter().map(|(uuid, _)| uuid)));
                self.keep(&records, &uuids);
                (Vec::new(), Known::Maybe)
            }
            Err(Error::OutcomeUnknown { uuids, written, .. }) => {
                self.keep(&records, &written);
                (uuids, Known::Maybe)
            }
            Err(Error::Partial { written, .. }) => {
                self.keep(&records, &written);
                (Vec::new(), Known::Maybe)
            }
            Err(Error::Io { .. }) => (Vec::new(), Known::Maybe),
            Err(other) => panic!("{other}"),
        };
        for (uuid, value) in records {
            if uuids.contains(&uuid) {
                self.records.insert(uuid, (value, known));
            }
        }
    }

    /// That records are those of the model, from and to there.
    fn check(&self, found: &[(Uuid, Vec<u8>)], from: Option<Uuid>, to: Option<Uuid>) {
        assert!(
            found.is_sorted_by(|a, b| a.0 < b.0),
            "out of order, or twice"
        );
        for (uuid, value) in found {
            let own = self.records.get(uuid);
            assert!(
                own.is_some_and(|(own, _)| own == value),
                "{uuid} should not be there"
            );
        }
        let is_asked =
            |uuid: &Uuid| from.is_none_or(|from| from <= *uuid) && to.is_none_or(|to| *uuid < to);
        for (uuid, (_, known)) in &self.records {
            let is_there = found.iter().any(|(own, _)| own == uuid);
            assert!(
                is_there || *known != Known::Durable || !is_asked(uuid),
                "{uuid} is not there"
            );
        }
    }

    fn reader(&self) -> Option<LogReader> {
        Self::tolerate(reader(&self.disk))
    }

    /// All that a reader finds is there for good, and after the log was put in order nothing else is.
    fn settle(&mut self) {
        let found = read(&reader(&self.disk).unwrap(), &Filter::default()).unwrap();
        self.check(&found, None, None);
        let is_there = |uuid: &Uuid| found.iter().any(|(own, _)| own == uuid);
        self.records.retain(|uuid, _| is_there(uuid));
        self.records
            .values_mut()
            .for_each(|own| own.1 = Known::Durable);
    }

    /// Closes the log, and opens it again without any trouble.
    fn reopen(&mut self) {
        let closed = self.log().close();
        self.all(match Self::tolerate(closed) {
            Some(()) => Known::Durable,
            None => Known::Maybe,
        });
        self.log = None;
        self.disk.make_room();
        self.log = Some(self.open().unwrap());
        self.settle();
    }

    fn crash(&mut self, seed: u64, again: Option<usize>) {
        self.all(Known::Maybe);
        let mut after = self.disk.after_power_loss(seed);
        // What the process does after the loss is of another disk.
        self.log = None;
        self.tail = None;
        if let Some(at) = again {
            self.disk = after.copy();
            self.disk.trouble(at, Trouble::Crash);
            drop(self.open());
            after = self.disk.after_power_loss(!seed);
        }
        self.disk = after;
        self.log = Some(self.open().unwrap());
        self.settle();
    }

    fn retain(&mut self, bytes: u64) {
        let Some(removed) = Self::tolerate(self.log().retain(&Retention::default().bytes(bytes)))
        else {
            return self.reopen_after_removing();
        };
        if let Some(last) = removed.last() {
            self.forget(last.id.sequence);
        }
    }

    /// Where removing was cut short, some segments may be gone.
    fn reopen_after_removing(&mut self) {
        self.disk.make_room();
        let first = self.sequences().first().copied().unwrap_or(1);
        self.forget(first - 1);
        self.reopen();
    }

    fn sequences(&self) -> Vec<u64> {
        let files = self.disk.files();
        let names = files.keys().filter_map(|path| path.strip_prefix("log/"));
        let mut all: Vec<u64> = names
            .filter_map(|name| name.split('-').next()?.parse().ok())
            .collect();
        all.sort_unstable();
        all
    }

    /// Takes the records of segments up to this one out of the model: they are in front of the first UUID of the next one.
    fn forget(&mut self, sequence: u64) {
        let files = self.disk.files();
        let names = files.keys().filter_map(|path| path.strip_prefix("log/"));
        let next = names
            .filter(|name| name.starts_with(&format!("{:020}-", sequence + 1)))
            .find_map(|name| Uuid::try_parse(name.split_once('-')?.1.split('.').next()?).ok());
        let Some(next) = next else { return };
        self.records.retain(|uuid, _| *uuid >= next);
        if self.followed.is_none_or(|own| own < next) {
            self.tail = None;
        }
    }

    fn wrong_key(&mut self) {
        self.reopen();
        if self.records.is_empty() {
            return; // a log without segments is of any key
        }
        Self::tolerate(self.log().close()).unwrap();
        self.log = None;
        let before = self.disk.files();
        let wrong = options(&self.disk, SEGMENT_BYTES).key(Key::new(&[9; 32]));
        match SegmentLog::open(folder(), wrong) {
            Err(Error::Damage(damage)) => assert!(damage.wrong_key),
            other => panic!("{:?}", other.err()),
        }
        let after = self.disk.files();
        let differs =
            |path: &&String| !path.ends_with("_lock") && before.get(*path) != after.get(*path);
        assert_eq!(after.keys().find(differs), None);
        self.log = Some(self.open().unwrap());
        self.settle();
    }

    fn follow(&mut self, from: usize) {
        let Some(log) = self.reader() else { return };
        let (from, last) = match from % 3 {
            0 => (TailFrom::Start, None),
            1 => {
                let uuid = uuid(from);
                (TailFrom::After(uuid), Some(uuid))
            }
            _ => {
                let seen = Self::tolerate(read(&log, &Filter::default()));
                let Some(seen) = seen else { return };
                (TailFrom::Now, seen.last().map(|own| own.0))
            }
        };
        match log.tail(from) {
            Ok(tail) => (self.tail, self.followed) = (Some(tail), last),
            Err(Error::SegmentGone { .. } | Error::Io { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    fn poll(&mut self) {
        let Some(mut tail) = self.tail.take() else {
            return;
        };
        let mut given = Vec::new();
        let is_over = loop {
            match tail.poll() {
                Ok(Some(record)) => given.push(found(&record)),
                Ok(None) => break true,
                Err(Error::Io { .. }) => break false,
                Err(other) => panic!("{other}"),
            }
        };
        assert!(
            given.first().is_none_or(|own| Some(own.0) > self.followed),
            "given twice"
        );
        let to = if is_over {
            None
        } else {
            given.last().map(|own| own.0)
        };
        // Those that it was behind of when it began are not asked for.
        let from = self.followed.map(|own| Uuid::from_u128(own.as_u128() + 1));
        if is_over || !given.is_empty() {
            self.check(&given, from, to);
        }
        for (uuid, _) in &given {
            self.records.get_mut(uuid).unwrap().1 = Known::Durable;
        }
        self.followed = given.last().map(|own| own.0).max(self.followed);
        self.tail = Some(tail);
    }
}

struct Beside;

impl StateMachineTest for Beside {
    type SystemUnderTest = Live;
    type Reference = Steps;

    fn init_test(begun: &Begun) -> Live {
        let mut live = Live {
            disk: Simulated::new(),
            log: None,
            durability: begun.durability,
            records: BTreeMap::new(),
            begun: 0,
            tail: None,
            followed: None,
        };
        live.log = Some(live.open().unwrap());
        live
    }

    fn apply(mut live: Live, _: &Begun, action: Action) -> Live {
        match action {
            Action::Write(size) => live.write(&[size]),
            Action::WriteBatch(sizes) => live.write(&sizes),
            Action::Sync | Action::Roll => {
                let told = match action {
                    Action::Sync => live.log().sync(),
                    _ => live.log().roll(),
                };
                if Live::tolerate(told).is_some() {
                    live.all(Known::Durable);
                }
            }
            Action::WaitSealed => drop(Live::tolerate(live.log().wait_sealed())),
            Action::Retain(bytes) => live.retain(bytes),
            Action::Reopen => live.reopen(),
            Action::Crash(seed, again) => live.crash(seed, again),
            Action::Trouble(after, trouble) => {
                live.disk.trouble(live.disk.count() + after, trouble);
            }
            Action::BreakRead(after) => live.disk.break_read(live.disk.reads() + after),
            Action::MakeRoom => live.disk.make_room(),
            Action::WrongKey => live.wrong_key(),
            Action::Get(number) => {
                let uuid = uuid(number);
                let found = live.reader().and_then(|log| Live::tolerate(log.get(&uuid)));
                match (found, live.records.get(&uuid)) {
                    (Some(Some(record)), Some((value, _))) => assert_eq!(record.value(), value),
                    (Some(Some(_)), None) => panic!("{uuid} should not be there"),
                    (Some(None), Some((_, known))) => assert_ne!(*known, Known::Durable, "{uuid}"),
                    (Some(None), None) | (None, _) => {}
                }
            }
            Action::Range(from, to) => {
                let (from, to) = (uuid(from), uuid(to));
                let filter = Filter::default()
                    .at_least("uuid", from.into_bytes())
                    .below("uuid", to.into_bytes());
                let records = live
                    .reader()
                    .and_then(|log| Live::tolerate(read(&log, &filter)));
                if let Some(records) = records {
                    assert!(records.iter().all(|own| from <= own.0 && own.0 < to));
                    live.check(&records, Some(from), Some(to));
                }
            }
            Action::Tail(from) => live.follow(from),
            Action::Poll => live.poll(),
        }
        live
    }

    fn check_invariants(live: &Live, _: &Begun) {
        let records = live
            .reader()
            .map(|log| Live::tolerate(read(&log, &Filter::default())));
        if let Some(Some(records)) = records {
            live.check(&records, None, None);
        }
    }

    fn teardown(mut live: Live, _: Begun) {
        live.reopen();
    }
}

proptest! {
    #![proptest_config(Config {
        failure_persistence: None,
        ..Config::default()
    })]

    #[test]
    fn a_log_is_its_model(
        (begun, actions, seen) in Steps::sequential_strategy(1..40),
    ) {
        let seed = begun.seed;
        // A run that failed leaves its traces in its thread.
        let beside = move || Beside::test_sequential(Config::default(), begun, actions, seen);
        let tried = std::thread::spawn(move || run(seed, beside)).join();
        prop_assert!(tried.is_ok(), "see above");
    }
}
