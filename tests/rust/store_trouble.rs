//! Errors of the disk while a log is sealed, retained and recovered.

use std::path::Path;

use crate::simulated::{Call, Done, Simulated, Trouble};
use seglake::checksum::Key;
use seglake::faults::Opening;
use seglake::format::{Options, active};
use seglake::store::{ListedLog, LogOptions, LogReader, Recovery, Retention, SegmentLog};
use seglake::{Error, Record, verbs};
use uuid::Uuid;

fn folder() -> &'static Path {
    Path::new("/data/log")
}

fn options(disk: &Simulated) -> LogOptions {
    LogOptions::default().disk(disk.disk())
}

fn open(options: LogOptions) -> SegmentLog {
    SegmentLog::open(folder(), options).unwrap()
}

/// The path of the only file with this extension, from the root.
fn only(disk: &Simulated, extension: &str) -> String {
    let mut paths: Vec<_> = disk.files().into_keys().collect();
    paths.retain(|path| path.ends_with(extension));
    let [path] = &paths[..] else {
        panic!("{paths:?}")
    };
    format!("/data/{path}")
}

/// Flips a bit of a file.
fn flip(disk: &Simulated, path: &str, at: u64) {
    let file = disk.disk().open(Path::new(path), Opening::Write).unwrap();
    let mut byte = [0];
    assert_eq!(file.read_at(&mut byte, at).unwrap(), 1);
    file.write_at(&[byte[0] ^ 1], at).unwrap();
}

/// Two segments, of which the second one is damaged before it is to be sealed.
fn damaged_before_it_is_sealed(disk: &Simulated) -> SegmentLog {
    let log = open(options(disk).retention(Retention::default().bytes(1)));
    log.write(b"type", b"value 0").unwrap();
    log.roll().unwrap();
    log.wait_sealed().unwrap();
    log.write(b"type", b"value 1").unwrap();
    log.sync().unwrap();
    flip(disk, &only(disk, ".active"), 30);
    log
}

#[test]
fn what_was_frozen_is_known_though_removing_others_fails() {
    let disk = Simulated::new();
    let log = damaged_before_it_is_sealed(&disk);
    let is_removed = |own: &Done| {
        own.call == Call::Unlink
            && own
                .path
                .to_str()
                .is_some_and(|own| own.ends_with(".sealed"))
    };
    disk.trouble_at(is_removed, 0, Trouble::Broken);
    log.roll().unwrap();
    let error = log.wait_sealed().unwrap_err().to_string();
    assert!(error.contains("cannot remove"), "{error}");
    only(&disk, ".frozen");
    assert!(only(&disk, ".sealed").contains("00000000000000000001-"));
    // The next segment removes what was left.
    log.write(b"type", b"value 2").unwrap();
    log.roll().unwrap();
    log.wait_sealed().unwrap();
    assert!(only(&disk, ".sealed").contains("00000000000000000003-"));
}

