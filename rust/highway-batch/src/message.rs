//! The packets of a message: the whole ones, and the last one, of 1 to 32 bytes. The last one is made without branches,
//! by a table that says where each byte comes from.
#![allow(unsafe_code)]

use crate::simd::{HALF_BYTES, Half, PACKET_BYTES, Packet};

/// How to make the last packet.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Remainder {
    /// For each byte of the packet: its index in the same half of what [`Message::halves`] returns. 0x80 means zero.
    pub(crate) shuffle: Packet,
    /// What to add to the state: the length as eight little-endian 32-bit numbers; zero for a full packet.
    pub(crate) size: Packet,
}

/// How to make a last packet of each length, 1 to 32 bytes.
static REMAINDERS: [Remainder; PACKET_BYTES] = remainders();

/// A message that is long enough for the kernels, so that its last packet can be made of its last 16 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a>(&'a [u8]);

impl<'a> Message<'a> {
    /// The length of the shortest message.
    pub(crate) const MIN_BYTES: usize = HALF_BYTES;

    /// The length of the shortest message whose first half packet is elsewhere: its last packet contains nothing of
    /// that half.
    pub(crate) const MIN_HEADED_BYTES: usize = PACKET_BYTES + 1;

    /// The message, unless it is too short.
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= Self::MIN_BYTES).then_some(Self(bytes))
    }

    /// The number of packets before the last one, which has 1 to 32 bytes.
    #[inline(always)]
    pub(crate) fn whole_packets(self) -> usize {
        whole_packets(self.0.len())
    }

    /// The first `count` packets, if it has that many whole ones.
    #[inline(always)]
    pub(crate) fn packets(self, count: usize) -> Option<&'a [Packet]> {
        self.0.as_chunks().0.get(..count)
    }

    /// How to make the last packet.
    #[inline(always)]
    pub(crate) fn remainder(self) -> &'static Remainder {
        #[allow(clippy::indexing_slicing)] // in bounds whatever the length
        &REMAINDERS[self.0.len().wrapping_sub(1) % PACKET_BYTES]
    }

    /// The bytes of which the last packet is made: the message's last 16, and before them the 16 that the packet begins
    /// with, or the last 16 again if it has fewer. So only bytes of the message are read.
    #[inline(always)]
    pub(crate) fn halves(self) -> [&'a Half; 2] {
        let len = self.0.len();
        let last = len.wrapping_sub(1) % PACKET_BYTES + 1;
        // SAFETY: a message has at least 16 bytes. Both halves are taken from there if the last packet has at most 16.
        // If it has more, up to 32, they are bytes of the message too, and `begin` is where it begins.
        unsafe {
            let end = self.0.as_ptr().add(len - HALF_BYTES);
            let begin = self.0.as_ptr().add(len - last.max(HALF_BYTES));
            [&*begin.cast(), &*end.cast()]
        }
    }
}

impl Default for Message<'_> {
    fn default() -> Self {
        Self(&[0; Self::MIN_BYTES])
    }
}

/// The number of packets before the last one, which has 1 to 32 bytes, of a message of `len` bytes.
#[inline(always)]
pub(crate) const fn whole_packets(len: usize) -> usize {
    len.saturating_sub(1) / PACKET_BYTES
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
            // The last four bytes, of which some may be copied already.
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
