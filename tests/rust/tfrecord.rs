//! What TFRecord does that golden files do not show.

use std::sync::Arc;

use crate::common::{Windowed, counting::Counting, source};
use seglake::Error;
use seglake::format::{self, Eof, Format, Options, RecordId, Start, Step, Value, by_name, open};
use seglake::ledger::{Cause, Span};
use seglake::source::{BytesSource, FileSource, Source, open_regular};

fn format() -> &'static Format {
    by_name("tfrecord").unwrap()
}

/// CRC-32C, bit by bit, as a file has it.
fn masked(bytes: &[u8]) -> [u8; 4] {
    let crc = !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 }
        })
    });
    crc.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

fn header(length: u64) -> Vec<u8> {
    let length = length.to_le_bytes();
    [&length[..], &masked(&length)].concat()
}

fn record(data: &[u8]) -> Vec<u8> {
    [&header(data.len() as u64), data, &masked(data)].concat()
}

/// Where records begin, the ledger, and how it ended.
fn scan(
    source: Arc<dyn Source>,
    options: &Options,
) -> seglake::Result<(Vec<u64>, Vec<Span>, Step)> {
    let mut walk = open(source, options, Start::Beginning)?;
    let (mut records, mut spans) = (Vec::new(), Vec::new());
    loop {
        let step = walk.step()?;
        if step != Step::More {
            return Ok((records, spans, step));
        }
        let rows = walk.rows();
        records.extend((0..rows.len()).map(|row| rows.position(row)));
        spans.extend_from_slice(walk.spans());
    }
}

/// While a record is being written, a whole record in its data is not taken for one.
#[test]
fn a_record_that_is_being_written_is_waited_for() {
    let first = record(b"first");
    let outer = record(&[&[b'.'; 50], &*record(b"inner"), &[b'.'; 50]].concat());
    let whole = [first.clone(), outer].concat();
    for strict in [false, true] {
        let options = Options::default().format(format()).strict(strict);
        let options = options.eof(Eof::Growing);
        for end in first.len()..whole.len() {
            let (records, _, step) = scan(source(&whole[..end]), &options).unwrap();
            assert_eq!((records, step), (vec![0], Step::Wait), "{end}");
        }
        let (records, _, _) = scan(source(&whole), &options).unwrap();
        assert_eq!(records, [0, first.len() as u64]);
    }
}

/// Each length that is not proven claims the rest of the file, and the searches for their ends meet proven lengths whose data is wrong.
/// Hashing to refuse one is charged to the search budget, so the file is not hashed again and again.
#[test]
fn lengths_that_lie_cost_no_quadratic_time() {
    let sound = record(b"");
    let pairs = 12_000;
    let pair = 12 + 12 + sound.len();
    let len = pair * pairs;
    let mut bytes = Vec::with_capacity(len);
    for number in 0..pairs {
        let left = (len - number * pair) as u64;
        // Not proven, then proven.
        bytes.extend((left - 16).to_le_bytes());
        bytes.extend([0xff; 4]);
        bytes.extend(header(left - 12 - 16));
        bytes.extend_from_slice(&sound);
    }
    let options = Options::default().format(format()).strict(false);
    let counting = Counting::new(bytes);
    let (records, spans, _) = scan(counting.clone(), &options).unwrap();
    let (read, _) = counting.take();
    assert!(read < 1 << 30, "{read} bytes read of {len}");
    assert!(!records.is_empty());
    assert_eq!(spans.last().unwrap().cause, Some(Cause::SearchLimit));
}

/// A compressed file is an error that says so, unless a length in it is proven: then that is a TFRecord file whose first length begins
/// like one.
#[test]
fn compressed_files_are_no_damage() {
    let options = Options::default().format(format());
    for (begin, how) in [
        (&b"\x1f\x8b\x08\0"[..], "GZIP"),
        (b"\x78\x9c", "ZLIB"),
        (b"\x78\x01", "ZLIB"),
        (b"\x78\x5e", "ZLIB"),
        (b"\x78\xda", "ZLIB"),
    ] {
        let compressed = [begin, &[b'x'; 400]].concat();
        for strict in [false, true] {
            for bytes in [&*compressed, begin] {
                let found = scan(source(bytes), &options.clone().strict(strict));
                let error = found.unwrap_err();
                assert!(matches!(error, Error::Format { .. }), "{error}");
                let text = error.to_string();
                assert!(text.contains(how) && text.contains("decompress"), "{text}");
            }
        }
        let growing = options.clone().eof(Eof::Growing);
        let (_, _, step) = scan(source(begin), &growing).unwrap();
        assert_eq!(step, Step::Wait);
        assert!(scan(source(&compressed), &growing).is_err());
    }
    let mut damaged = record(&[7; 0x178]);
    damaged[9] ^= 1;
    let bytes = [damaged, record(b"second")].concat();
    let lenient = options.clone().strict(false);
    assert_eq!(scan(source(&bytes), &lenient).unwrap().0, [392]);
    assert!(matches!(
        scan(source(&bytes), &options),
        Err(Error::Damage(_))
    ));
}

