//! Hostile files of every format except tfrecord, short versions of those that `make bench` times: the ledger covers them, windows
//! of any size give the same, and the cost of reading stays in proportion.
#![allow(
    dead_code,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

#[path = "../../benches/hostile/active.rs"]
mod active;
#[path = "../../benches/hostile/chunked.rs"]
mod chunked;
#[path = "../../benches/hostile/files.rs"]
mod files;
#[path = "../../benches/hostile/oplog.rs"]
mod oplog;
#[path = "../../benches/hostile/sealed.rs"]
mod sealed;
#[path = "../../benches/hostile/tenant.rs"]
mod tenant;

use std::sync::Arc;

use crate::common::counting::Counting;
use crate::common::{Windowed, source};
use files::Family;
use seglake::Error;
use seglake::format::{
    Dialect, IndexSource, Options, RecordId, Start, Step, by_name, lookup, open,
};
use seglake::ledger::{Cause, Kind, Span};
use seglake::source::Source;
use seglake::verbs::Ledger;

const LEN: usize = 512 << 10;

fn options(family: &Family) -> Options {
    Options::default()
        .format(by_name(family.format).unwrap())
        .dialect(family.dialect.parse::<Dialect>().unwrap())
        .index(IndexSource::None)
        .strict(false)
        .values(false)
}

/// Calls `look` with every hostile file of `len` bytes that has this in its name.
fn each(part: &str, len: usize, mut look: impl FnMut(&str, &Family, Vec<u8>)) {
    let mut seen = 0;
    for family in files::families() {
        for (name, make) in family
            .hostile
            .iter()
            .filter(|(name, _)| name.contains(part))
        {
            look(&format!("{}: {name}", family.name), &family, make(len));
            seen += 1;
        }
    }
    assert!(seen > 0, "no file is called {part}");
}

/// The ledger in file order.
fn ledger(source: Arc<dyn Source>, options: &Options) -> Vec<Span> {
    let spans = Ledger::new(source, options).unwrap();
    spans.map(Result::unwrap).collect()
}

#[test]
fn the_ledger_covers_whatever_is_made_and_strict_reading_raises_its_first_damage() {
    each("", LEN, |name, family, bytes| {
        let len = bytes.len() as u64;
        let whole = source(&bytes);
        let spans = ledger(whole.clone(), &options(family));
        let mut at = 0;
        for span in &spans {
            assert_eq!(span.start, at, "{name}");
            assert!(span.end > at, "{name}");
            at = span.end;
        }
        assert_eq!(at, len, "{name}");
        let strict = options(family).strict(true);
        let first = spans.iter().find(|span| span.is_damage());
        let mut walk = open(whole, &strict, Start::Beginning).unwrap();
        let raised = loop {
            match walk.step() {
                Ok(Step::More) => {}
                Ok(_) => break None,
                Err(Error::Damage(damage)) => break Some((damage.offset, Some(damage.cause))),
                Err(other) => panic!("{name}: {other}"),
            }
        };
        let first = first.map(|span| (span.start, span.cause));
        assert_eq!(raised, first, "{name}");
    });
}

#[test]
fn windows_change_nothing() {
    each("", LEN / 4, |name, family, bytes| {
        let expected = ledger(source(&bytes), &options(family));
        let options = options(family).window_bytes(4 << 10);
        let spans = ledger(Arc::new(Windowed(bytes)), &options);
        assert!(spans == expected, "{name}");
    });
}

/// The budget is 256 MiB for a file of any length, so of short files only this can be said: reads are short where the file
/// chooses their order, and what goes beyond the budget is a few times the file.
#[test]
fn what_is_read_stays_in_proportion() {
    each("", LEN, |name, family, bytes| {
        let counting = Counting::new(bytes);
        let mut walk = open(counting.clone(), &options(family), Start::Beginning).unwrap();
        while walk.step().unwrap() == Step::More {}
        let (read, reads) = counting.take();
        let len = counting.len();
        assert!(read <= (256 << 20) + 16 * len, "{name}: {read} bytes read");
        // Most take the places that a damaged tenant table names wherever an entry of it may begin: 1,024 bytes of the budget each.
        assert!(reads <= len / 6, "{name}: {reads} reads of {len} bytes");
    });
}

