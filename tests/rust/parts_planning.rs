//! What planning parts reads, what a part reads, and which parts are refused.

use crate::common::sealed as segments;
use crate::tenant_segments;
use std::sync::Arc;

use crate::common::counting::Counting;
use crate::common::{Windowed, chunked, source, uuid};
use crate::splitting::{joined, read};
use seglake::Error;
use seglake::checksum::Key;
use seglake::format::{
    Eof, Filter, Options, Part, Start, Step, active, open, sealed, split, tenant,
};
use seglake::ledger::Cause;
use seglake::source::Source;

/// A made-up file whose messages lie inside one another is refused in parts, and never read as something else.
#[test]
fn overlapping_messages_are_refused_in_parts() {
    let bytes = segments::overlapping(20);
    let source = source(&bytes);
    let options = segments::lenient();
    assert_eq!(read(&source, &options, Start::Beginning).records.len(), 1);
    let parts = split(source.clone(), &options, 1).unwrap();
    assert_eq!(parts.len(), 4);
    let mut refused = 0;
    for part in &parts {
        let mut walk = open(source.clone(), &options, Start::Part(part)).unwrap();
        loop {
            match walk.step() {
                Ok(Step::More) => {}
                Ok(_) => break,
                Err(Error::Usage(message)) => {
                    assert!(message.contains("Read the whole file"), "{message}");
                    refused += 1;
                    break;
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(refused > 0);
}

/// After any step, and before the first. Also of an empty part, because the part before it covers all of it.
#[test]
fn a_walk_of_a_chunked_part_can_be_resumed() {
    let (mut bytes, options) = (chunked::segment(20, 5, 100), chunked::lenient());
    // After the header of a chunk.
    for at in (bytes.len() / 2..bytes.len() * 2 / 3).step_by(701) {
        bytes[at.next_multiple_of(0x80) + 50] ^= 0x20;
    }
    let options = options.window_bytes(300);
    let source: Arc<dyn Source> = Arc::new(Windowed(bytes));
    let parts = [1, 1000].map(|target| split(source.clone(), &options, target).unwrap());
    assert!(parts[1].len() > 3);
    for part in parts.iter().flatten() {
        let whole = read(&source, &options, Start::Part(part));
        let (mut records, mut spans) = (0, Vec::new());
        let mut walk = open(source.clone(), &options, Start::Part(part)).unwrap();
        loop {
            let carry = walk.carry().unwrap();
            walk = open(source.clone(), &options, Start::Carry(&carry)).unwrap();
            if walk.step().unwrap() == Step::Done {
                break;
            }
            records += walk.rows().len();
            spans.extend_from_slice(walk.spans());
        }
        assert_eq!(records, whole.records.len(), "{part:?}");
        assert_eq!(joined(spans), joined(whole.spans), "{part:?}");
    }
}

#[test]
fn parts_of_other_files_are_refused() {
    let refused = |bytes: &[u8], options: &Options, part: &Part| match open(
        source(bytes),
        options,
        Start::Part(part),
    ) {
        Err(Error::Usage(message)) => message,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("not refused"),
    };
    let one = segments::varied(3000, true);
    let options = segments::lenient();
    let part = split(source(&one), &options, 500).unwrap().pop().unwrap();
    // Of another length, of another format, and of the same length with another index.
    assert!(refused(&segments::varied(4000, true), &options, &part).contains("another file"));
    let of_tenant = options.clone().format(&tenant::FORMAT);
    assert!(refused(&one, &of_tenant, &part).contains("another file"));
    let mut changed = one.clone();
    let hash_at = changed.len() - 16;
    changed[hash_at] ^= 1;
    assert!(refused(&changed, &options, &part).contains("Split it again"));
    let growing = chunked::lenient().eof(Eof::Growing);
    let log = chunked::segment(6, 3, 50);
    let part = split(source(&log), &chunked::lenient(), 300)
        .unwrap()
        .pop()
        .unwrap();
    assert!(refused(&log, &growing, &part).contains("still growing"));
    assert_eq!(split(source(&log), &growing, 300).unwrap().len(), 1);
    let mut other = log.clone();
    other[9] ^= 1; // in the first header
    let first = split(source(&log), &chunked::lenient(), 300)
        .unwrap()
        .swap_remove(0);
    assert!(refused(&other, &chunked::lenient(), &first).contains("Split it again"));
    for json in [
        "",
        "{}",
        "[1]",
        r#"{"format":"none","size":1,"bytes":1,"plan":null}"#,
    ] {
        assert!(
            matches!(Part::from_json(json), Err(Error::Usage(_))),
            "{json}"
        );
    }
    for (format, bytes) in [(&active::FORMAT, vec![0; 9]), (&sealed::FORMAT, one)] {
        let json = format!(
            r#"{{"format":"{}","size":{},"bytes":1,"plan":{{"from":1}}}}"#,
            format.name,
            bytes.len()
        );
        let options = Options::default().format(format);
        refused(&bytes, &options, &Part::from_json(&json).unwrap());
    }
}

/// Planning reads the index, the table of contents or the headers, and no records.
#[test]
fn planning_reads_no_records() {
    let value = vec![5; 20_000];
    let records: Vec<_> = (1..60)
        .map(|tick| (uuid(tick * 50), b"t".to_vec(), value.clone()))
        .collect();
    let messages: Vec<_> = (0..60)
        .map(|number| (number, b"t".to_vec(), value.clone()))
        .collect();
    let files = [
        (
            segments::segment(&Key::DEFAULT, &records, true),
            segments::lenient(),
        ),
        (
            tenant_segments::encode(2, &messages).bytes,
            tenant_segments::lenient(),
        ),
        (chunked::segment(60, 2, 10_000), chunked::lenient()),
    ];
    for (bytes, options) in files {
        let len = bytes.len() as u64;
        let source = Counting::new(bytes);
        let parts = split(source.clone(), &options, 100_000).unwrap();
        assert!(parts.len() >= 5, "{}", parts.len());
        let (read, _) = source.take();
        assert!(read < len / 20, "{read} of {len} bytes");
        let sum: u64 = parts.iter().map(Part::bytes).sum();
        assert!(sum <= len && len - sum < 200, "{sum} of {len}");
        // Each part reads about as much as it says.
        for part in &parts {
            let mut walk = open(
                source.clone(),
                &options.clone().window_bytes(4096),
                Start::Part(part),
            )
            .unwrap();
            while walk.step().unwrap() == Step::More {}
            let (read, _) = source.take();
            assert!(read < part.bytes() + 60_000, "{read} for {}", part.bytes());
        }
        split(source.clone(), &options, len).unwrap();
        assert_eq!(source.take(), (0, 0));
    }
}

/// Without the key, parts are planned by the index alone. Under a wrong key, the first part gives the whole file.
#[test]
fn sealed_segments_under_another_key() {
    let key = Key::new(&[7; 32]);
    let records: Vec<_> = (1..20)
        .map(|tick| (uuid(tick * 50), b"t".to_vec(), vec![9; 40]))
        .collect();
    let sound = segments::segment(&key, &records, true);
    let keyed = segments::lenient().keys(vec![key]);
    let without = segments::lenient();
    let data = 24 * 20..sound.len() - 32 - 8 * 19;
    let mut ends = vec![sound.clone()];
    // In the messages, in the index (an offset, a UUID that still ascends), in the checksums and in the index hash.
    for at in [
        data.start + 200,
        24 * 7 + 23,
        24 * 7 + 15,
        data.end + 30,
        sound.len() - 12,
    ] {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        ends.push(bytes);
    }
    for bytes in ends {
        let source = source(&bytes);
        let parts = split(source.clone(), &without, 200).unwrap();
        assert!(parts.len() > 5, "{parts:?}");
        for options in [&keyed, &without] {
            let whole = read(&source, options, Start::Beginning);
            let (mut records, mut spans) = (Vec::new(), Vec::new());
            for part in &parts {
                let seen = read(&source, options, Start::Part(part));
                records.extend(seen.records);
                spans.extend(seen.spans);
            }
            assert_eq!(records, whole.records);
            assert_eq!(joined(spans), joined(whole.spans));
        }
    }
}

/// The search budget is of the whole file. A part that exceeds its share is refused.
#[test]
fn a_part_that_takes_more_than_its_share_of_the_search_budget_is_refused() {
    let records: Vec<_> = (1..401)
        .map(|tick| (uuid(tick * 50), Vec::new(), vec![9; 2000]))
        .collect();
    let mut bytes = segments::segment(&Key::DEFAULT, &records, true);
    let data_start = 24 * 401;
    // The first messages claim to reach nearly to the end.
    for number in 0..60 {
        let at = data_start + 2005 * number;
        let claim = 2005 * (398 - u32::try_from(number).unwrap());
        bytes[at + 1..at + 5].copy_from_slice(&claim.to_be_bytes());
    }
    let source = source(&bytes);
    let options = segments::lenient();
    let whole = read(&source, &options, Start::Beginning);
    assert_eq!(whole.records.len(), 340);
    let parts = split(source.clone(), &options, bytes.len() as u64 / 8).unwrap();
    let mut walk = open(source.clone(), &options, Start::Part(&parts[0])).unwrap();
    let refused = loop {
        match walk.step() {
            Ok(step) => assert_eq!(step, Step::More),
            Err(error) => break error,
        }
    };
    assert!(
        refused.to_string().contains("hashed without success"),
        "{refused}"
    );
    // All others read their own range.
    let rest: usize = parts[2..]
        .iter()
        .map(|part| read(&source, &options, Start::Part(part)).records.len())
        .sum();
    assert!(rest > 290, "{rest}");
}

/// Pruning skips blocks that do not match, and no others.
#[test]
fn a_damaged_block_that_matches_is_in_the_ledger_of_its_part() {
    let messages = (0..100).map(|partition| (partition, b"t".to_vec(), vec![9; 900]));
    let segment = tenant_segments::encode(2, &messages.collect::<Vec<_>>());
    let own = &segment.messages[42];
    let mut bytes = segment.bytes.clone();
    bytes[usize::try_from(own.position).unwrap() + 100] ^= 1;
    let options = tenant_segments::lenient()
        .prune(true)
        .filter(Filter::default().among("partition", vec![42]));
    let source = source(&bytes);
    let parts = split(source.clone(), &options, 10_000).unwrap();
    assert!(parts.len() > 5, "{}", parts.len());
    let seen = parts
        .iter()
        .map(|part| read(&source, &options, Start::Part(part)));
    let spans: Vec<_> = seen.flat_map(|seen| seen.spans).collect();
    let damage: Vec<_> = spans.iter().filter(|span| span.is_damage()).collect();
    let cause = Some(Cause::ChecksumMismatch);
    let found = damage.iter().map(|span| (span.end, span.cause));
    assert!(found.eq([(own.block_end, cause)]), "{damage:?}");
}

/// With pruning, parts without matches are not read. The records are the same.
#[test]
fn parts_without_matching_records_are_not_read() {
    let records: Vec<_> = (1..200)
        .map(|tick| (uuid(tick * 50), b"t".to_vec(), vec![9; 9000]))
        .collect();
    let mut sealed = segments::segment(&Key::DEFAULT, &records, true);
    let mut log = chunked::segment(200, 2, 4500);
    let tenants = (0..205).map(|partition| (partition, b"t".to_vec(), vec![9; 9000]));
    let mut tenants = tenant_segments::encode(2, &tenants.collect::<Vec<_>>()).bytes;
    let from = |tick| Filter::default().at_least("uuid", uuid(tick));
    for damaged in [false, true] {
        if damaged {
            for at in (24 * 200 + 3000..1_800_000).step_by(50_001) {
                sealed[at] ^= 1;
            }
            for at in (3000..log.len()).step_by(50_001) {
                log[at / 0x80 * 0x80 + 40] ^= 1;
            }
            for at in (tenants.len() - 1_790_000..tenants.len()).step_by(50_001) {
                tenants[at] ^= 1;
            }
        }
        let by_uuid = [
            from(0).below("uuid", uuid(500)),
            from(4000).below("uuid", uuid(4200)),
            from(9000),
        ];
        let by_offset = [0..7, 150..161, 390..9000, 1000..2000];
        let by_offset = by_offset.map(|offsets| {
            Filter::default()
                .at_least("offset", offsets.start)
                .below("offset", offsets.end)
        });
        let cases = by_uuid
            .map(|wanted| (&sealed, segments::lenient(), wanted))
            .into_iter();
        let cases = cases.chain(by_offset.map(|wanted| (&log, chunked::lenient(), wanted)));
        let by_partition = [vec![0, 1], vec![100], vec![204], vec![3, 197]];
        let by_partition =
            by_partition.map(|partitions| Filter::default().among("partition", partitions));
        let of_tenants = |wanted| (&tenants, tenant_segments::lenient(), wanted);
        let cases = cases.chain(by_partition.map(of_tenants));
        for (bytes, options, wanted) in cases {
            let all = options.filter(wanted).window_bytes(4096);
            let pruned = all.clone().prune(true);
            let source = Counting::new(bytes.clone());
            let whole = read(&(source.clone() as Arc<dyn Source>), &all, Start::Beginning);
            let parts = split(source.clone(), &pruned, 100_000).unwrap();
            assert!(parts.len() > 15, "{}", parts.len());
            source.take();
            let (mut records, mut read_bytes) = (Vec::new(), 0);
            for part in &parts {
                let seen = read(
                    &(source.clone() as Arc<dyn Source>),
                    &pruned,
                    Start::Part(part),
                );
                records.extend(seen.records);
                read_bytes += source.take().0;
            }
            assert_eq!(records, whole.records);
            let most = bytes.len() as u64 / if damaged { 2 } else { 3 };
            assert!(read_bytes < most, "{read_bytes} of {most}");
        }
    }
}
