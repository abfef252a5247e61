//! Diagnosing explains the ledger's damage and nothing else, names the records around it, and keeps within its budget. With a proposed
//! bit flipped, the unit that the proposal names verifies.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use seglake::checksum::{Key, hash};
use seglake::format::{Format, Options};
use seglake::ledger::{Cause, Kind, Span};
use seglake::source::{BytesSource, Source};
use seglake::verbs::{
    Certainty, DiagnoseOptions, Diagnosis, Neighbour, Reason, Repair, Report, diagnose, verify,
};

use super::lookup::id;
use super::scan::{End, Plain, Record, Scan, whole};
use super::{Draw, format_of, readings};

pub(super) fn check(format: &'static Format, bytes: &[u8]) {
    let mut draw = Draw::of(bytes);
    for options in readings(format) {
        let scan = Scan::of(bytes, &options);
        if let End::Limit(_) = scan.end {
            continue;
        }
        let how = DiagnoseOptions::default()
            .ranges(*draw.of_these(&[1, 2, 100]))
            .work_bytes(*draw.of_these(&[0, 2000, 1 << 20]));
        let source = Arc::new(Counted {
            bytes: BytesSource::new(bytes.to_vec()),
            read: AtomicU64::new(0),
        });
        let report = verify(whole(bytes), &options, |_| Ok(())).unwrap();
        let counted: Arc<dyn Source> = source.clone();
        let found = diagnose(&counted, &options, &report, &how, |_| Ok(())).unwrap();
        is_bounded(source.read.load(Ordering::Relaxed), bytes, &how, &report);
        let spans: Vec<_> = found.iter().map(|diagnosis| diagnosis.span).collect();
        assert_eq!(
            spans,
            report.summary.damage[..how.ranges.min(report.summary.damage.len())]
        );
        for diagnosis in &found {
            is_complete(diagnosis, &scan, &options);
            for repair in &diagnosis.repairs {
                verifies(repair, bytes, &options);
            }
        }
        says_what_is_left(&found, bytes, &options);
    }
}

/// Bytes in memory, read in windows, and the number of bytes read.
struct Counted {
    bytes: BytesSource<Vec<u8>>,
    read: AtomicU64,
}

impl Source for Counted {
    fn len(&self) -> u64 {
        self.bytes.len()
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
        self.read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        self.bytes.read_exact_at(offset, buffer)
    }
}

/// The number of bytes read is bounded by the file's length and the budget for trials.
fn is_bounded(read: u64, bytes: &[u8], how: &DiagnoseOptions, report: &Report) {
    let ranges = how.ranges.min(report.summary.damage.len()) as u64;
    let most = (bytes.len() as u64 + 1024) * 16 * (ranges + 4) + 16 * how.work_bytes;
    assert!(read <= most, "{read} bytes were read for {ranges} ranges");
}

/// A diagnosis has a cause, how certain that is, and the records before and after the range.
fn is_complete(diagnosis: &Diagnosis, scan: &Scan, options: &Options) {
    let Diagnosis {
        span,
        reason,
        certainty,
        evidence,
        before,
        after,
        repairs,
        ranges,
        ..
    } = diagnosis;
    assert!(!evidence.is_empty());
    assert!(ranges.contains(span) && ranges.is_sorted_by_key(|own| own.start));
    assert_eq!(
        certainty.is_none(),
        *reason == Reason::Unknown,
        "{diagnosis:?}"
    );
    assert_eq!(
        !repairs.is_empty(),
        *reason == Reason::FlippedBit,
        "{diagnosis:?}"
    );
    if *reason == Reason::FlippedBit {
        assert_eq!(*certainty, Some(Certainty::Proven));
    }
    let records = &scan.records;
    let end = records.partition_point(|record| record.position < span.start);
    let own = end.checked_sub(1).map(|place| &records[place]);
    is_neighbour(before.as_ref(), own, options);
    let place = records.partition_point(|record| record.position < span.end);
    is_neighbour(after.as_ref(), records.get(place), options);
}

fn is_neighbour(neighbour: Option<&Neighbour>, record: Option<&Record>, options: &Options) {
    let expected = record.map(|record| {
        let timestamp = record.fields.iter().find_map(|field| match field {
            Plain::Timestamp(micros) => Some(*micros),
            _ => None,
        });
        let id = Some(id(format_of(options), options, record));
        (
            options.format.unwrap().identifier,
            record.position,
            id,
            timestamp,
        )
    });
    let found = neighbour.map(|own| (own.identifier, own.position, own.id.clone(), own.timestamp));
    assert_eq!(found, expected);
}