#[test]
fn a_large_record_is_a_limit_error_only_if_its_value_is_read() {
    let bytes = [record(b"four"), record(b"fives"), record(b"4444")].concat();
    let options = Options::default().format(format()).record_bytes(4);
    for source in [source(&bytes), Arc::new(Windowed(bytes.clone()))] {
        for options in [options.clone(), options.clone().window_bytes(1)] {
            let error = scan(source.clone(), &options).unwrap_err();
            assert!(error.to_string().contains("record_bytes"), "{error}");
            let without = options.clone().values(false);
            assert_eq!(scan(source.clone(), &without).unwrap().0.len(), 3);
        }
    }
}

/// A name decides only where the content does not.
#[test]
fn names_of_damaged_files_decide() {
    let folder = tempfile::tempdir().unwrap();
    let sound = record(b"value");
    let mut damaged = sound.clone();
    damaged[9] ^= 1;
    for (name, bytes, found) in [
        ("a", &sound, true),
        ("a.active", &sound, true),
        ("a", &damaged, false),
        ("a.tfrecord", &damaged, true),
        ("a.tfrecords", &damaged, true),
        ("train.tfrecord-00003-of-00010", &damaged, true),
        ("events.out.tfevents.1700000000.host", &damaged, true),
        ("events.out.tfevents.1700000000.host.par", &damaged, false),
        ("a.tfrecord.active", &damaged, false),
        ("a.tfrecord.quarantine", &damaged, false),
        ("a.tfrecords", &Vec::new(), true),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let source = FileSource::new(open_regular(&path).unwrap(), &path).unwrap();
        let detected = format::detect(&source, &Options::default()).unwrap();
        assert_eq!(
            detected.format == Some(format()),
            found,
            "{name}: {detected:?}"
        );
    }
}

/// Zeros at the end, and a record that was cut off, are removed if that was asked for. What may hold a sound record is not.
#[test]
fn torn_tails_are_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tfrecord");
    let first = record(b"first");
    let nested = record(&[&*record(b"inner"), b"more"].concat());
    for (tail, is_removed) in [
        (&record(b"torn")[..14], true),
        (&record(b"torn")[..7], true),
        (&[0; 40], true),
        (&[0; 5], true),
        (&nested[..nested.len() - 2], false),
        (b"some text that is no record", false),
    ] {
        std::fs::write(&path, [&first, tail].concat()).unwrap();
        let append = format::WriteOptions::default().if_exists(seglake::format::IfExists::Append);
        assert!(format::create(format(), &path, &append).is_err());
        let removing = append.set("zero_torn_tail", true);
        match format::create(format(), &path, &removing) {
            Ok(mut writer) => {
                assert!(is_removed, "{tail:?}");
                assert_eq!(writer.last(), Some(RecordId::from(0)));
                let id = writer.write(&[Value::Binary(b"new")]).unwrap();
                assert_eq!(id, Some(RecordId::from(first.len() as u64)));
                writer.close().unwrap();
                let written = std::fs::read(&path).unwrap();
                assert_eq!(written, [&first[..], &record(b"new")].concat());
            }
            Err(error) => assert!(!is_removed, "{tail:?}: {error}"),
        }
    }
}

/// A look-up by position finds what a walk comes to, and no record within another.
#[test]
fn records_are_found_by_their_position() {
    let outer = record(&record(b"inner"));
    let bytes = [record(b"first"), outer].concat();
    let file: Arc<dyn Source> = Arc::new(BytesSource::new(bytes));
    let lookup = format::lookup(file, &Options::default()).unwrap();
    let hits = lookup.get(&[21.into(), 33.into(), 0.into()]).unwrap();
    let found: Vec<_> = hits.places.iter().map(Option::is_some).collect();
    assert_eq!((found, hits.unproven), (vec![true, false, true], None));
    assert!(lookup.get(&[RecordId::new([])]).is_err());
}
