//! How far a segment of a log has to reach is one rule: whatever reads a cut one, or decides on it, says the same.

use std::fs;
use std::path::{Path, PathBuf};

use seglake::format::{Options, Start, Step, Walk, open};
use seglake::ledger::{Cause, Kind, Span};
use seglake::store::{
    ListedLog, LogOptions, LogReader, OpenedSegment, Recovery, SegmentLog, TailFrom,
};
use seglake::verbs::{self, Reason};
use seglake::{Damage, Error, Record, Result};
use uuid::Uuid;

/// UUID, two lengths, type, value and checksum.
const RECORD: usize = 16 + 1 + 1 + 4 + 3 + 8;
const RECORDS: usize = 5;
const END: u64 = (RECORDS * RECORD) as u64;

fn write(log: &SegmentLog, numbers: std::ops::Range<usize>) {
    for number in numbers {
        log.write(b"t", format!("{number:03}").as_bytes()).unwrap();
    }
}

/// What says how far the segment of five records reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Mark,
    End,
    Frozen,
}

impl Said {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Mark, "as the synced mark says"),
        (Self::End, "as its .end file says"),
        (Self::Frozen, "as its .frozen file says"),
    ];
}

/// Makes a log whose first segment has five records. Returns that segment's file.
fn log(folder: &Path, said: Said) -> PathBuf {
    let log = SegmentLog::open(folder, LogOptions::default().seal(false)).unwrap();
    write(&log, 0..RECORDS);
    let active = active(folder);
    if said != Said::Mark {
        log.roll().unwrap();
        write(&log, RECORDS..RECORDS + 2);
    }
    log.close().unwrap();
    let stem = active.file_stem().unwrap().to_str().unwrap();
    if said == Said::Frozen {
        fs::remove_file(folder.join(format!("_{stem}.end"))).unwrap();
        let text = format!("{{\"reason\":\"a test\",\"synced\":{END}}}");
        fs::write(folder.join(format!("_{stem}.frozen")), text).unwrap();
    }
    active
}

fn active(folder: &Path) -> PathBuf {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|own| own == "active"));
    paths.sort();
    paths.swap_remove(0)
}

/// Ways to lose the end of the segment: what is left of it, where its sound records end, and what is found there.
fn losses(bytes: &[u8]) -> Vec<(String, Vec<u8>, usize, String)> {
    let mut losses = Vec::new();
    for whole in 0..RECORDS {
        let at = whole * RECORD;
        // Between records, within a header, within a body, and within a checksum.
        for more in [0, 1, 15, 19, 23, RECORD - 1] {
            let end = at + more;
            let found = format!("the end of the file at offset {end}");
            let cut = bytes[..end].to_vec();
            losses.push((format!("cut at {end}"), cut, at, found));
        }
        let zeros = [&bytes[..at], &vec![0; bytes.len() - at]].concat();
        losses.push((format!("zeros from {at}"), zeros, at, "zeros".to_owned()));
        let short = [&bytes[..at], &[0; 7]].concat();
        let found = format!("the end of the file at offset {}", short.len());
        losses.push((format!("some zeros from {at}"), short, at, found));
    }
    losses
}

fn first_damage(result: Result<()>, about: &str) -> Damage {
    match result {
        Err(Error::Damage(damage)) => *damage,
        other => panic!("{about}: {other:?}"),
    }
}

fn drain(records: impl Iterator<Item = Result<Record>>) -> (usize, Result<()>) {
    let mut found = 0;
    for record in records {
        match record {
            Ok(_) => found += 1,
            Err(error) => return (found, Err(error)),
        }
    }
    (found, Ok(()))
}

fn opened(folder: &Path) -> OpenedSegment {
    let listed = ListedLog::read(folder, &Options::default()).unwrap();
    listed.segments[0].open(&Options::default()).unwrap()
}

/// The ranges of the first segment as a scan of the folder sees them, and how many records it gives.
fn ranges(folder: &Path, strict: bool) -> (usize, Vec<Span>, Result<()>) {
    let OpenedSegment { source, format, .. } = opened(folder);
    let options = Options::default().format(format).strict(strict);
    let mut walk: Box<dyn Walk> = open(source, &options, Start::Beginning).unwrap();
    let (mut records, mut spans) = (0, Vec::new());
    loop {
        match walk.step() {
            Ok(Step::More) => {
                records += walk.rows().len();
                spans.extend_from_slice(walk.spans());
            }
            Ok(_) => return (records, spans, Ok(())),
            Err(error) => return (records, spans, Err(error)),
        }
    }
}

