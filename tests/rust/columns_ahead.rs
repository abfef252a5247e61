//! Reading ahead changes when batches are made, and nothing else; and unsigned 64-bit numbers as other types.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::format_of;
use crate::common::{Windowed, lenient, segment, source};
use crate::messages;
use crate::vectors::cases;
use seglake::Error;
use seglake::checksum::Key;
use seglake::columns::{Batches, Limits, Selection, Uint64Type, UuidType};
use seglake::format::{Dialect, Interrupt, Options, Start, active};
use seglake::source::Source;

fn selection(options: &Options) -> Selection {
    Selection::new(format_of(options), options, None, UuidType::Fixed).unwrap()
}

fn limits() -> Limits {
    Limits::default().rows(3)
}

/// What batches give up to their end or error, and the report then.
fn given(mut batches: Batches) -> (Vec<String>, String) {
    let mut given = Vec::new();
    loop {
        match batches.next_batch() {
            Ok(Some(batch)) => given.push(format!("{batch:?}")),
            Ok(None) => break,
            Err(error) => {
                given.push(error.to_string());
                break;
            }
        }
    }
    assert!(!matches!(batches.next_batch(), Ok(Some(_))));
    (given, format!("{:?}", batches.report()))
}

#[test]
fn golden_files_are_the_same_read_ahead() {
    for case in cases() {
        for strict in [false, true] {
            let options = case.options.clone().strict(strict);
            let (source, own) = (source(&case.bytes), selection(&options));
            let plain = Batches::new(source.clone(), &options, own.clone(), limits());
            let ahead = Batches::ahead(source, &options, own, limits(), Start::Beginning);
            match (plain, ahead) {
                (Ok(plain), Ok(ahead)) => {
                    let checked = [&plain, &ahead].map(|own| own.report().summary.checked);
                    assert_eq!(checked[0], checked[1], "{}", case.name);
                    assert_eq!(given(plain), given(ahead), "{}", case.name);
                }
                (Err(plain), Err(ahead)) => assert_eq!(plain.to_string(), ahead.to_string()),
                _ => panic!("{}: one of both was not opened", case.name),
            }
        }
    }
}

fn large() -> Vec<u8> {
    let messages: Vec<_> = (0..2000_u32)
        .map(|number| ("t", vec![u8::try_from(number % 251).unwrap(); 1000]))
        .collect();
    segment(&Key::DEFAULT, &messages)
}

fn ahead(source: Arc<dyn Source>, options: &Options) -> Batches {
    let limits = Limits::default().rows(10);
    Batches::ahead(
        source,
        options,
        selection(options),
        limits,
        Start::Beginning,
    )
    .unwrap()
}

/// A source that counts the bytes that are read, and notes when they are more than they may be.
struct Limited {
    source: Windowed,
    read: AtomicU64,
    most: AtomicU64,
    is_over: AtomicBool,
}

impl Limited {
    fn new(bytes: Vec<u8>) -> Arc<Self> {
        Arc::new(Self {
            source: Windowed(bytes),
            read: AtomicU64::new(0),
            most: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        })
    }

    fn read(&self) -> u64 {
        self.read.load(Ordering::SeqCst)
    }
}

impl Source for Limited {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
        let len = buffer.len() as u64;
        if self.read.fetch_add(len, Ordering::SeqCst) + len > self.most.load(Ordering::SeqCst) {
            self.is_over.store(true, Ordering::SeqCst);
        }
        self.source.read_exact_at(offset, buffer)
    }
}

/// Waits for what another thread does.
fn wait_until(is_done: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_done() {
        assert!(Instant::now() < until, "it is waited for in vain");
        thread::yield_now();
    }
}

/// How many bytes are read for no batch, for one, for two, and so on, where none is made ahead.
fn read_for(options: &Options) -> Vec<u64> {
    let (source, limits) = (Limited::new(large()), Limits::default().rows(10));
    let mut batches = Batches::new(source.clone(), options, selection(options), limits).unwrap();
    let mut read = vec![source.read()];
    while batches.next_batch().unwrap().is_some() {
        read.push(source.read());
    }
    read
}

#[test]
fn at_most_two_batches_are_made_ahead_and_none_before_the_first_is_asked_for() {
    let options = lenient().format(&active::FORMAT).window_bytes(4 << 10);
    let read_for = read_for(&options);
    assert!(read_for.is_sorted_by(|one, next| one < next));
    let source = Limited::new(large());
    source.most.store(read_for[0], Ordering::SeqCst);
    drop(ahead(source.clone(), &options));
    assert_eq!(Arc::strong_count(&source), 1, "no thread has begun");
    assert!(!source.is_over.load(Ordering::SeqCst));
    let source = Limited::new(large());
    let mut batches = ahead(source.clone(), &options);
    for taken in 1..=20 {
        source.most.store(read_for[taken + 2], Ordering::SeqCst);
        let batch = batches.next_batch().unwrap().unwrap();
        assert_eq!(batch.records.num_rows(), 10);
        wait_until(|| source.read() >= read_for[taken + 2]);
    }
    // A thread that does not wait would make at least one more batch while another one makes all.
    given(ahead(Limited::new(large()), &options));
    assert!(!source.is_over.load(Ordering::SeqCst));
    drop(batches);
    wait_until(|| Arc::strong_count(&source) == 1);
    assert_eq!(source.read(), read_for[22], "nothing more is read");
}

#[test]
fn an_interrupt_ends_reading_ahead() {
    let asked = Interrupt::new(|| true);
    let options = lenient().format(&active::FORMAT);
    let mut batches = ahead(source(&large()), &options.interrupt(asked));
    assert!(matches!(batches.next_batch(), Err(Error::Interrupted)));
    assert!(matches!(batches.next_batch(), Ok(None)));
}

#[test]
fn a_number_that_is_too_large_is_named() {
    let message = |length| messages::Plain {
        clock: vec![(7, length)],
        value: b"v".to_vec(),
        ..messages::Plain::default()
    };
    let (most, above) = (u64::MAX >> 1, (u64::MAX >> 1) + 1);
    let options = messages::lenient(Dialect::Draft);
    for (length, uint64, is_given) in [
        (most, Uint64Type::Int64, true),
        (above, Uint64Type::Int64, false),
        (u64::MAX, Uint64Type::Decimal, true),
        (u64::MAX, Uint64Type::UInt64, true),
    ] {
        let bytes = messages::file(Dialect::Draft, &[message(1), message(2), message(length)]);
        let own = selection(&options).with_uint64(uint64);
        for is_ahead in [false, true] {
            let (source, own) = (source(&bytes), own.clone());
            let mut batches = match is_ahead {
                true => Batches::ahead(source, &options, own, Limits::default(), Start::Beginning),
                false => Batches::new(source, &options, own, Limits::default()),
            }
            .unwrap();
            match batches.next_batch() {
                Ok(Some(batch)) => {
                    assert!(is_given);
                    assert_eq!(batch.records.num_rows(), 3);
                    let unsigned = format!("{:?}", batch.records.schema()).contains("UInt64");
                    assert_eq!(unsigned, uint64 == Uint64Type::UInt64);
                }
                Err(Error::Number { field, value, .. }) if !is_given => {
                    assert_eq!((field.as_str(), value), ("clock.length", above));
                }
                other => panic!("{other:?}"),
            }
            assert!(matches!(batches.next_batch(), Ok(None)));
        }
    }
}
