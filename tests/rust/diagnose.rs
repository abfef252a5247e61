//! What damage comes from: each reason where it is so, and not where it is not.

use crate::common;
use crate::common::chunked::noise;
use crate::common::{source, uuid};
use crate::diagnoses::{
    Sound, active, assert_reason, checksummed, chunked, explained, positions, repairs, sealed,
    shown, tenant, tenants,
};
use seglake::checksum::Key;
use seglake::format::{Dialect, Options, active as format_active, oplog};
use seglake::ledger::Kind;
use seglake::verbs::{Certainty, Diagnosis, Reason};

/// Files whose records span several sectors, and ones whose sectors span several records.
fn large_and_small() -> Vec<Sound> {
    let mut all = checksummed(8, 1500);
    all.extend(checksummed(200, 60));
    all
}

#[test]
fn a_sector_of_zeros() {
    for sound in large_and_small() {
        for (at, size) in [(4096, 512), (6144, 512), (4096, 4096), (4096, 1024)] {
            let bytes = sound.damaged(|bytes| bytes[at..at + size].fill(0));
            assert_reason(&sound, &bytes, Reason::ZeroedSector);
        }
    }
}

#[test]
fn a_hole_of_a_megabyte() {
    let sound = active(3000, 1000, 0);
    let bytes = sound.damaged(|bytes| bytes[1 << 20..2 << 20].fill(0));
    let found = assert_reason(&sound, &bytes, Reason::ZeroedSector);
    let place = "bytes 1048576 to 2097152 are";
    assert!(found[0].evidence.contains(place), "{}", shown(&found));
    // Preallocated space that was never written is not a hole.
    let sound = chunked(10, 1000);
    let torn = sound.damaged(|bytes| {
        bytes.truncate(bytes.len() - 700);
        bytes.resize(1 << 20, 0);
    });
    assert_reason(&sound, &torn, Reason::InterruptedWrite);
}

#[test]
fn a_sector_of_erased_flash() {
    for sound in large_and_small() {
        for (at, size) in [(4096, 512), (4096, 4096)] {
            let bytes = sound.damaged(|bytes| bytes[at..at + size].fill(0xff));
            assert_reason(&sound, &bytes, Reason::ErasedSector);
        }
    }
}

#[test]
fn zeros_elsewhere_are_no_sector() {
    for sound in large_and_small() {
        for (at, size) in [(4196, 512), (4196, 900), (4100, 300)] {
            let bytes = sound.damaged(|bytes| bytes[at..at + size].fill(0));
            let (report, found) = sound.explained(&bytes);
            assert!(!report.is_sound() && !found.is_empty());
            let is_claimed = |own: &Diagnosis| own.reason == Reason::ZeroedSector;
            assert!(
                !found.iter().any(is_claimed),
                "{}\n{}",
                sound.format.name,
                shown(&found)
            );
        }
    }
}

#[test]
fn a_sector_that_is_a_copy_of_another() {
    for sound in checksummed(8, 1500) {
        let bytes = sound.damaged(|bytes| bytes.copy_within(7168..7680, 4608));
        let found = assert_reason(&sound, &bytes, Reason::DuplicatedSector);
        assert!(shown(&found).contains("7168"), "{}", shown(&found));
    }
}

#[test]
fn sectors_that_changed_places() {
    for sound in checksummed(8, 1500) {
        let bytes = sound.damaged(|bytes| {
            let (front, back) = bytes.split_at_mut(7168);
            front[4608..5120].swap_with_slice(&mut back[..512]);
        });
        let found = assert_reason(&sound, &bytes, Reason::MovedSector);
        let mut main = found.iter().filter(|own| own.reason != Reason::Consequence);
        let first = main.next().unwrap();
        assert_eq!(first.certainty, Some(Certainty::Proven));
        assert!(
            first.evidence.contains("7168") && first.evidence.contains("4608"),
            "{}",
            shown(&found)
        );
    }
}