fn uuids(folder: &Path) -> Vec<Uuid> {
    let reader = LogReader::open(folder, Options::default()).unwrap();
    let (mut tail, mut uuids) = (reader.tail(TailFrom::Start).unwrap(), Vec::new());
    while tail.poll().unwrap().is_some() {
        uuids.push(tail.last().unwrap());
    }
    uuids
}

#[test]
fn a_cut_is_one_damage_with_one_cause_for_all_who_read() {
    for (said, said_by) in Said::ALL {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let path = log(folder, said);
        let uuids = uuids(folder);
        let content = fs::read(&path).unwrap();
        for (loss, left, at, found) in losses(&content[..RECORDS * RECORD]) {
            let about = format!("{said:?}, {loss}");
            fs::write(&path, &left).unwrap();
            let reader = LogReader::open(folder, Options::default()).unwrap();
            let whole = at / RECORD;
            let mut tail = reader.tail(TailFrom::Start).unwrap();
            let (read, error) = drain(reader.records().unwrap());
            let (followed, tail_error) = drain(std::iter::from_fn(|| tail.poll().transpose()));
            let (scanned, _, scan_error) = ranges(folder, true);
            assert_eq!([read, followed, scanned], [whole; 3], "{about}");
            let lost = reader.get(&uuids[whole]).map(|_| ());
            for result in [error, tail_error, scan_error, lost] {
                let damage = first_damage(result, &about);
                let expected = format!("records up to offset {END}, {said_by}");
                assert_eq!(damage.finding.cause(), Cause::LengthOutOfBounds, "{about}");
                assert_eq!(damage.offset, at as u64, "{about}");
                assert_eq!(damage.finding.expected(), expected, "{about}");
                assert_eq!(damage.finding.actual(), found, "{about}");
                assert_eq!(damage.path.as_ref(), Some(&path), "{about}");
            }
            if whole > 0 {
                assert!(reader.get(&uuids[whole - 1]).unwrap().is_some(), "{about}");
            }
            // Skipping, each byte is accounted for, also those that the file lacks.
            let (kept, spans, skipped) = ranges(folder, false);
            skipped.unwrap();
            assert_eq!(kept, whole, "{about}");
            let (last, records) = spans.split_last().unwrap();
            let cause = Some(Cause::LengthOutOfBounds);
            let lost = Span::new(at as u64, END, Kind::Corrupt, cause);
            assert_eq!(*last, lost, "{about}");
            assert!(
                records.iter().all(|own| own.kind == Kind::Record),
                "{about}"
            );
            let OpenedSegment { source, format, .. } = opened(folder);
            let options = Options::default().format(format);
            let report = verbs::verify(source.clone(), &options, |_| Ok(())).unwrap();
            assert_eq!(
                (report.summary.size, report.summary.bytes),
                (END, END),
                "{about}"
            );
            assert_eq!(report.summary.damage, [lost], "{about}");
            let how = verbs::DiagnoseOptions::default();
            let told = verbs::diagnose(&source, &options, &report, &how, |_| Ok(())).unwrap();
            let [diagnosis] = &told[..] else {
                panic!("{about}: {told:?}");
            };
            assert_eq!(diagnosis.span, lost, "{about}");
            let is_short = left.len() < RECORDS * RECORD;
            assert_eq!(diagnosis.reason == Reason::Truncated, is_short, "{about}");
        }
    }
}

