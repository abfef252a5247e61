//! `length u64 ‖ masked crc of length u32 ‖ data ‖ masked crc of data u32`, little-endian

use super::{Draw, off};

const HEADER: usize = 12;

/// Changes one record's length.
pub(super) fn edit(bytes: &mut [u8], draw: &mut Draw) {
    let starts = starts(bytes);
    if !starts.is_empty() {
        let (at, length) = *draw.of_these(&starts);
        let length = off(length as u64, draw).to_le_bytes();
        bytes[at..at + 8].copy_from_slice(&length);
    }
}

/// Makes the checksums of all records match.
pub(super) fn mend(bytes: &mut [u8]) {
    for (at, length) in starts(bytes) {
        for (from, to) in [(at, at + 8), (at + HEADER, at + HEADER + length)] {
            let crc = crc32c(&bytes[from..to]);
            let masked = crc.rotate_right(15).wrapping_add(0xa282_ead8);
            bytes[to..to + 4].copy_from_slice(&masked.to_le_bytes());
        }
    }
}

/// Where records begin by their own lengths, whatever they contain, and the lengths of their data.
fn starts(bytes: &[u8]) -> Vec<(usize, usize)> {
    let (mut starts, mut at) = (Vec::new(), 0);
    while let Some(length) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let length = u64::from_le_bytes(*length);
        let left = (bytes.len() - at) as u64;
        match length.checked_add(HEADER as u64 + 4) {
            Some(total) if total <= left => {
                let length = usize::try_from(length).unwrap();
                starts.push((at, length));
                at += HEADER + length + 4;
            }
            _ => break,
        }
    }
    starts
}

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 }
        })
    })
}