#[test]
fn far_sectors_that_changed_places() {
    // Of chunks a page has whole ones, which are older records.
    for sound in checksummed(1500, 600).into_iter().take(3) {
        let bytes = sound.damaged(|bytes| {
            let (front, back) = bytes.split_at_mut(160 * 4096);
            front[60 * 4096..61 * 4096].swap_with_slice(&mut back[..4096]);
        });
        let (_, found) = sound.explained(&bytes);
        let main = found.iter().find(|own| own.reason == Reason::MovedSector);
        assert!(main.is_some_and(|own| own.is_sound), "{}", shown(&found));
        let edits = &main.unwrap().edits;
        assert!(edits[0].start < edits[1].start, "{edits:?}");
    }
}

/// One cause explains both, whatever else a checksum would prove of one record.
#[test]
fn near_sectors_that_changed_places() {
    let sound = active(200, 300, 0);
    for (one, other) in [(20, 21), (20, 22), (33, 36), (48, 56), (60, 75)] {
        let bytes = sound.damaged(|bytes| {
            let (front, back) = bytes.split_at_mut(other * 512);
            front[one * 512..one * 512 + 512].swap_with_slice(&mut back[..512]);
        });
        let (_, found) = sound.explained(&bytes);
        let mut causes = found.iter().filter(|own| own.reason != Reason::Consequence);
        let main = causes.next().unwrap();
        assert_eq!(main.reason, Reason::MovedSector, "{}", shown(&found));
        assert!(
            main.is_sound && causes.next().is_none(),
            "{}",
            shown(&found)
        );
        // The bytes that belong there are said: whoever puts them there has the file as it was.
        let mut mended = bytes.clone();
        let place = |at: u64| usize::try_from(at).unwrap();
        for edit in &main.edits {
            let from = place(edit.from.unwrap());
            let own = place(edit.start)..place(edit.end);
            mended[own].copy_from_slice(&bytes[from..from + place(edit.bytes)]);
        }
        assert_eq!(mended, sound.bytes);
    }
}

/// A file that ends in zeros is sound, but what was there is lost.
#[test]
fn zeros_in_place_of_bytes_restore_nothing() {
    let sound = active(1024, 95, 0);
    assert_eq!(sound.bytes.len(), 128 << 10);
    let bytes = sound.damaged(|bytes| bytes[64 << 10..].copy_from_slice(&noise(7, 64 << 10)));
    let (_, found) = sound.explained(&bytes);
    let is_restored = |own: &Diagnosis| own.is_sound || own.certainty == Some(Certainty::Proven);
    assert!(!found.iter().any(is_restored), "{}", shown(&found));
}

/// The record begins with the sector, so the sector that is in its place has other lengths.
#[test]
fn the_first_sector_of_the_file_is_in_another_ones_place() {
    let sound = active(8, 500, 0);
    let bytes = sound.damaged(|bytes| {
        let (front, back) = bytes.split_at_mut(3072);
        front[..512].swap_with_slice(&mut back[..512]);
    });
    let (_, found) = sound.explained(&bytes);
    let (first, main) = (&found[0], &found[1]);
    assert_eq!(main.reason, Reason::MovedSector, "{}", shown(&found));
    assert_eq!(main.certainty, Some(Certainty::Proven), "{}", shown(&found));
    // One swap explains both places.
    let is_other = first.span.start == 0 && main.ranges.contains(&first.span);
    assert!(
        is_other && first.reason == Reason::Consequence,
        "{}",
        shown(&found)
    );
}

#[test]
fn bytes_that_were_inserted() {
    for (sound, at) in [
        (active(20, 100, 0), 700),
        (sealed(20, 100, true), 1500),
        (tenant(2, 20, 100), 2000),
    ] {
        for extra in [1, 7, 512] {
            let bytes = sound.damaged(|bytes| {
                bytes.splice(at..at, noise(9, extra));
            });
            let found = assert_reason(&sound, &bytes, Reason::InsertedBytes);
            let is_counted = |own: &Diagnosis| own.evidence.contains(&format!(" {extra} byte"));
            assert!(found.iter().any(is_counted), "{}", shown(&found));
        }
    }
    let sound = chunked(20, 100);
    let bytes = sound.damaged(|bytes| {
        bytes.splice(700..700, [1, 2, 3]);
    });
    assert_reason(&sound, &bytes, Reason::InsertedBytes);
    // A long block is not hashed at each offset where it may be.
    let sound = tenant(2, 20, 20_000);
    let bytes = sound.damaged(|bytes| {
        bytes.splice(200_000..200_000, noise(9, 100));
    });
    let found = assert_reason(&sound, &bytes, Reason::InsertedBytes);
    assert!(shown(&found).contains(": 100 bytes"), "{}", shown(&found));
}