/// Recovery and sealing freeze a segment that is cut, and say the same of it. Its bytes stay as they are.
#[test]
fn a_cut_segment_is_frozen_for_the_same_reason() {
    for (said, said_by) in &Said::ALL[..2] {
        for whole in [0, 2, RECORDS - 1] {
            for more in [0, 1, 20] {
                let folder = tempfile::tempdir().unwrap();
                let folder = folder.path();
                let path = log(folder, *said);
                let end = whole * RECORD + more;
                let left = fs::read(&path).unwrap()[..end].to_vec();
                fs::write(&path, &left).unwrap();
                let log = SegmentLog::open(folder, LogOptions::default()).unwrap();
                log.wait_sealed().unwrap();
                let about = format!("{said:?} {whole} {more}");
                assert_eq!(fs::read(&path).unwrap(), left, "{about}");
                let stem = path.file_stem().unwrap().to_str().unwrap();
                let frozen = fs::read_to_string(folder.join(format!("_{stem}.frozen"))).unwrap();
                for words in [
                    "length_out_of_bounds".to_owned(),
                    format!("offset {}", whole * RECORD),
                    format!("records up to offset {END}, {said_by}"),
                    format!("the end of the file at offset {end}"),
                    format!("\"synced\":{END}"),
                ] {
                    assert!(frozen.contains(&words), "{about}: {words}: {frozen}");
                }
                if *said == Said::Mark {
                    assert!(matches!(log.recovered(), [Recovery::Frozen { .. }]));
                }
            }
        }
    }
}

#[test]
fn damage_in_front_of_the_bound_keeps_its_own_cause() {
    for (said, _) in Said::ALL {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let path = log(folder, said);
        let mut content = fs::read(&path).unwrap()[..RECORDS * RECORD - 10].to_vec();
        content[RECORD + 25] ^= 1;
        fs::write(&path, &content).unwrap();
        let (records, spans, skipped) = ranges(folder, false);
        skipped.unwrap();
        assert_eq!(records, RECORDS - 2);
        let damaged: Vec<_> = spans.into_iter().filter(Span::is_damage).collect();
        let ranges =
            [(1, 2), (4, 5)].map(|(from, to)| ((from * RECORD) as u64, (to * RECORD) as u64));
        let causes = [Cause::ChecksumMismatch, Cause::LengthOutOfBounds];
        for ((span, (start, end)), cause) in damaged.iter().zip(ranges).zip(causes) {
            let expected = Span::new(start, end, Kind::Corrupt, Some(cause));
            assert_eq!(*span, expected, "{said:?}");
        }
        assert_eq!(damaged.len(), 2);
        // A wrong length in front of sound records is no cut, though it leads beyond the end of the file.
        content[RECORD + 25] ^= 1;
        content[RECORD + 18] ^= 0x40;
        fs::write(&path, &content).unwrap();
        let reader = LogReader::open(folder, Options::default()).unwrap();
        let damage = first_damage(drain(reader.records().unwrap()).1, "a wrong length");
        assert_eq!(
            (damage.finding.cause(), damage.offset),
            (Cause::LengthOutOfBounds, RECORD as u64)
        );
        assert!(
            !damage.to_string().contains("the end of the file at"),
            "{damage}"
        );
    }
}

/// The last record up to the bound is known. Where another one is in its place, that is noticed, and it is kept.
#[test]
fn the_last_record_up_to_the_bound_is_the_one_that_was_there() {
    for said in [Said::Mark, Said::End] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let path = log(folder, said);
        let uuid = *uuids(folder)[RECORDS - 1].as_bytes();
        let mut other = uuid;
        other[9] ^= 1;
        let mut content = fs::read(&path).unwrap();
        content.truncate((RECORDS - 1) * RECORD);
        let key = seglake::checksum::Key::DEFAULT;
        seglake::format::active::encode(&mut content, &key, &other, b"t", b"999").unwrap();
        fs::write(&path, &content).unwrap();
        let reader = LogReader::open(folder, Options::default()).unwrap();
        let (found, error) = drain(reader.records().unwrap());
        let damage = first_damage(error, "another last record");
        let at = ((RECORDS - 1) * RECORD) as u64;
        assert_eq!((found, damage.offset), (RECORDS - 1, at));
        assert_eq!(damage.finding.cause(), Cause::CountMismatch);
        assert!(
            damage
                .finding
                .actual()
                .contains(&Uuid::from_bytes(other).to_string())
        );
        let (kept, spans, _) = ranges(folder, false);
        let last = spans.last().unwrap();
        assert_eq!(kept, RECORDS);
        assert_eq!(
            (last.kind, last.cause),
            (Kind::Record, Some(Cause::CountMismatch))
        );
        // It is frozen, not sealed.
        let log = SegmentLog::open(folder, LogOptions::default()).unwrap();
        log.wait_sealed().unwrap();
        assert_eq!(fs::read(&path).unwrap(), content, "{said:?}");
        assert!(reader.segments().unwrap()[0].is_frozen);
    }
}

