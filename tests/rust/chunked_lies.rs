//! Look-ups in chunked segments whose headers or indexes verify and are false.

use crate::common::chunked::{lenient, push_chunk, push_records, segment, value};
use crate::common::source;
use seglake::Error;
use seglake::format::chunked::{Item, build_index};
use seglake::format::{IndexSource, Options, RecordId, lookup};

/// The value of a message offset.
fn get(log: &[u8], options: &Options, offset: i64) -> seglake::Result<Option<Vec<u8>>> {
    let lookup = lookup(source(log), options)?;
    let mut found = None;
    lookup
        .get(&[RecordId::from(offset)])?
        .each(|hit| found = hit.map(|(rows, row)| rows.value(row).to_vec()));
    Ok(found)
}

#[test]
fn two_items_of_one_chunk_do_not_agree_on_where_it_is() {
    let log = segment(4, 3, 50);
    let mut items = Vec::new();
    let put = |item| {
        items.push(item);
        Ok(())
    };
    build_index(source(&log), &lenient(), put).unwrap();
    for item in &items {
        for others in [vec![*item; 4], [&items[..], &[*item; 2]].concat()] {
            let index: Vec<u8> = others.iter().flat_map(Item::encode).collect();
            let index = IndexSource::Source(source(&index));
            for strict in [true, false] {
                let options = lenient().index(index.clone()).strict(strict);
                for offset in 0..12 {
                    let found = get(&log, &options, offset).unwrap();
                    assert_eq!(found, Some(value(offset, 50)), "{item:?}");
                }
                assert_eq!(get(&log, &options, 12).unwrap(), None);
            }
        }
    }
}

#[test]
fn zeros_followed_by_other_bytes_confirm_no_header() {
    let mut log = Vec::new();
    push_chunk(&mut log, 1000, 1, b"no frame: the header lies");
    log.resize(log.len() + 0x80, 0);
    push_records(&mut log, 5, &[(7, b"here")]);
    assert_eq!(get(&log, &lenient(), 5).unwrap(), Some(b"here".to_vec()));
    let strict = lenient().strict(true);
    let Err(Error::Damage(damage)) = get(&log, &strict, 5) else {
        panic!("damage is in the way")
    };
    assert_eq!(damage.offset, 0);
    // Only zeros follow it, so it can hide nothing.
    log.truncate(0x80);
    log.resize(0x800, 0);
    assert_eq!(get(&log, &strict, 5).unwrap(), None);
}