/// They are in the place of no unit, and no flipped bit made them of zeros.
#[test]
fn a_few_bytes_between_units_and_after_the_last() {
    for sound in [active(20, 100, 0), chunked(20, 100)] {
        for at in [positions(&sound)[10], sound.bytes.len()] {
            for extra in [&b" "[..], b"\r\n"] {
                let bytes = sound.damaged(|bytes| {
                    bytes.splice(at..at, extra.iter().copied());
                });
                let found = assert_reason(&sound, &bytes, Reason::InsertedBytes);
                assert!(found[0].is_sound, "{}", shown(&found));
            }
        }
    }
}

/// The chunk before says where the next one belongs. What is inserted or missing in it moves all that follow.
#[test]
fn bytes_inserted_in_a_chunk_and_missing_from_it() {
    let sound = chunked(40, 400);
    let chunks = positions(&sound);
    let at = chunks[chunks.len() / 2] + 200;
    let words = |found: &[Diagnosis], words: &str| {
        assert!(shown(found).contains(words), "{words}\n{}", shown(found))
    };
    for extra in [1, 28, 100, 1000] {
        let bytes = sound.damaged(|bytes| {
            bytes.splice(at..at, noise(9, extra));
        });
        let found = assert_reason(&sound, &bytes, Reason::InsertedBytes);
        words(&found, &format!(": {extra} byte"));
    }
    for fewer in [1, 28, 100, 128] {
        let bytes = sound.damaged(|bytes| {
            bytes.drain(at..at + fewer);
        });
        let found = assert_reason(&sound, &bytes, Reason::MissingBytes);
        words(&found, &format!(": {fewer} byte"));
    }
}

#[test]
fn bytes_that_are_missing() {
    for (sound, at) in [
        (active(20, 100, 0), 700),
        (sealed(20, 100, true), 1500),
        (tenant(2, 20, 100), 2000),
    ] {
        let bytes = sound.damaged(|bytes| {
            bytes.drain(at..at + 5);
        });
        let found = assert_reason(&sound, &bytes, Reason::MissingBytes);
        assert!(shown(&found).contains(" 5 bytes"), "{}", shown(&found));
    }
}

#[test]
fn records_that_are_there_twice() {
    for sound in [active(20, 100, 0), chunked(20, 100)] {
        let at = positions(&sound);
        let bytes = sound.damaged(|bytes| {
            let copy = bytes[at[2]..at[4]].to_vec();
            bytes.splice(at[4]..at[4], copy);
        });
        let found = assert_reason(&sound, &bytes, Reason::DuplicatedRecords);
        assert!(
            found[0].evidence.contains("2 verified records"),
            "{}",
            shown(&found)
        );
        assert!(
            found[0].evidence.ends_with(&at[2].to_string()),
            "{}",
            shown(&found)
        );
    }
}

#[test]
fn records_of_an_earlier_time() {
    let sound = active(10, 100, 0);
    let mut older = Vec::new();
    format_active::encode(&mut older, &Key::DEFAULT, &uuid(5), b"old", &noise(77, 90)).unwrap();
    let bytes = sound.damaged(|bytes| {
        let at = bytes.len() / 2;
        bytes.splice(at..at, older.clone());
    });
    assert_reason(&sound, &bytes, Reason::StaleData);
}

#[test]
fn a_write_that_was_interrupted() {
    let sound = active(10, 1000, 0);
    let bytes = sound.damaged(|bytes| bytes.truncate(9001));
    let found = assert_reason(&sound, &bytes, Reason::InterruptedWrite);
    assert_eq!(found[0].span.kind, Kind::TornTail);
    assert!(found[0].before.is_some() && found[0].after.is_none());
    let preallocated = sound.damaged(|bytes| {
        bytes.truncate(9216);
        bytes.resize(20_000, 0);
    });
    let found = assert_reason(&sound, &preallocated, Reason::InterruptedWrite);
    let evidence = "the written bytes end at 9216, a sector boundary";
    assert!(found[0].evidence.contains(evidence), "{}", shown(&found));
    let lost = "or later records that never reached the disk";
    assert!(found[0].evidence.contains(lost), "{}", shown(&found));
    let sound = chunked(10, 1000);
    let bytes = sound.damaged(|bytes| bytes.truncate(9001));
    assert_reason(&sound, &bytes, Reason::InterruptedWrite);
}