/// Records after the bound are not taken for the last one up to it.
#[test]
fn records_after_the_bound_are_not_the_last_up_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = log(folder, Said::Mark);
    let mark = fs::read(folder.join("_mark")).unwrap();
    let log = SegmentLog::open(folder, LogOptions::default().seal(false)).unwrap();
    write(&log, RECORDS..RECORDS + 4);
    log.roll().unwrap();
    write(&log, RECORDS + 4..RECORDS + 5);
    log.close().unwrap();
    // The mark of before is in a complete segment, and nothing else says how far that reaches.
    fs::write(folder.join("_mark"), mark).unwrap();
    let stem = path.file_stem().unwrap().to_str().unwrap();
    fs::remove_file(folder.join(format!("_{stem}.end"))).unwrap();
    let (records, spans, result) = ranges(folder, true);
    result.unwrap();
    assert_eq!((records, spans.len()), (RECORDS + 4, RECORDS + 4));
}

/// A segment of which nothing is said has at least the record that it is named after. Where else it is cut between records cannot
/// be noticed.
#[test]
fn a_complete_segment_of_which_nothing_is_said_has_a_record() {
    for (left, whole) in [(0, 0), (RECORD, 1), (RECORD + 1, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let path = log(folder, Said::End);
        let stem = path.file_stem().unwrap().to_str().unwrap();
        fs::remove_file(folder.join(format!("_{stem}.end"))).unwrap();
        let content = fs::read(&path).unwrap();
        fs::write(&path, &content[..left]).unwrap();
        let reader = LogReader::open(folder, Options::default()).unwrap();
        let (found, error) = drain(reader.records().unwrap());
        let (_, spans, scan_error) = ranges(folder, true);
        if left == RECORD {
            error.and(scan_error).unwrap();
            assert_eq!((found, spans.len()), (whole + 2, whole));
            continue;
        }
        let messages = [error, scan_error].map(|error| {
            let damage = first_damage(error, &format!("{left} bytes"));
            assert_eq!(damage.offset, (whole * RECORD) as u64);
            damage.to_string()
        });
        assert_eq!(messages[0], messages[1]);
        assert_eq!(
            messages[0].contains("a record, as its name says"),
            whole == 0
        );
        let log = SegmentLog::open(folder, LogOptions::default()).unwrap();
        log.wait_sealed().unwrap();
        let segments = reader.segments().unwrap();
        assert_eq!(segments.iter().filter(|own| own.is_frozen).count(), 1);
    }
}

/// What is after the bound of a frozen segment and no record is told, but no damage; of a complete one it is damage.
#[test]
fn after_the_bound_damage_is_unproven_or_damage() {
    for (said, is_damage) in [(Said::Frozen, false), (Said::End, true)] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let path = log(folder, said);
        let mut content = fs::read(&path).unwrap();
        assert_eq!(content.len(), RECORDS * RECORD);
        content.extend([0xff; 20]);
        content.extend([0; 30]);
        fs::write(&path, &content).unwrap();
        let OpenedSegment { source, format, .. } = opened(folder);
        let options = Options::default().format(format);
        let report = verbs::verify(source, &options, |_| Ok(())).unwrap();
        let totals: Vec<_> = report
            .summary
            .totals
            .rows()
            .iter()
            .map(|own| (own.kind, own.bytes))
            .collect();
        let kind = if is_damage {
            Kind::TornTail
        } else {
            Kind::Unproven
        };
        assert!(totals.contains(&(kind, 20)), "{said:?}: {totals:?}");
        assert!(totals.contains(&(Kind::Unused, 30)), "{said:?}: {totals:?}");
        assert_eq!(report.is_sound(), !is_damage);
        assert_eq!(report.summary.bytes, content.len() as u64);
        let reader = LogReader::open(folder, Options::default()).unwrap();
        let (found, error) = drain(reader.records().unwrap());
        assert_eq!(error.is_err(), is_damage, "{said:?}: {error:?}");
        assert_eq!(found, if is_damage { RECORDS } else { RECORDS + 2 });
    }
}
