//! What hostile and huge oplogs cost: bytes read, memory asked for, time.

use crate::messages;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::common::assert_covers;
use crate::messages::{collect, framed, lenient, varied};
use seglake::Error;
use seglake::format::{Dialect, Interrupt, Options, Start, Step, open};
use seglake::ledger::{Cause, Kind, Span};
use seglake::source::Source;
use seglake::verbs::verify;
use serde_json::Value as Json;

/// A file of zeros with some bytes in between. Counts what is read of it, and the largest read.
#[derive(Default)]
struct Sparse {
    len: u64,
    pieces: Vec<(u64, Vec<u8>)>,
    read: AtomicU64,
    largest: AtomicUsize,
    fails: AtomicBool,
}

impl Sparse {
    fn new(len: u64, pieces: Vec<(u64, Vec<u8>)>) -> Arc<Self> {
        Arc::new(Self {
            len,
            pieces,
            ..Self::default()
        })
    }

    fn of(bytes: Vec<u8>) -> Arc<Self> {
        Self::new(bytes.len() as u64, vec![(0, bytes)])
    }

    fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    fn largest(&self) -> usize {
        self.largest.load(Ordering::Relaxed)
    }
}

impl Source for Sparse {
    fn len(&self) -> u64 {
        self.len
    }

    fn path(&self) -> Option<&std::path::Path> {
        None
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(Error::io(
                None,
                "cannot read".to_owned(),
                std::io::ErrorKind::Other.into(),
            ));
        }
        let end = offset + buffer.len() as u64;
        assert!(end <= self.len);
        buffer.fill(0);
        self.read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        self.largest.fetch_max(buffer.len(), Ordering::Relaxed);
        for (at, bytes) in &self.pieces {
            let from = offset.max(*at);
            let to = end.min(at + bytes.len() as u64);
            if from < to {
                let range = |start: u64| {
                    let place = |offset: u64| usize::try_from(offset - start).unwrap();
                    place(from)..place(to)
                };
                buffer[range(offset)].copy_from_slice(&bytes[range(*at)]);
            }
        }
        Ok(())
    }
}

fn scan(source: Arc<dyn Source>, options: &Options) -> seglake::Result<(Vec<Json>, Vec<Span>)> {
    messages::scan(source, options)
}

fn unvalued(dialect: Dialect) -> Options {
    lenient(dialect).values(false)
}

/// A uint of nine bytes.
fn wide(value: u64) -> Vec<u8> {
    [&[0xff], &value.to_le_bytes()[..]].concat()
}

#[test]
fn a_sound_file_is_read_once() {
    for dialect in Dialect::ALL {
        let bytes = varied(*dialect, 300 << 10);
        let counting = Sparse::of(bytes.clone());
        let options = lenient(*dialect).window_bytes(10_000);
        let (records, _) = scan(counting.clone(), &options).unwrap();
        assert!(records.len() > 1000);
        assert_eq!(counting.read(), bytes.len() as u64);
        assert_eq!(counting.largest(), 10_000);
    }
}

#[test]
fn damage_to_every_second_message_is_read_a_few_times() {
    let good = framed(&[&b"\0\x01\0\0\0\xfd\0\x01"[..], &[7; 256]].concat());
    let bad = framed(&[&b"\0\x01\0\0\0\xfd\x02\x01"[..], &[7; 256]].concat());
    let pair = [good, bad].concat();
    let bytes = pair.repeat((4 << 20) / pair.len());
    let counting = Sparse::of(bytes.clone());
    let options = unvalued(Dialect::Draft).window_bytes(64 << 10);
    let (records, ledger) = scan(counting.clone(), &options).unwrap();
    assert_covers(&ledger, bytes.len());
    assert_eq!(records.len(), bytes.len() / pair.len());
    assert_eq!(ledger.len(), 2 * records.len());
    let read = counting.read();
    assert!(read <= 4 * counting.len(), "{read} of {}", counting.len());
}