#[test]
fn a_write_that_was_cut_short_and_made_again() {
    let sound = active(8, 1500, 0);
    let [.., before, _, _] = positions(&sound)[..] else {
        panic!("there are records")
    };
    // Once, and twice.
    for parts in [&[700][..], &[300, 900]] {
        let bytes = sound.damaged(|bytes| {
            let next = bytes[before..].to_vec();
            for part in parts {
                bytes.splice(before..before, next[..*part].iter().copied());
            }
        });
        let found = assert_reason(&sound, &bytes, Reason::InterruptedWrite);
        assert_eq!(found[0].certainty, Some(Certainty::Proven));
        assert!(found[0].is_sound, "{}", shown(&found));
    }
}

#[test]
fn a_bit_of_a_long_table_of_contents() {
    let sound = tenants(400);
    for at in [100, 5000, 9000] {
        let bytes = sound.damaged(|bytes| bytes[at] ^= 16);
        let found = assert_reason(&sound, &bytes, Reason::FlippedBit);
        assert_eq!(repairs(&found)[0].offset, at as u64, "{}", shown(&found));
    }
}

#[test]
fn zeros_that_begin_and_end_anywhere() {
    for sound in checksummed(200, 600) {
        let bytes = sound.damaged(|bytes| bytes[20_100..60_700].fill(0));
        let found = assert_reason(&sound, &bytes, Reason::ZeroedSector);
        assert!(
            shown(&found).contains("20100 to 60700"),
            "{}",
            shown(&found)
        );
    }
}

#[test]
fn a_file_that_was_cut_off_between_two_units() {
    let sound = tenant(2, 200, 600);
    let mut cuts = positions(&sound);
    let block = cuts.split_off(100)[0] - 24;
    let bytes = sound.damaged(|bytes| bytes.truncate(block));
    let (_, found) = sound.explained(&bytes);
    let main = found.iter().find(|own| own.reason == Reason::Truncated);
    assert!(
        main.is_some_and(|own| own.missing.is_some()),
        "{}",
        shown(&found)
    );
}

#[test]
fn a_flipped_bit_in_the_last_record_is_not_an_interrupted_write() {
    let sound = active(5, 100, 1000);
    let bytes = sound.damaged(|bytes| bytes[600] ^= 4);
    let found = assert_reason(&sound, &bytes, Reason::FlippedBit);
    assert_eq!(found[0].span.kind, Kind::TornTail);
}

#[test]
fn a_copy_that_was_cut_off() {
    for sound in [
        sealed(100, 1500, true),
        sealed(100, 1500, false),
        tenant(2, 100, 1500),
        tenant(1, 100, 1500),
    ] {
        let bytes = sound.damaged(|bytes| bytes.truncate(131_072));
        let (_, found) = sound.explained(&bytes);
        let last = found
            .iter()
            .find(|own| own.span.kind == Kind::TornTail)
            .unwrap();
        assert_eq!(last.reason, Reason::Truncated, "{}", shown(&found));
        assert!(last.evidence.contains("64 KiB"), "{}", shown(&found));
    }
    let sound = active(100, 1500, 0);
    let bytes = sound.damaged(|bytes| bytes.truncate(65_536));
    assert_reason(&sound, &bytes, Reason::Truncated);
}

#[test]
fn another_key() {
    let sound = active(20, 50, 0);
    let options = sound.options().keys(vec![Key::new(&[7; 32])]);
    let (report, found) = explained(source(&sound.bytes), &options);
    assert!(report.summary.wrong_key());
    assert!(!found.is_empty());
    assert!(
        found.iter().all(|own| own.reason == Reason::WrongKey),
        "{}",
        shown(&found)
    );
    assert!(repairs(&found).is_empty());
}

