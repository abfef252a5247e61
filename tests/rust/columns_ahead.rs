//! Reading ahead changes when batches are made, and nothing else; and unsigned 64-bit numbers as other types.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::counting::Counting;
use crate::common::format_of;
use crate::common::{lenient, segment, source};
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
                (Ok(plain), Ok(ahead)) => assert_eq!(given(plain), given(ahead), "{}", case.name),
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

/// Waits until a number does not change any more.
fn settled(counting: &Counting, read: &mut u64) {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        thread::sleep(Duration::from_millis(50));
        let more = counting.take().0;
        *read += more;
        if more == 0 && *read > 0 || Instant::now() > until {
            return;
        }
    }
}

#[test]
fn at_most_two_batches_are_made_ahead_and_none_before_the_first_is_asked_for() {
    let options = lenient().format(&active::FORMAT).window_bytes(4 << 10);
    let counting = Counting::new(large());
    let mut batches = ahead(counting.clone(), &options);
    counting.take();
    thread::sleep(Duration::from_millis(100));
    assert_eq!(
        counting.take().0,
        0,
        "nothing is read before it is asked for"
    );
    let mut read = 0;
    for taken in 1..=20 {
        assert_eq!(
            batches.next_batch().unwrap().unwrap().records.num_rows(),
            10
        );
        settled(&counting, &mut read);
        // A batch has about 10 KiB; a group of messages that is hashed together may be read at once.
        let most = (taken + 2) * (11 << 10) + (256 << 10);
        assert!(read <= most, "{read} bytes for {taken} batches");
        assert!(read >= taken * (10 << 10));
    }
    drop(batches);
    settled(&counting, &mut read);
    assert_eq!(counting.take().0, 0, "nobody reads any more");
    assert!(read < 1 << 20);
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