#[test]
fn old_segments_are_removed_though_sealing_fails() {
    let disk = Simulated::new();
    let log = open(options(&disk).retention(Retention::default().bytes(1)));
    log.write(b"type", b"value 0").unwrap();
    log.roll().unwrap();
    log.wait_sealed().unwrap();
    log.write(b"type", b"value 1").unwrap();
    let is_named = |own: &Done| {
        own.call == Call::Rename
            && own
                .path
                .to_str()
                .is_some_and(|own| own.contains(".sealed."))
    };
    disk.trouble_at(is_named, 0, Trouble::Broken);
    log.roll().unwrap();
    let error = log.wait_sealed().unwrap_err().to_string();
    assert!(error.contains("new file in its place"), "{error}");
    let left: Vec<_> = disk
        .files()
        .into_keys()
        .filter(|own| own.ends_with(".sealed"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

const PAGE_BYTES: u64 = 4096;
const RECORDS: usize = 8;

/// Enough for all records; the zeros ahead of these take up to so much.
fn large_segments(disk: &Simulated) -> LogOptions {
    options(disk).segment_bytes(40_000)
}

/// Larger than a half of a page, so that a page has parts of two or three.
fn large(number: usize) -> Vec<u8> {
    format!("value {number} ").repeat(300).into_bytes()
}

/// The range of bytes that each record has.
fn extents() -> Vec<std::ops::Range<u64>> {
    let mut at = 0;
    let next = |number: usize| {
        let start = at;
        at += 16 + 1 + 4 + 8 + 4 + large(number).len() as u64;
        start..at
    };
    (0..RECORDS).map(next).collect()
}

fn write_large(log: &SegmentLog, numbers: std::ops::Range<usize>) {
    for number in numbers {
        log.write(b"type", large(number)).unwrap();
    }
}

/// The numbers of the records that are read, and the error that ends that.
fn read(disk: &Simulated, strict: bool) -> (Vec<usize>, Option<Error>) {
    let options = Options::default().disk(disk.disk()).strict(strict);
    let reader = LogReader::open(folder(), options).unwrap();
    let number = |record: &Record| {
        let number = (0..100).find(|number| large(*number) == record.value());
        number.unwrap_or_else(|| panic!("not written: {record:?}"))
    };
    let mut numbers = Vec::new();
    for record in reader.records().unwrap() {
        match record {
            Ok(record) => numbers.push(number(&record)),
            Err(error) => return (numbers, Some(error)),
        }
    }
    (numbers, None)
}

/// A sector that the disk cannot read takes the records along that are in it, and nothing else: the log opens, and is written.
#[test]
fn a_page_that_cannot_be_read_freezes_the_newest_segment() {
    let pages = extents().last().unwrap().end.div_ceil(PAGE_BYTES);
    for (page, is_marked) in (0..pages).flat_map(|page| [(page, true), (page, false)]) {
        let case = format!("page {page}, marked {is_marked}");
        let disk = Simulated::new();
        let log = open(large_segments(&disk));
        write_large(&log, 0..RECORDS);
        log.close().unwrap();
        if !is_marked {
            disk.disk().unlink(Path::new("/data/log/_mark")).unwrap();
        }
        let path = only(&disk, ".active");
        let broken = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
        disk.break_range(&path, broken.start + 512..broken.start + 1024);
        let before = disk.files()[path.trim_start_matches("/data/")].clone();
        let lost = |own: &std::ops::Range<u64>| own.start < broken.end && broken.start < own.end;
        let left: Vec<_> = (0..RECORDS).filter(|own| !lost(&extents()[*own])).collect();

        let log = open(large_segments(&disk));
        let [Recovery::Frozen { reason, .. }] = log.recovered() else {
            panic!("{case}: {:?}", log.recovered())
        };
        let said = format!("cannot read the page at offset {}", broken.start);
        assert!(reason.contains(&said), "{case}: {reason}");
        write_large(&log, RECORDS..RECORDS + 1);
        log.close().unwrap();
        assert_eq!(disk.files()[path.trim_start_matches("/data/")], before);

        let with_new: Vec<_> = left.iter().copied().chain([RECORDS]).collect();
        assert_eq!(read(&disk, false).0, with_new, "{case}");
        let (numbers, error) = read(&disk, true);
        if is_marked {
            // What was acknowledged is not passed over.
            let first = left
                .iter()
                .copied()
                .take_while(|own| extents()[*own].end <= broken.start);
            assert_eq!(numbers, first.collect::<Vec<_>>(), "{case}");
            let Some(Error::Damage(damage)) = error else {
                panic!("{case}: {error:?}")
            };
            assert!(damage.offset < broken.end, "{case}: {damage}");
        } else {
            assert_eq!(numbers, with_new, "{case}");
            assert!(error.is_none(), "{case}: {error:?}");
        }
        // And it opens again, also with nothing after the frozen segment.
        let log = open(large_segments(&disk));
        assert_eq!(log.recovered(), []);
        write_large(&log, RECORDS + 1..RECORDS + 2);
        log.close().unwrap();
        assert_eq!(read(&disk, false).0.last(), Some(&(RECORDS + 1)), "{case}");
    }
}

#[test]
fn a_page_that_is_read_at_the_second_try_freezes_nothing() {
    let disk = Simulated::new();
    let log = open(large_segments(&disk));
    write_large(&log, 0..RECORDS);
    log.close().unwrap();
    let start = disk.reads();
    drop(open(large_segments(&disk.copy())));
    let mut opened = 0;
    for at in start..disk.reads() + 60 {
        let disk = disk.copy();
        disk.break_read(at);
        if let Ok(log) = SegmentLog::open(folder(), large_segments(&disk)) {
            opened += 1;
            assert_eq!(log.recovered(), [], "{at}");
            write_large(&log, RECORDS..RECORDS + 1);
        }
    }
    assert!(opened > 0);
}

/// A mark that the disk cannot read is a lost one to a writer, which makes it anew. A reader takes the other one, and says so where there is
/// none.
#[test]
fn a_mark_that_cannot_be_read_is_made_anew() {
    let slots = [0..64, 4096..4160];
    for broken in [&slots[..1], &slots[1..], &slots[..]] {
        let disk = Simulated::new();
        let log = open(large_segments(&disk));
        write_large(&log, 0..RECORDS);
        log.close().unwrap();
        for slot in broken {
            disk.break_range("/data/log/_mark", slot.clone());
        }
        let reader = LogReader::open(folder(), Options::default().disk(disk.disk()));
        match reader {
            Ok(_) => assert_eq!(broken.len(), 1),
            Err(Error::Io { path, .. }) => {
                assert_eq!(broken.len(), 2);
                assert!(path.unwrap().ends_with("_mark"));
            }
            Err(other) => panic!("{other}"),
        }
        let log = open(large_segments(&disk));
        write_large(&log, RECORDS..RECORDS + 1);
        log.close().unwrap();
        let (numbers, error) = read(&disk, true);
        assert_eq!(numbers, (0..=RECORDS).collect::<Vec<_>>());
        assert!(error.is_none(), "{error:?}");
        assert_eq!(open(large_segments(&disk)).recovered(), []);
    }
}

/// Else it would be tried again whenever the log is opened, in vain, and nobody could read around it.
#[test]
fn a_complete_segment_that_cannot_be_read_is_frozen() {
    let disk = Simulated::new();
    let log = open(large_segments(&disk).seal(false));
    write_large(&log, 0..RECORDS);
    let path = only(&disk, ".active");
    log.roll().unwrap();
    write_large(&log, RECORDS..RECORDS + 1);
    log.close().unwrap();
    disk.break_range(&path, PAGE_BYTES + 512..PAGE_BYTES + 1024);
    let log = open(large_segments(&disk));
    log.wait_sealed().unwrap();
    assert!(only(&disk, ".frozen").contains("00000000000000000001-"));
    let said = disk.files();
    let said = said.iter().find(|(path, _)| path.ends_with(".frozen"));
    let said = String::from_utf8_lossy(said.unwrap().1);
    assert!(
        said.contains("cannot read the page at offset 4096"),
        "{said}"
    );
    log.close().unwrap();
    let lost = |own: &usize| {
        let own = &extents()[*own];
        own.start < 2 * PAGE_BYTES && PAGE_BYTES < own.end
    };
    let left = (0..RECORDS).filter(|own| !lost(own)).chain([RECORDS]);
    assert_eq!(read(&disk, false).0, left.collect::<Vec<_>>());
    assert!(matches!(read(&disk, true).1, Some(Error::Damage(_))));
}

/// The segment is sound, so it is sealed when the log is opened again.
#[test]
fn a_sealed_file_that_is_read_back_differently_freezes_nothing() {
    let disk = Simulated::new();
    let log = open(options(&disk));
    log.write(b"type", [7; 4000]).unwrap();
    let is_new = |own: &Done| {
        own.call == Call::Write
            && own
                .path
                .to_str()
                .is_some_and(|own| own.ends_with(".tmp") && own.contains(".sealed."))
    };
    disk.trouble_at(is_new, 0, Trouble::Skip);
    log.roll().unwrap();
    log.wait_sealed().unwrap_err();
    let files = disk.files();
    assert!(!files.keys().any(|own| own.ends_with(".frozen")));
    log.close().unwrap();
    let log = open(options(&disk));
    log.wait_sealed().unwrap();
    only(&disk, ".sealed");
}

/// Else everything after it would stay for ever.
#[test]
fn a_frozen_segment_does_not_stop_retention() {
    let disk = Simulated::new();
    let log = open(options(&disk));
    log.write(b"type", b"value 0").unwrap();
    log.sync().unwrap();
    flip(&disk, &only(&disk, ".active"), 30);
    for value in [b"value 1", b"value 2", b"value 3"] {
        log.roll().unwrap();
        log.write(b"type", value).unwrap();
    }
    log.wait_sealed().unwrap();
    only(&disk, ".frozen");
    let sizes = |ending| {
        let files = disk.files().into_iter();
        let sizes = files.filter(|(path, _)| path.ends_with(ending));
        sizes.map(|(_, bytes)| bytes.len() as u64).sum::<u64>()
    };
    // Two sealed ones: the frozen one is too much.
    let removed = log
        .retain(&Retention::default().bytes(sizes(".sealed")))
        .unwrap();
    assert_eq!(removed.len(), 1);
    assert!(removed[0].is_frozen);
    assert!(
        disk.files()
            .keys()
            .all(|path| !path.contains("00000000000000000001-"))
    );
    let removed = log.retain(&Retention::default().bytes(0)).unwrap();
    assert_eq!(removed.len(), 2);
}

/// A torn record whose length reaches to the end of the data, with so much in it that looks like records that a search does not get to
/// the sound one at its end.
fn torn_with_decoys(first: &[u8; 16]) -> Vec<u8> {
    const BODY_BYTES: usize = 64 << 10; // up to that long, what looks like a record is always tried
    let header = |len: usize| {
        let mut bytes = first.to_vec();
        bytes.push(0);
        bytes.extend(u32::try_from(len).unwrap().to_be_bytes());
        bytes
    };
    let mut last = *first;
    last[9] = 0xff;
    let mut sound = Vec::new();
    active::encode(&mut sound, &Key::DEFAULT, &last, b"", b"sound").unwrap();
    let mut value = header(BODY_BYTES - 29).repeat((300 << 20) / BODY_BYTES);
    value.resize(value.len() + BODY_BYTES, 0x11);
    value.extend(sound);
    let mut torn = header(value.len());
    torn.extend(value);
    torn.extend([1; 8]); // a checksum, which is wrong
    torn
}

/// Else a sound record that was acknowledged might be overwritten.
#[test]
fn a_torn_tail_that_cannot_be_searched_to_its_end_is_not_overwritten() {
    let disk = Simulated::new();
    let log = open(options(&disk));
    log.write(b"type", b"value 0").unwrap();
    log.close().unwrap();
    let path = only(&disk, ".active");
    let file = disk.disk().open(Path::new(&path), Opening::Write).unwrap();
    let mut first = [0; 16];
    file.read_at(&mut first, 0).unwrap();
    let torn = torn_with_decoys(&first.map(|byte| byte | 1));
    file.write_at(&torn, 16 + 1 + 4 + 4 + 7 + 8).unwrap();
    let before = disk.files()[path.trim_start_matches("/data/")].clone();

    let log = open(options(&disk));
    let [Recovery::Frozen { reason, .. }] = log.recovered() else {
        panic!("{:?}", log.recovered())
    };
    assert!(
        reason.contains("the search for them reached its limit"),
        "{reason}"
    );
    log.write(b"type", b"value 1").unwrap();
    log.close().unwrap();
    assert_eq!(disk.files()[path.trim_start_matches("/data/")], before);
}

/// Also of a segment that is not frozen yet, be it the one that is written, a complete one, or a sealed one.
#[test]
fn who_reads_past_damage_gets_what_the_disk_can_read() {
    for (is_sealed, is_newest) in [(false, true), (false, false), (true, false)] {
        let case = format!("sealed {is_sealed}, newest {is_newest}");
        let disk = Simulated::new();
        let log = open(large_segments(&disk).seal(is_sealed));
        write_large(&log, 0..RECORDS);
        if !is_newest {
            log.roll().unwrap();
            log.wait_sealed().unwrap();
        }
        let path = only(&disk, if is_sealed { ".sealed" } else { ".active" });
        write_large(&log, RECORDS..RECORDS + 1);
        let last = disk.files()[path.trim_start_matches("/data/")].len() as u64;
        // In the middle of the records, wherever the format has them.
        let page = last.min(extents().last().unwrap().end) / 2 / PAGE_BYTES * PAGE_BYTES;
        disk.break_range(&path, page + 512..page + 1024);
        let (numbers, error) = read(&disk, false);
        assert!(error.is_none(), "{case}: {error:?}");
        let lost: Vec<_> = (0..=RECORDS).filter(|own| !numbers.contains(own)).collect();
        assert!((1..=3).contains(&lost.len()), "{case}: {numbers:?}");
        assert!(
            lost.iter().all(|own| (2..6).contains(own)),
            "{case}: {lost:?}"
        );
        let (numbers, error) = read(&disk, true);
        assert!(matches!(error, Some(Error::Io { .. })), "{case}: {error:?}");
        assert!(numbers.len() < RECORDS, "{case}: {numbers:?}");

        let lenient = || Options::default().disk(disk.disk()).strict(false);
        let listed = ListedLog::read(folder(), &lenient()).unwrap();
        let opened = listed.segments[0].open(&lenient()).unwrap();
        let options = lenient().format(opened.format);
        let report = verbs::verify(opened.source, &options, |_| Ok(())).unwrap();
        assert!(!report.is_sound(), "{case}");
    }
}

/// It is not the log's: nothing else would have its bytes.
#[test]
fn a_file_that_takes_a_segments_name_stays() {
    let uuid = Uuid::parse_str("1eeafd69-b6b0-69f3-b9f1-1b8e6a30ade3").unwrap();
    let name = "log/00000000000000000001-1eeafd69-b6b0-69f3-b9f1-1b8e6a30ade3.active";
    for content in [&b"somebody's"[..], b""] {
        let disk = Simulated::new();
        let log = open(options(&disk));
        disk.put(&format!("/data/{name}"), content);
        let error = log.write_as(Some(uuid), b"type", b"value").unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        // Not under another name either: there would be two segments of one place.
        let error = log.write(b"type", b"value").unwrap_err().to_string();
        assert!(
            error.contains(name) && error.contains("move it elsewhere"),
            "{error}"
        );
        assert_eq!(disk.files()[name], content);
        assert!(
            disk.files()
                .keys()
                .all(|own| own == name || !own.ends_with(".active"))
        );
    }
}

/// What the log itself began there goes, so that no second segment of this place in the log comes back.
#[test]
fn a_segment_that_cannot_be_begun_leaves_no_file() {
    let disk = Simulated::new();
    let log = open(options(&disk));
    let is_begun = |own: &Done| {
        own.call == Call::Create && own.path.extension().is_some_and(|own| own == "active")
    };
    disk.trouble_at(is_begun, 0, Trouble::Broken);
    log.write(b"type", b"value 0").unwrap_err();
    assert!(disk.files().keys().all(|own| !own.ends_with(".active")));
    log.write(b"type", b"value 1").unwrap();
    log.close().unwrap();
    assert_eq!(open(options(&disk)).recovered(), []);
}