#[test]
fn a_file_of_something_else() {
    let sound = active(10, 100, 0);
    let page = b"<!DOCTYPE html><html><body><h1>404 Not Found</h1></body></html>".to_vec();
    let gzip = [&[0x1f, 0x8b, 8, 0][..], &noise(3, 2000)].concat();
    let text = b"2024-01-10 12:00:00 INFO started, all is well\n".repeat(20);
    for (bytes, reason) in [
        (page, Reason::OtherContent),
        (gzip, Reason::Compressed),
        (text, Reason::OtherContent),
        (chunked(5, 100).bytes, Reason::OtherFormat),
        (tenant(2, 5, 100).bytes, Reason::OtherFormat),
    ] {
        assert_reason(&sound, &bytes, reason);
    }
}

#[test]
fn text_in_the_middle() {
    let text = b"kernel: [12345.678] EXT4-fs error (device sda1)\n".repeat(60);
    let written_to = |sound: &Sound, at: usize| {
        sound.damaged(|bytes| bytes[at..at + text.len()].copy_from_slice(&text))
    };
    for sound in [active(20, 400, 0), chunked(20, 400)] {
        let at = positions(&sound)[5];
        let found = assert_reason(&sound, &written_to(&sound, at), Reason::OtherContent);
        let is_named = found[0]
            .evidence
            .contains(&format!("from {at} on are text"));
        assert!(is_named, "{}", shown(&found));
    }
    // A damaged range begins where a record begins, and text that begins later within an active record is not searched for. In a chunk
    // the range of the payload is text from the place where the frame ends.
    let sound = chunked(20, 400);
    let at = sound.bytes.len() / 4 / 128 * 128;
    assert_reason(&sound, &written_to(&sound, at), Reason::OtherContent);
    let sound = active(20, 400, 0);
    let found = assert_reason(
        &sound,
        &written_to(&sound, positions(&sound)[5] + 100),
        Reason::Unknown,
    );
    assert_eq!(found.len(), 1, "{}", shown(&found));
}

#[test]
fn bytes_in_one_unit_of_which_not_all_bits_can_be_tried() {
    for sound in [active(20, 9000, 0), chunked(20, 9000)] {
        let at = positions(&sound)[5] + 7000;
        // A single one, and several.
        for bytes in [
            sound.damaged(|bytes| bytes[at] ^= 4),
            sound.damaged(|bytes| bytes[at..at + 3].copy_from_slice(&[1, 2, 3])),
        ] {
            let (_, found) = sound.explained(&bytes);
            assert_eq!(found.len(), 1, "{}", shown(&found));
            assert_eq!(found[0].reason, Reason::ChangedBytes, "{}", shown(&found));
            assert!(found[0].against.contains("not tried: most bits of the"));
        }
    }
}

#[test]
fn bytes_cut_out_of_the_beginning_of_a_record() {
    let sound = active(20, 300, 0);
    let at = positions(&sound)[5];
    for (place, missing) in [(0, 1), (6, 7), (2, 12)] {
        let bytes = sound.damaged(|bytes| {
            bytes.drain(at + place..at + place + missing);
        });
        let (_, found) = sound.explained(&bytes);
        assert_eq!(found.len(), 1, "{}", shown(&found));
        assert_eq!(found[0].reason, Reason::MissingBytes, "{}", shown(&found));
        let put_in = match missing {
            1 => "with 1 byte put in".to_owned(),
            missing => format!("with {missing} bytes put in"),
        };
        assert!(found[0].evidence.starts_with(&put_in), "{}", shown(&found));
    }
}

#[test]
fn a_file_that_was_copied_as_text() {
    for sound in [active(20, 200, 0), chunked(20, 200)] {
        let mut crlf = Vec::new();
        for byte in &sound.bytes {
            if *byte == b'\n' {
                crlf.push(b'\r');
            }
            crlf.push(*byte);
        }
        let (_, found) = sound.explained(&crlf);
        let converted = |own: &Diagnosis| own.reason == Reason::TextConversion;
        assert!(
            found.iter().any(converted),
            "{}\n{}",
            sound.format.name,
            shown(&found)
        );
        let decoded = String::from_utf8_lossy(&sound.bytes).into_owned();
        let (_, found) = sound.explained(decoded.as_bytes());
        assert!(
            found.iter().all(|own| own.reason == Reason::Reencoded),
            "{}\n{}",
            sound.format.name,
            shown(&found)
        );
    }
}