/// With the proposed bit flipped, the unit that the proposal names verifies.
fn verifies(repair: &Repair, bytes: &[u8], options: &Options) {
    let place = usize::try_from(repair.offset).unwrap();
    assert_eq!(bytes[place], repair.old, "{repair:?}");
    assert_eq!(repair.new, repair.old ^ 1 << repair.bit, "{repair:?}");
    let mut mended = bytes.to_vec();
    mended[place] = repair.new;
    let start = usize::try_from(repair.start).unwrap();
    let end = usize::try_from(repair.end).unwrap();
    let own = &mended[start..end];
    let key = &options.keys[0];
    let is_right = match (options.format.unwrap().name, &*repair.checks) {
        ("active", "record") => {
            let (hashed, checksum) = own.split_last_chunk().unwrap();
            u64::from_be_bytes(*checksum) == hash(key, hashed)
        }
        ("sealed", "message") => {
            let mut entries = mended.as_chunks().0.iter();
            entries.any(|entry| {
                number_at(entry, 16) == repair.start
                    && message_end(&mended, entry, key) == Some(end)
            })
        }
        ("sealed", "index entry") => message_end(&mended, own.try_into().unwrap(), key).is_some(),
        ("chunked", "chunk header") => {
            let (header, crc) = mended[start..start + 21].split_last_chunk().unwrap();
            u32::from_be_bytes(*crc) == crc32fast::hash(header)
        }
        // The order of its records is not checked here.
        ("chunked", "chunk payload") => {
            let scan = Scan::of(&mended, options);
            let is_it = |span: &&Span| (span.start..span.end).contains(&repair.start);
            let span = scan.spans.iter().find(is_it).unwrap();
            span.cause != Some(Cause::PayloadInvalid)
        }
        ("tenant", "table of contents") => {
            let (table, crc) = own.split_last_chunk().unwrap();
            u32::from_be_bytes(*crc) == crc32fast::hash(table)
        }
        ("tenant", "block") => mended[10..start].windows(4).any(|partition| {
            let crc = crc32fast::hash(&[partition, own].concat()).to_be_bytes();
            mended[10..start].windows(4).any(|bytes| *bytes == crc)
        }),
        ("tenant", "count") => {
            let count = usize::try_from(u32::from_be_bytes(own.try_into().unwrap())).unwrap();
            counts(&mended, end).contains(&count)
        }
        ("tenant", "version") => {
            let scan = Scan::of(&mended, options);
            let mut causes = scan.spans.iter().map(|span| span.cause);
            !causes.any(|cause| cause == Some(Cause::UnsupportedVersion))
        }
        ("sealed", "trailer") => {
            let scan = Scan::of(&mended, options);
            let is_in = |span: &Span| span.start < repair.end && repair.start < span.end;
            let mut damage = scan.spans.iter().filter(|span| span.is_damage());
            !damage.any(is_in)
        }
        (_, "record") => {
            let scan = Scan::of(&mended, options);
            let is_own = |span: &Span| span.kind == Kind::Record && span.end == end as u64;
            scan.spans.iter().any(is_own)
        }
        (_, "unused space" | "padding" | "terminator") => own.iter().all(|byte| *byte == 0),
        (format, what) => panic!("a {what} of {format} files"),
    };
    assert!(is_right, "{repair:?} does not verify");
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(*bytes[at..].first_chunk().unwrap())
}

/// Where the message ends that an entry points at, if its checksum is among those of the trailer.
fn message_end(bytes: &[u8], entry: &[u8; 24], key: &Key) -> Option<usize> {
    let start = usize::try_from(number_at(entry, 16)).ok()?;
    let message = bytes.get(start..)?;
    let lengths = 1 + usize::from(*message.first()?);
    let value: &[u8; 4] = message.get(lengths..)?.first_chunk()?;
    let len = lengths + 4 + usize::try_from(u32::from_be_bytes(*value)).ok()?;
    let hashed = [&entry[..16], message.get(..len)?].concat();
    let checksum = hash(key, &hashed).to_be_bytes();
    let is_there = bytes.windows(8).any(|bytes| *bytes == checksum);
    is_there.then_some(start + len)
}

/// The values that a table of contents implies for the number that ends at `end`: the number of partitions, or, for each entry that
/// names this place, the number of tenants of its partition from there on.
fn counts(bytes: &[u8], end: usize) -> Vec<usize> {
    let number = |at: usize| u32::from_be_bytes(*bytes[at..].first_chunk().unwrap());
    let (mut entries, mut at) = (Vec::new(), 10);
    for _ in 0..number(6) {
        let fields = at + 8 + usize::try_from(number(at + 4)).unwrap();
        entries.push((number(at), number_at(bytes, fields + 4)));
        at = fields + 24;
    }
    let groups: Vec<_> = entries.chunk_by(|one, other| one.0 == other.0).collect();
    let mut counts = Vec::new();
    if end == at + 8 {
        counts.push(groups.len());
    }
    for group in groups {
        let places = group.iter().enumerate();
        let here = places.filter(|(_, (_, offset))| *offset == end as u64);
        counts.extend(here.map(|(place, _)| group.len() - place));
    }
    counts
}

/// Each diagnosis says whether its range stays damaged, and whether the file is sound, with all proposals applied.
fn says_what_is_left(found: &[Diagnosis], bytes: &[u8], options: &Options) {
    let mut mended = bytes.to_vec();
    let repairs: Vec<_> = found
        .iter()
        .flat_map(|diagnosis| &diagnosis.repairs)
        .collect();
    if repairs.is_empty() {
        return;
    }
    for repair in repairs {
        mended[usize::try_from(repair.offset).unwrap()] = repair.new;
    }
    let scan = Scan::of(&mended, options);
    let is_sound = scan.spans.iter().all(|span| !span.is_damage());
    for Diagnosis {
        span,
        reason,
        evidence,
        ..
    } in found
    {
        let is_in = |own: &Span| own.is_damage() && own.start < span.end && span.start < own.end;
        let is_left = scan.spans.iter().any(is_in);
        match reason {
            Reason::FlippedBit => {
                assert_eq!(evidence.contains("stays damaged"), is_left, "{evidence}");
                assert_eq!(
                    evidence.contains("whole file is sound"),
                    is_sound,
                    "{evidence}"
                );
            }
            Reason::Consequence => assert!(!is_left, "{evidence}"),
            _ => {}
        }
    }
}
