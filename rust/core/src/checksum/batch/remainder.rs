//! The last packet of a message, of 1 to 32 bytes, without branches: which byte goes where is looked up.

use super::simd::{HALF_BYTES, Half, PACKET_BYTES, Packet};

/// What the last packet is made with.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Remainder {
    /// For each byte of the packet: which one to take of those that [`halves`] gives, within the same half. 0x80: none, zero.
    pub(super) shuffle: Packet,
    /// What the state is changed by: the length as eight little-endian 32-bit numbers. A packet that is full changes nothing.
    pub(super) size: Packet,
}

/// For a last packet of each length, 1 to 32 bytes.
static REMAINDERS: [Remainder; PACKET_BYTES] = remainders();

/// The length of the last packet of a message of `len` bytes: 1 to 32.
#[inline(always)]
pub(super) fn last_packet_bytes(len: usize) -> usize {
    len.wrapping_sub(1) % PACKET_BYTES + 1
}

impl Remainder {
    /// That for a last packet of `len` bytes, 1 to 32.
    #[inline(always)]
    pub(super) fn of(len: usize) -> &'static Self {
        #[allow(clippy::indexing_slicing)] // in bounds whatever the length
        &REMAINDERS[len.wrapping_sub(1) % PACKET_BYTES]
    }
}

/// The bytes that the last packet is made of: the message's last 16, and before them the 16 that the packet begins with, or
/// where it has fewer, the last 16 once more. So nothing is read that is not of the message, which has to have 16 bytes.
#[inline(always)]
pub(super) fn halves(message: &[u8]) -> Option<[&Half; 2]> {
    let last = last_packet_bytes(message.len()).max(HALF_BYTES);
    let begin = message
        .get(message.len().checked_sub(last)?..)?
        .first_chunk()?;
    Some([begin, message.last_chunk()?])
}

#[allow(clippy::indexing_slicing, clippy::cast_possible_truncation)] // evaluated by the compiler, which would complain
const fn remainders() -> [Remainder; PACKET_BYTES] {
    let none = Remainder {
        shuffle: [0x80; PACKET_BYTES],
        size: [0; PACKET_BYTES],
    };
    let mut all = [none; PACKET_BYTES];
    let mut len = 1;
    while len <= PACKET_BYTES {
        let whole = len & !3; // as far as there are 32-bit words
        let shuffle = &mut all[len - 1].shuffle;
        let mut at = 0;
        if len < HALF_BYTES {
            let begin = HALF_BYTES - len;
            while at < whole {
                shuffle[at] = (begin + at) as u8;
                at += 1;
            }
            let rest = len & 3;
            if rest != 0 {
                shuffle[16] = (begin + whole) as u8;
                shuffle[17] = (begin + whole + (rest >> 1)) as u8;
                shuffle[18] = (begin + whole + rest - 1) as u8;
            }
        } else {
            while at < HALF_BYTES {
                shuffle[at] = at as u8;
                at += 1;
            }
            while at < whole {
                shuffle[at] = (at + HALF_BYTES - len) as u8;
                at += 1;
            }
            // The last four bytes, whatever of them has been there already.
            at = 28;
            while at < PACKET_BYTES {
                shuffle[at] = (at - HALF_BYTES) as u8;
                at += 1;
            }
        }
        let mut word = 0;
        while word < PACKET_BYTES {
            all[len - 1].size[word] = (len % PACKET_BYTES) as u8;
            word += 4;
        }
        len += 1;
    }
    all
}