#[test]
fn what_was_written_so() {
    let sound = active(5, 50, 0);
    let mut bytes = sound.bytes.clone();
    let mut foreign = uuid(9000);
    foreign[6] = 0x40 | foreign[6] & 0xf;
    format_active::encode(&mut bytes, &Key::DEFAULT, &foreign, b"v4", b"value").unwrap();
    assert_reason(&sound, &bytes, Reason::AsWritten);
    let sound = chunked(3, 50);
    let mut bytes = sound.bytes.clone();
    let payload = common::chunked::frame(b"");
    let header = common::chunked::header(0x40, payload.len().try_into().unwrap(), 100, 0);
    bytes.extend([header, payload].concat());
    assert_reason(&sound, &bytes, Reason::AsWritten);
}

#[test]
fn an_oplog_of_another_dialect() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/vectors/autobase/real-plain-c.oplog"
    );
    let bytes = std::fs::read(path).unwrap();
    let options = Options::default().format(&oplog::FORMAT).strict(false);
    let (report, found) = explained(source(&bytes), &options);
    assert!(!report.is_sound() && !found.is_empty());
    assert!(
        found.iter().all(|own| own.reason == Reason::OtherDialect),
        "{}",
        shown(&found)
    );
}

/// The message decodes in the dialect `autobase` as well.
#[test]
fn an_oplog_that_decodes_is_not_of_another_dialect() {
    let options = Options::default()
        .format(&oplog::FORMAT)
        .dialect(Dialect::Draft11)
        .strict(false);
    let (_, found) = explained(
        source(b"\x0a\x00\x01\x01\x01\x01\x00\x00\x00\x00\x00"),
        &options,
    );
    let reasons: Vec<_> = found.iter().map(|own| own.reason).collect();
    assert_eq!(reasons, [Reason::LostReference], "{}", shown(&found));
}

#[test]
fn an_entry_that_is_wrong_itself_moves_nothing() {
    // An offset of several damaged bits, one that is a little more, and the same entry twice.
    let sound = sealed(8, 60, true);
    let offset = sound.damaged(|bytes| bytes[24 * 3 + 22..24 * 4].copy_from_slice(&[0x7f, 0x35]));
    let near = sound.damaged(|bytes| bytes[24 + 23] += 33);
    let twice = sound.damaged(|bytes| bytes.copy_within(24 * 3..24 * 4, 24 * 4));
    for bytes in [offset, near, twice] {
        let (report, found) = sound.explained(&bytes);
        assert!(!report.is_sound() && !found.is_empty());
        let is_moved =
            |own: &Diagnosis| matches!(own.reason, Reason::InsertedBytes | Reason::MissingBytes);
        assert!(!found.iter().any(is_moved), "{}", shown(&found));
    }
}

/// A limited number of entries of a table of contents is read for one range, so the count of a partition with more
/// tenants is unknown.
#[test]
fn a_count_is_proposed_only_where_all_tenants_were_counted() {
    let count_of = |bytes: &[u8], tenants: u32| {
        let count = tenants.to_be_bytes();
        (10..bytes.len())
            .rfind(|at| bytes[*at..].starts_with(&count))
            .unwrap()
    };
    for (count, is_known) in [(1000, true), ((1 << 16) + 5, false)] {
        let sound = tenants(count);
        let at = count_of(&sound.bytes, count);
        let bytes = sound.damaged(|bytes| bytes[at + 3] ^= 1);
        let (_, found) = sound.explained(&bytes);
        let proposed = repairs(&found);
        assert!(!found.is_empty());
        let expected: &[_] = if is_known {
            &[(at as u64 + 3, sound.bytes[at + 3])]
        } else {
            &[]
        };
        let proposed: Vec<_> = proposed.iter().map(|own| (own.offset, own.new)).collect();
        assert_eq!(proposed, expected, "{}", shown(&found));
    }
}
