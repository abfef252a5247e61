//! Errors of the disk at every call, and at every look, of a log's whole life: it opens, writes, ends and seals segments, follows,
//! removes, closes and is put in order. Whatever fails, nothing is lost that was promised, and all comes to an end.

use std::collections::BTreeMap;

use seglake::store::{Retention, SegmentLog, TailFrom};

use crate::history::{Fate, History, Shared};
use crate::oracle::values;
use crate::schedule::run;
use crate::simulated::{Random, Simulated, Trouble};
use crate::workload::{folder, options, reader};

const SEGMENT_BYTES: u64 = 300;

/// A log's life, in which any call may fail. The first of its records is of this number.
fn live(shared: &Shared, first: usize) {
    let disk = &shared.disk;
    let Ok(log) = SegmentLog::open(folder(), options(disk, SEGMENT_BYTES)) else {
        return;
    };
    let mut tail = reader(disk).and_then(|log| log.tail(TailFrom::Start)).ok();
    for number in first..first + 6 {
        let value = format!("{number} {}", "x".repeat(number % 4 * 40)).into_bytes();
        let told = shared.write(vec![value], |values| {
            log.write(b"t", &values[0]).map(|uuid| vec![uuid])
        });
        if told.is_err() && number % 2 == 0 {
            disk.make_room();
        }
        if number % 3 == 2 {
            let _ = log.roll();
            let _ = log.wait_sealed();
        }
        // After an error a tail goes on where it was.
        let Some(tail) = &mut tail else { continue };
        while let Ok(Some(record)) = tail.poll() {
            shared.see(record.value());
        }
    }
    let _ = log.retain(&Retention::default().bytes(1 << 20));
    let _ = log.sync();
    let _ = log.close();
}

/// That all is there that was acknowledged or seen, and nothing that was refused.
fn check(history: &History, found: &[Vec<u8>], what: &str) {
    let places: BTreeMap<_, _> = found.iter().zip(0..).collect();
    assert_eq!(places.len(), found.len(), "{what}: a record is there twice");
    for value in found {
        assert!(
            history.places.contains_key(value),
            "{what}: nobody wrote it"
        );
    }
    for entry in &history.entries {
        let is_there = places.contains_key(&entry.value);
        match entry.ended.unwrap().1 {
            Fate::Acknowledged => assert!(is_there, "{what}: {entry:?} is lost"),
            Fate::Refused => assert!(!is_there, "{what}: {entry:?} was refused"),
            Fate::Unknown => {}
        }
    }
    for (_, place) in &history.seen {
        let entry = &history.entries[*place];
        assert!(
            places.contains_key(&entry.value),
            "{what}: {entry:?} was seen"
        );
    }
}

fn there(disk: &Simulated, what: &str) -> Vec<Vec<u8>> {
    values(disk).unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
enum Error {
    /// At this call that changes something.
    Call(usize, Trouble),
    /// At this look at something.
    Look(usize),
}

/// Lets a log live on a disk that fails once, and looks at what is left, with power and after a loss of it.
fn fail(start: &Simulated, before: &[Vec<u8>], error: Error, seed: u64, what: &str) {
    let disk = start.copy();
    disk.seed(seed);
    match error {
        Error::Call(at, trouble) => disk.trouble(at, trouble),
        Error::Look(at) => disk.break_read(at),
    }
    let shared = Shared::knowing(&disk, before);
    live(&shared, 100);
    let history = shared.take();
    disk.make_room();
    let what = format!("{what}, {error:?}");
    for seed in [seed, seed + 1] {
        let what = format!("{what}, power lost");
        check(&history, &there(&disk.after_power_loss(seed), &what), &what);
    }
    check(&history, &there(&disk, &what), &what);
    // An error of reading is none of the bytes.
    let is_wrong = |path: &&String| path.ends_with(".frozen") || path.ends_with(".quarantine");
    let (now, then) = (disk.files(), start.files());
    let wrong = now
        .keys()
        .filter(is_wrong)
        .find(|path| !then.contains_key(*path));
    if let (Error::Look(_), Some(wrong)) = (error, wrong) {
        panic!("{what}: {wrong}");
    }
}

/// Each call and each look of a life that begins with these files fails in turn. Gives how many there were.
fn fail_everywhere(start: &Simulated, before: &[Vec<u8>], what: &str) -> usize {
    let smooth = start.copy();
    live(&Shared::knowing(&smooth, before), 100);
    let (calls, looks) = (smooth.count(), smooth.reads());
    let troubles = [Trouble::Broken, Trouble::Full, Trouble::Short];
    let of_calls = (start.count()..calls).flat_map(|at| troubles.map(|own| Error::Call(at, own)));
    let of_looks = (start.reads()..looks).map(Error::Look);
    let all: Vec<_> = of_calls.chain(of_looks).collect();
    for (seed, error) in (0..).zip(&all) {
        fail(start, before, *error, seed, what);
    }
    all.len()
}

#[test]
fn every_call_and_every_look_may_fail() {
    let tried = run(1, || fail_everywhere(&Simulated::new(), &[], "a new log"));
    assert!(tried > 500, "{tried}");
}

/// The same for logs that lost power: those are put in order first.
#[test]
fn every_call_and_every_look_may_fail_while_a_log_is_put_in_order() {
    let mut random = Random::new(7);
    for round in 0..12 {
        let seed = random.next();
        let tried = run(seed, move || {
            let disk = Simulated::new();
            disk.begin_tape();
            live(&Shared::new(&disk), 0);
            let tape = disk.end_tape();
            let mut random = Random::new(seed);
            let at = random.below(tape.len() - 12) + 12;
            let (start, _) = tape[at].losing_power(random.next());
            let before = values(&start.copy()).unwrap();
            fail_everywhere(
                &start,
                &before,
                &format!("round {round}, power lost before call {at}"),
            )
        });
        assert!(tried > 100, "{tried}");
    }
}
