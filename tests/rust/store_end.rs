//! The end of a segment is written down when it is complete: what is missing before it is noticed by readers, sealing and
//! recovery, also after a restart.

use std::fs;
use std::path::{Path, PathBuf};

use seglake::format::{Options, Value};
use seglake::store::{LogOptions, LogReader, Recovery, SegmentLog, TailFrom};
use seglake::{Error, Record, Result};
use uuid::Uuid;

/// UUID, two lengths and checksum: what a record takes beside its type and value.
const FRAME_BYTES: usize = 16 + 1 + 4 + 8;
const FIRST: usize = 6;
const ALL: usize = 8;

fn value(number: usize) -> Vec<u8> {
    format!("value {number}").into_bytes()
}

fn values(numbers: std::ops::Range<usize>) -> Vec<Vec<u8>> {
    numbers.map(value).collect()
}

/// The offset at which so many records end.
fn end_of(records: usize) -> usize {
    let bytes = |number| FRAME_BYTES + "type".len() + value(number).len();
    (0..records).map(bytes).sum()
}

fn unsealed() -> LogOptions {
    LogOptions::default().seal(false)
}

fn write(log: &SegmentLog, numbers: std::ops::Range<usize>) {
    for number in numbers {
        log.write(b"type", value(number)).unwrap();
    }
}

/// A log whose first segment has six records and is not sealed. The next one has two.
fn two_segments(path: &Path) {
    let log = SegmentLog::open(path, unsealed()).unwrap();
    write(&log, 0..FIRST);
    log.roll().unwrap();
    write(&log, FIRST..ALL);
    log.close().unwrap();
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|own| own == extension));
    paths.sort();
    paths
}

/// The values that are read, and the error that follows.
fn read(folder: &Path) -> (Vec<Vec<u8>>, Option<Error>) {
    let records = LogReader::open(folder, Options::default())
        .unwrap()
        .records()
        .unwrap();
    parted(records)
}

fn followed(folder: &Path) -> (Vec<Vec<u8>>, Option<Error>) {
    let mut tail = LogReader::open(folder, Options::default())
        .unwrap()
        .tail(TailFrom::Start)
        .unwrap();
    parted(std::iter::from_fn(|| tail.poll().transpose()))
}

fn parted(records: impl Iterator<Item = Result<Record>>) -> (Vec<Vec<u8>>, Option<Error>) {
    let mut values = Vec::new();
    for record in records {
        match record {
            Ok(record) => values.push(record.value().to_vec()),
            Err(error) => return (values, Some(error)),
        }
    }
    (values, None)
}

fn uuids(folder: &Path) -> Vec<Uuid> {
    let records = LogReader::open(folder, Options::default())
        .unwrap()
        .records()
        .unwrap();
    let uuid = |record: Result<Record>| match record.unwrap().field("uuid") {
        Some(Value::Uuid(uuid)) => Uuid::from_bytes(uuid),
        other => panic!("{other:?}"),
    };
    records.map(uuid).collect()
}

/// The UUID that an `.end` file has.
fn uuid_of_last(end: &Path) -> Uuid {
    Uuid::from_slice(&fs::read(end).unwrap()[40..56]).unwrap()
}

type Change = fn(&mut Vec<u8>, usize);

/// Ways to lose what is after an offset.
const WAYS: [(&str, Change); 2] = [
    ("cut off", |bytes, end| bytes.truncate(end)),
    ("zeroed", |bytes, end| bytes[end..].fill(0)),
];

#[test]
fn a_complete_segment_has_an_end_and_no_zeros() {
    let folder = tempfile::tempdir().unwrap();
    two_segments(folder.path());
    let [first, second] = &files(folder.path(), "active")[..] else {
        panic!()
    };
    assert_eq!(fs::read(first).unwrap().len(), end_of(FIRST));
    let [end] = &files(folder.path(), "end")[..] else {
        panic!()
    };
    let stem = first.file_stem().unwrap().to_str().unwrap();
    assert_eq!(
        end.file_name().unwrap().to_str().unwrap(),
        format!("_{stem}.end")
    );
    let slot = fs::read(end).unwrap();
    assert_eq!(slot.len(), 64);
    assert_eq!(&slot[..8], b"SEGLMARK");
    assert_eq!(slot[24..32], 1_u64.to_be_bytes());
    assert_eq!(slot[32..40], (end_of(FIRST) as u64).to_be_bytes());
    assert_eq!(slot[40..56], uuids(folder.path())[FIRST - 1].into_bytes());
    assert!(second.exists());

    // It goes with the active file.
    let log = SegmentLog::open(folder.path(), LogOptions::default()).unwrap();
    log.wait_sealed().unwrap();
    assert_eq!(files(folder.path(), "sealed").len(), 1);
    assert_eq!(files(folder.path(), "end"), Vec::<PathBuf>::new());
    assert_eq!(read(folder.path()).0, values(0..ALL));
}