/// Each message claims to be all that is left but one byte, and does not decode.
#[test]
fn chains_that_lead_nowhere_are_followed_once() {
    let mut bytes = Vec::new();
    for _ in 0..100_000 {
        bytes.extend_from_slice(b"\x01\0");
    }
    bytes.push(9); // the last length leads beyond the end
    let counting = Sparse::of(bytes.clone());
    let (records, ledger) = scan(counting.clone(), &lenient(Dialect::Draft)).unwrap();
    assert_eq!((records.len(), ledger.len()), (0, 1));
    assert!(counting.read() <= 3 * counting.len());
}

#[test]
fn huge_values_are_verified_by_their_lengths() {
    let len = 1u64 << 40;
    let head = b"\0\x01\0\0\0\xff";
    let value = len - 100;
    let message = [&head[..], &value.to_le_bytes()].concat();
    let total = message.len() as u64 + value;
    let first = [wide(total), message].concat();
    let at = first.len() as u64 + value;
    let rest = framed(b"\0\x01\0\0\0\x01A");
    let file = at + rest.len() as u64;
    let source = Sparse::new(file, vec![(0, first.clone()), (at, rest.clone())]);
    let report = verify(source.clone(), &lenient(Dialect::Draft), |_| Ok(())).unwrap();
    assert!(report.is_sound());
    assert_eq!(report.summary.records, 2);
    assert!(source.read() < 4 << 20 && source.largest() <= 1 << 20);
    let (records, _) = scan(source.clone(), &unvalued(Dialect::Draft)).unwrap();
    assert_eq!(records[0][1]["value"], "");
    assert_eq!(records[1][1]["seq"], 1);
    assert!(source.read() < 8 << 20, "the value is not read");

    let refused = scan(source.clone(), &lenient(Dialect::Draft));
    let Err(Error::Limit { option, needed, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((option, needed), ("record_bytes", at));

    // It does not decode, because a byte is left over. The message after it is found.
    let mut longer = first;
    longer[1..9].copy_from_slice(&(total + 1).to_le_bytes());
    let source = Sparse::new(file + 1, vec![(0, longer), (at + 1, rest)]);
    let (records, ledger) = scan(source.clone(), &lenient(Dialect::Draft)).unwrap();
    assert_eq!((records.len(), ledger[0].kind), (1, Kind::Corrupt));
    assert_eq!(ledger[0].cause, Some(Cause::TrailingBytes));
    assert!(source.read() < 4 << 20 && source.largest() <= 1 << 20);
}

#[test]
fn messages_larger_than_a_window_are_decoded_in_pieces_first() {
    let value = vec![0x5a; 9 << 20];
    let key = [3; 32];
    let entry = |seq: u8| [seq, 0, 1];
    let large = |length: u64| {
        let mut message = b"\0\x01\x02".to_vec();
        message.extend([entry(0), entry(1)].as_flattened());
        message.extend_from_slice(b"\0\0");
        message.extend(wide(length));
        message.extend_from_slice(&value);
        message.push(1);
        message.extend_from_slice(&key);
        message
    };
    let small = [&b"\0\x01\x01\0\0\x01\0\0\x01A\x01"[..], &key].concat();
    let last = b"\0\x01\x01\x01\0\x01\0\0\x01A\0";
    let sound = large(value.len() as u64);
    let bytes = [framed(&small), framed(&sound), framed(last)].concat();
    let dialect = Dialect::Draft11;
    for options in [lenient(dialect), unvalued(dialect)] {
        let source = Sparse::of(bytes.clone());
        let (records, ledger) = scan(source.clone(), &options).unwrap();
        assert!(ledger.iter().all(|span| !span.is_damage()));
        let clock = &records[1][1]["clock"];
        assert_eq!(
            (&clock[0]["key"], &clock[1]["key"]),
            (&hex::encode(key).into(), &hex::encode(key).into())
        );
        assert_eq!(records[1][1]["keys"][0], hex::encode(key));
        assert_eq!(
            records[2][1]["clock"][0]["key"],
            hex::encode(key),
            "its keys are known"
        );
        let shown = records[1][1]["value"].as_str().unwrap().len();
        assert_eq!(shown, if options.values { 2 * value.len() } else { 0 });
        if !options.values {
            assert!(source.read() < 4 << 20 && source.largest() <= 1 << 20);
        }
    }
    let limited = lenient(dialect).record_bytes(1 << 20);
    let in_memory = messages::source(&bytes);
    for source in [Sparse::of(bytes.clone()) as Arc<dyn Source>, in_memory] {
        let limit = scan(source, &limited);
        assert!(
            matches!(
                limit,
                Err(Error::Limit {
                    option: "record_bytes",
                    ..
                })
            ),
            "{limit:?}"
        );
    }
    // A length that lies is found before the message is read whole.
    let false_length = large(value.len() as u64 + 1);
    let bytes = [framed(&small), framed(&false_length), framed(last)].concat();
    let source = Sparse::of(bytes);
    let (records, ledger) = scan(source.clone(), &lenient(dialect)).unwrap();
    assert_eq!((records.len(), ledger[1].kind), (2, Kind::Corrupt));
    assert_eq!(
        records[1][2], "dangling_reference",
        "the corrupt message has no keys"
    );
    assert!(source.largest() <= 1 << 20);
}

/// What a message has beside its value is read again when it is asked for, and an error then is not lost.
#[test]
fn a_large_message_that_cannot_be_read_again_is_an_error_of_the_next_step() {
    let value = vec![0x5a; 9 << 20];
    let message = [&b"\0\x01\0\0\0"[..], &wide(value.len() as u64), &value].concat();
    let source = Sparse::of(framed(&message));
    let mut walk = open(source.clone(), &unvalued(Dialect::Draft), Start::Beginning).unwrap();
    assert_eq!(walk.step().unwrap(), Step::More);
    source.fails.store(true, Ordering::Relaxed);
    let mut records = Vec::new();
    collect(&*walk, Dialect::Draft, &mut records);
    assert_eq!(records[0][1]["clock"], Json::Null);
    assert!(matches!(walk.step(), Err(Error::Io { .. })));
    assert!(matches!(walk.step(), Err(Error::Io { .. })));
}

#[test]
fn claims_cost_nothing() {
    let fields = [
        &b"\0\x01"[..],
        b"\0\x01\0\0\0",
        b"\0\x01\0\0\0\0",
        b"\x02",
        b"\x02\0\x01\0\x08",
        b"\x01\x01\x01",
    ];
    for dialect in Dialect::ALL {
        for field in fields {
            for claim in [0x10_0001, 0xffff_ffff, u64::MAX / 33, u64::MAX] {
                let message = [field, &wide(claim), &[0; 100]].concat();
                for bytes in [framed(&message), [&wide(claim)[..], &message].concat()] {
                    let source = Sparse::of(bytes.clone());
                    let (records, ledger) = scan(source.clone(), &lenient(*dialect)).unwrap();
                    assert_covers(&ledger, bytes.len());
                    assert!(records.is_empty() && source.largest() <= bytes.len());
                }
            }
        }
    }
}

#[test]
fn an_interrupt_ends_the_reading() {
    let bytes = b"\x01\0".repeat(200_000);
    for calls in [0, 1, 2] {
        let left = AtomicUsize::new(calls);
        let interrupt = move || {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
            .is_err()
        };
        let options = lenient(Dialect::Draft).interrupt(Interrupt::new(interrupt));
        // A corrupt message first, so that lengths are followed.
        let bytes = [
            &framed(b"\0\x01\0\0\0\0A")[..],
            &framed(b"\0\x01\0\0\0\0"),
            &bytes,
        ]
        .concat();
        let stopped = scan(Sparse::of(bytes), &options);
        assert!(matches!(stopped, Err(Error::Interrupted)), "{calls}");
    }
}