/// Damaged records, blocks and chunks full of good ones, each followed by a good one.
#[test]
fn records_inside_damage_that_its_lengths_end_are_not_emitted() {
    let mut inner = active::clean(4 << 10);
    let mut outer = Vec::new();
    let key = seglake::checksum::Key::DEFAULT;
    let encode = |out: &mut Vec<u8>, tick, value: &[u8]| {
        seglake::format::active::encode(out, &key, &files::uuid(tick), b"", value).unwrap();
    };
    encode(&mut outer, 1 << 40, b"first");
    let damaged = outer.len();
    encode(&mut outer, (1 << 40) + 1, &inner);
    let end = outer.len();
    outer[end - 1] ^= 1;
    encode(&mut outer, (1 << 40) + 2, b"last");
    // If they were newer than the records around them, the good records inside would pass for the segment's own.
    inner.clear();
    for tick in 2..9 {
        encode(&mut inner, (1 << 40) + tick, b"inside");
    }
    let mut newer = outer[..damaged].to_vec();
    encode(&mut newer, (1 << 40) + 1, &inner);
    let newer_end = newer.len();
    newer[newer_end - 1] ^= 1;
    encode(&mut newer, (1 << 40) + 2, b"last");
    for (bytes, end) in [(outer, end), (newer, newer_end)] {
        let options = Options::default()
            .format(by_name("active").unwrap())
            .strict(false);
        let spans = ledger(source(&bytes), &options);
        let told: Vec<_> = spans
            .iter()
            .map(|span| (span.start, span.end, span.kind, span.cause))
            .collect();
        let [damaged, end, len] = [damaged, end, bytes.len()].map(|at| at as u64);
        assert_eq!(
            told,
            [
                (0, damaged, Kind::Record, None),
                (damaged, end, Kind::Corrupt, Some(Cause::ChecksumMismatch)),
                (end, len, Kind::Record, None),
            ]
        );
    }
    // A chunked log's chunks in the payloads of damaged ones: the lengths of those are proven by the frames themselves.
    let bytes = chunked::nested(1 << 20);
    let options = Options::default()
        .format(by_name("chunked").unwrap())
        .index(IndexSource::None)
        .strict(false);
    let spans = ledger(source(&bytes), &options);
    assert!(
        !spans.is_empty() && spans.iter().all(|span| span.kind != Kind::Chunk),
        "{spans:?}"
    );
}

/// Looking up many records takes one walk, and keeps none of its windows.
#[test]
fn many_are_looked_up_in_one_walk() {
    let mut bytes = Vec::new();
    for tick in 0..2000 {
        let key = seglake::checksum::Key::DEFAULT;
        let value = [tick as u8; 100];
        seglake::format::active::encode(&mut bytes, &key, &files::uuid(tick), b"", &value).unwrap();
    }
    let counting = Counting::new(bytes);
    let options = Options::default().format(by_name("active").unwrap());
    let lookup = lookup(counting.clone(), &options).unwrap();
    let ids: Vec<_> = [1500, 3, 9999, 3, 700]
        .map(|tick| RecordId::from(files::uuid(tick)))
        .into_iter()
        .chain([RecordId::from([0; 16])])
        .collect();
    let hits = lookup.get(&ids).unwrap();
    let mut found = Vec::new();
    hits.each(|hit| found.push(hit.map(|(rows, row)| rows.value(row)[0])));
    let expected = [1500, 3, -1, 3, 700, -1].map(|tick: i32| (tick >= 0).then_some(tick as u8));
    assert_eq!(found, expected);
    let read = counting.take().0;
    assert!(read <= counting.len() + 1024, "{read} bytes read");
}

/// An entry that fails for a cause of its own, and whose other places cost more than is left, fails because of that.
#[test]
fn the_search_limit_is_named_where_a_later_trial_reaches_it() {
    // Each entry names few bytes, but the block there decodes to most of the file.
    let bytes = tenant::costly_decodes(6 << 20);
    let family = files::families()
        .into_iter()
        .find(|family| family.name == "tenant 2")
        .unwrap();
    let spans = ledger(source(&bytes), &options(&family));
    let last = spans.last().unwrap();
    assert_eq!(last.cause, Some(Cause::SearchLimit), "{spans:?}");
}