#[test]
fn records_missing_of_a_complete_segment_are_an_error_wherever_it_is_cut() {
    for records in 0..FIRST {
        for (way, change) in WAYS {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            two_segments(folder);
            let uuids = uuids(folder);
            let active = files(folder, "active")[0].clone();
            let end = files(folder, "end")[0].clone();
            let mut bytes = fs::read(&active).unwrap();
            change(&mut bytes, end_of(records));
            fs::write(&active, &bytes).unwrap();

            let about = format!("{way} after {records}");
            for (found, error) in [read(folder), followed(folder)] {
                assert_eq!(found, values(0..records), "{about}");
                let Some(Error::Damage(damage)) = error else {
                    panic!("{about}: {error:?}")
                };
                assert_eq!(damage.offset, end_of(records) as u64, "{about}");
                assert_eq!(damage.path.as_ref(), Some(&active), "{about}");
            }
            let reader = LogReader::open(folder, Options::default()).unwrap();
            for (number, uuid) in uuids.iter().enumerate() {
                let found = reader.get(uuid);
                if (records..FIRST).contains(&number) {
                    assert!(matches!(found, Err(Error::Damage(_))), "{about}: {number}");
                } else {
                    assert_eq!(found.unwrap().unwrap().value(), value(number), "{about}");
                }
            }

            // A writer keeps it as it is, and goes on.
            let log = SegmentLog::open(folder, LogOptions::default()).unwrap();
            log.wait_sealed().unwrap();
            assert_eq!(files(folder, "frozen").len(), 1, "{about}");
            write(&log, ALL..ALL + 1);
            log.close().unwrap();
            assert_eq!(fs::read(&active).unwrap(), bytes, "{about}");
            assert!(end.exists(), "{about}");
            for (found, error) in [read(folder), followed(folder)] {
                assert_eq!(found, values(0..records), "{about}");
                assert!(matches!(error, Some(Error::Damage(_))), "{about}");
            }
        }
    }
}

#[test]
fn an_end_that_is_lost_or_damaged_hinders_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    two_segments(folder);
    let end = files(folder, "end")[0].clone();
    let slot = fs::read(&end).unwrap();
    for bit in (0..slot.len() * 8).step_by(3) {
        let mut flipped = slot.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&end, flipped).unwrap();
        let (found, error) = read(folder);
        assert!(error.is_none(), "bit {bit}: {error:?}");
        assert_eq!(found, values(0..ALL), "bit {bit}");
    }
    for content in [&slot[..20], b""] {
        fs::write(&end, content).unwrap();
        assert_eq!(read(folder).0, values(0..ALL));
    }
    let log = SegmentLog::open(folder, LogOptions::default()).unwrap();
    log.wait_sealed().unwrap();
    assert_eq!(files(folder, "sealed").len(), 1);
    assert_eq!(files(folder, "end"), Vec::<PathBuf>::new());
    assert_eq!(read(folder).0, values(0..ALL));
}

/// A next segment may have been there, without a record on the disk, and readers have gone on to it.
#[test]
fn a_segment_that_ended_is_not_written_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = SegmentLog::open(folder, unsealed()).unwrap();
    write(&log, 0..3);
    log.roll().unwrap();
    log.close().unwrap();
    // There is no next segment yet, so this one is the newest.
    assert_eq!(files(folder, "end").len(), 1);
    let active = files(folder, "active")[0].clone();
    let mut first = uuid_of_last(&files(folder, "end")[0]).into_bytes();
    first[10..].fill(0xff);
    let first = Uuid::from_bytes(first);
    let next = folder.join(format!("00000000000000000002-{first}.active"));
    fs::write(&next, b"").unwrap();
    let mut tail = LogReader::open(folder, Options::default())
        .unwrap()
        .tail(TailFrom::Start)
        .unwrap();
    let followed =
        |tail: &mut seglake::store::Tail| parted(std::iter::from_fn(|| tail.poll().transpose())).0;
    assert_eq!(followed(&mut tail), values(0..3));
    for numbers in [3..4, 4..6] {
        let log = SegmentLog::open(folder, unsealed()).unwrap();
        assert!(!next.exists());
        write(&log, numbers.clone());
        assert_eq!(followed(&mut tail), values(numbers));
        log.close().unwrap();
    }
    assert_eq!(read(folder).0, values(0..6));
    assert_eq!(fs::read(&active).unwrap().len(), end_of(3));
    let log = SegmentLog::open(folder, LogOptions::default()).unwrap();
    log.wait_sealed().unwrap();
    assert!(!active.exists());
    assert_eq!(read(folder).0, values(0..6));
}

#[test]
fn the_newest_segment_has_to_reach_its_end_though_the_mark_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = SegmentLog::open(folder, unsealed()).unwrap();
    write(&log, 0..3);
    log.roll().unwrap();
    log.close().unwrap();
    fs::remove_file(folder.join("_mark")).unwrap();
    let lost = uuid_of_last(&files(folder, "end")[0]);
    let active = files(folder, "active")[0].clone();
    let bytes = fs::read(&active).unwrap();
    fs::write(&active, &bytes[..end_of(2)]).unwrap();
    let log = SegmentLog::open(folder, unsealed()).unwrap();
    assert!(
        matches!(log.recovered(), [Recovery::Frozen { .. }]),
        "{:?}",
        log.recovered()
    );
    let again = log.write_as(Some(lost), b"type", b"another").unwrap_err();
    assert!(again.to_string().contains("does not ascend"), "{again}");
    write(&log, 3..4);
    let (found, error) = read(folder);
    assert_eq!(found, values(0..2));
    assert!(matches!(error, Some(Error::Damage(_))), "{error:?}");
}

#[test]
fn ends_of_segments_that_are_gone_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    two_segments(folder);
    let end = files(folder, "end")[0].clone();
    let kept = fs::read(&end).unwrap();
    let log = SegmentLog::open(folder, LogOptions::default()).unwrap();
    log.wait_sealed().unwrap();
    log.close().unwrap();
    fs::write(&end, kept).unwrap();
    assert_eq!(read(folder).0, values(0..ALL));
    SegmentLog::open(folder, LogOptions::default()).unwrap();
    assert!(!end.exists());
}
