//! Records whose time is ahead of the clock: refused, or told, and what goes by time goes on.

use std::path::Path;
use std::time::{Duration, SystemTime};

use seglake::Error;
use seglake::format::Options;
use seglake::store::{LogOptions, LogReader, NewRecord, Retention, SegmentLog};
use seglake::uuid6::Generator;
use uuid::Uuid;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// An age that a segment gets while the test waits.
const TICK: Duration = Duration::from_millis(1);

/// A UUID of a time that is so far ahead of the clock.
fn ahead(time: Duration) -> Uuid {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let micros = i64::try_from((now + time).as_micros()).unwrap();
    Generator::default().at(micros).unwrap()
}

#[test]
fn a_time_far_ahead_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let log = SegmentLog::open(folder.path(), LogOptions::default()).unwrap();
    log.write(b"type", b"1").unwrap();
    let refused = log.write_as(Some(ahead(2 * DAY)), b"type", b"2");
    let Err(Error::Usage(refused)) = refused else {
        panic!("{refused:?}");
    };
    assert!(refused.contains("max_clock_ahead"), "{refused}");
    let refused = log.write_batch([NewRecord::new(b"type", b"2").uuid(ahead(2 * DAY))]);
    assert!(matches!(refused, Err(Error::Usage(_))), "{refused:?}");
    assert_eq!(log.clock_ahead(), None);
    log.write_as(Some(ahead(DAY / 2)), b"type", b"2").unwrap();
    assert!(log.clock_ahead().is_some_and(|ahead| ahead > DAY / 3));
    log.close().unwrap();
    let reader = LogReader::open(folder.path(), Options::default()).unwrap();
    assert!(
        reader
            .clock_ahead()
            .unwrap()
            .is_some_and(|ahead| ahead > DAY / 3)
    );
}

/// Waits until the clock is past this time.
fn wait_past(time: SystemTime) {
    while SystemTime::now() <= time {
        std::thread::yield_now();
    }
}

/// The time of the newest file in a folder.
fn newest(folder: &Path) -> SystemTime {
    let files = folder.read_dir().unwrap();
    let times = files.map(|own| own.unwrap().metadata().unwrap().modified().unwrap());
    times.max().unwrap()
}

#[test]
fn a_log_whose_times_are_ahead_ends_and_removes_segments() {
    let folder = tempfile::tempdir().unwrap();
    let options = LogOptions::default()
        .max_clock_ahead(Duration::MAX)
        .segment_age(TICK);
    let log = SegmentLog::open(folder.path(), options).unwrap();
    log.write_as(Some(ahead(900 * DAY)), b"type", b"0").unwrap();
    for number in 0..3 {
        wait_past(SystemTime::now() + 2 * TICK);
        log.write(b"type", [number]).unwrap();
    }
    log.wait_sealed().unwrap();
    assert_eq!(log.retain(&Retention::default().age(DAY)).unwrap(), []);
    // The file system's clock may be ahead of this one.
    wait_past(newest(folder.path()) + 2 * TICK);
    let removed = log.retain(&Retention::default().age(TICK));
    assert_eq!(removed.unwrap().len(), 3);
}

#[test]
fn the_last_time_of_all_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let options = LogOptions::default().max_clock_ahead(Duration::MAX);
    let log = SegmentLog::open(folder.path(), options).unwrap();
    let last = Uuid::parse_str("ffffffff-ffff-6fff-bfff-ffffffffffff").unwrap();
    log.write_as(Some(last), b"type", b"1").unwrap();
    let refused = log.write(b"type", b"2").unwrap_err().to_string();
    assert!(refused.contains("the year 5236"), "{refused}");
}
