//! `uuid 16 ‖ typLen u8 ‖ type ‖ msgLen u32 ‖ message ‖ checksum u64`

use std::ops::Range;

use seglake::checksum::{Key, hash};

use super::{Draw, off, put, uint_usize};

/// The ranges of records by their own lengths, whatever they contain.
fn records(bytes: &[u8]) -> Vec<Range<usize>> {
    let (mut records, mut at) = (Vec::new(), 0);
    while let Some(type_len) = uint_usize::<1>(bytes, at + 16) {
        let length_at = at + 17 + type_len;
        let end = uint_usize::<4>(bytes, length_at).map(|len| length_at + 4 + len + 8);
        let Some(end) = end.filter(|end| *end <= bytes.len()) else {
            break;
        };
        records.push(at..end);
        at = end;
    }
    records
}

/// Changes one record's length or time.
pub(super) fn edit(bytes: &mut [u8], draw: &mut Draw) {
    let records = records(bytes);
    if records.is_empty() {
        return;
    }
    let record = draw.of_these(&records).clone();
    let length_at = record.start + 17 + usize::from(bytes[record.start + 16]);
    match draw.below(4) {
        0 => {
            let len = uint_usize::<4>(bytes, length_at).unwrap_or_default();
            put::<4>(bytes, length_at, off(len as u64, draw));
        }
        1 => bytes[record.start + 16] = bytes[record.start + 16].wrapping_add(1),
        2 => {
            bytes[record.start + draw.below(16)] = u8::try_from(draw.below(256)).unwrap_or_default()
        }
        _ => {
            let uuid = bytes[draw.of_these(&records).start..][..16].to_vec();
            bytes[record.start..record.start + 16].copy_from_slice(&uuid);
        }
    }
}

/// Makes the checksums of all records match, or of all but some. Sometimes it also makes the UUIDs ascend.
pub(super) fn mend(bytes: &mut [u8], draw: &mut Draw) {
    let (ascend, spare) = (draw.below(4) == 0, draw.below(3) == 0);
    for (tick, record) in (1_u64..).zip(records(bytes)) {
        if record.len() < 29 || bytes[record.clone()].iter().all(|byte| *byte == 0) {
            continue;
        }
        if ascend {
            put::<8>(bytes, record.start, 0x1eea_0000_0000_6000 + (tick << 16));
            bytes[record.start + 8] = 0x80;
        }
        if !spare || draw.below(4) > 0 {
            let covered = record.start..record.end - 8;
            let checksum = hash(&Key::DEFAULT, &bytes[covered]);
            put::<8>(bytes, record.end - 8, checksum);
        }
    }
}
