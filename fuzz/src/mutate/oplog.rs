//! `(length uint ‖ message)*`. A uint is one byte, or a byte that says how many follow, least significant first.

use std::ops::Range;

use super::{Change, Draw, change_bytes};

/// The length at an offset, and how many bytes encode it.
fn length(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let width = match *bytes.get(at)? {
        byte @ ..=0xfc => return Some((byte.into(), 1)),
        0xfd => 2,
        0xfe => 4,
        0xff => 8,
    };
    let own = bytes.get(at + 1..at + 1 + width)?;
    let number = own
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte));
    Some((usize::try_from(number).ok()?, 1 + width))
}

fn put_length(out: &mut Vec<u8>, len: usize, is_wide: bool) {
    match u8::try_from(len) {
        Ok(byte @ ..=0xfc) if !is_wide => out.push(byte),
        _ => {
            out.push(0xfe);
            out.extend(u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
        }
    }
}

/// Messages with their lengths, and without.
fn messages(bytes: &[u8]) -> Vec<(Range<usize>, Range<usize>)> {
    let (mut messages, mut at) = (Vec::new(), 0);
    while let Some((len, width)) = length(bytes, at) {
        let body = at + width;
        let Some(end) = body.checked_add(len).filter(|end| *end <= bytes.len()) else {
            break;
        };
        messages.push((at..end, body..end));
        at = end;
    }
    messages
}

/// Changes a message and updates its length, or encodes its length with more bytes than it needs.
pub(super) fn edit(change: Change, bytes: &mut Vec<u8>, max: usize, draw: &mut Draw) {
    let messages = messages(bytes);
    if messages.is_empty() {
        return;
    }
    let (whole, body) = draw.of_these(&messages).clone();
    let mut message = bytes[body].to_vec();
    let is_wide = draw.below(8) == 0;
    if !is_wide {
        change_bytes(change, &mut message, max, draw);
    }
    let mut framed = Vec::new();
    put_length(&mut framed, message.len(), is_wide);
    framed.extend(message);
    bytes.splice(whole, framed);
}
