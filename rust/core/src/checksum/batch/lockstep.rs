//! HighwayHash-64 of several messages in step with each other, over whatever vectors there are.
//!
//! Everything is inlined into the kernels' functions, which alone have the target features.

use super::remainder::{self, Remainder};
use super::simd::{HALF_BYTES, PACKET_BYTES, Packet, Simd};
use super::window::Window;
use crate::checksum::Key;

/// The shortest message that is hashed here: the last packet is made of the message's last 16 bytes.
pub(super) const MIN_BYTES: usize = HALF_BYTES;

/// A message's packets before the last one, which has 1 to 32 bytes.
pub(super) const fn whole_packets(len: usize) -> usize {
    len.saturating_sub(1) / PACKET_BYTES
}

const MUL0: [u64; 4] = [
    0xdbe6_d5d5_fe4c_ce2f,
    0xa409_3822_299f_31d0,
    0x1319_8a2e_0370_7344,
    0x243f_6a88_85a3_08d3,
];

const MUL1: [u64; 4] = [
    0x3bd3_9e10_cb0e_f593,
    0xc0ac_f169_b5f1_8a8c,
    0xbe54_66cf_34e9_0c6c,
    0x4528_21e6_38d0_1377,
];

/// The state of as many messages as a vector holds.
#[derive(Clone, Copy)]
pub(super) struct State<V> {
    v0: V,
    v1: V,
    mul0: V,
    mul1: V,
}

impl<V: Copy> State<V> {
    /// That of messages nothing is hashed of yet.
    #[inline(always)]
    pub(super) fn new<S: Simd<M, Vector = V>, const M: usize>(simd: S, key: &Key) -> Self {
        let (mut v0, mut v1) = (MUL0, MUL1);
        for ((v0, v1), key) in v0.iter_mut().zip(&mut v1).zip(key.words()) {
            *v0 ^= key;
            *v1 ^= key.rotate_left(32);
        }
        Self {
            v0: simd.splat(v0),
            v1: simd.splat(v1),
            mul0: simd.splat(MUL0),
            mul1: simd.splat(MUL1),
        }
    }

    #[inline(always)]
    fn update<S: Simd<M, Vector = V>, const M: usize>(&mut self, simd: S, packet: V) {
        // The packet first: it is there before `mul0` is.
        self.v1 = simd.add(simd.add(self.v1, packet), self.mul0);
        self.mul0 = simd.xor(self.mul0, simd.mul_low_high(self.v1, self.v0));
        self.v0 = simd.add(self.v0, self.mul1);
        self.mul1 = simd.xor(self.mul1, simd.mul_low_high(self.v0, self.v1));
        self.v0 = simd.add(self.v0, zipper_merge(simd, self.v1));
        self.v1 = simd.add(self.v1, zipper_merge(simd, self.v0));
    }

    /// Takes in the next packet of the messages that have one.
    #[inline(always)]
    fn update_some<S: Simd<M, Vector = V>, const M: usize>(
        &mut self,
        simd: S,
        packets: [Option<&Packet>; M],
    ) {
        let mask = simd.mask(packets.map(|packet| packet.is_some()));
        let old = *self;
        self.update(
            simd,
            simd.load(packets.map(|packet| packet.unwrap_or(&[0; PACKET_BYTES]))),
        );
        self.v0 = simd.select(mask, self.v0, old.v0);
        self.v1 = simd.select(mask, self.v1, old.v1);
        self.mul0 = simd.select(mask, self.mul0, old.mul0);
        self.mul1 = simd.select(mask, self.mul1, old.mul1);
    }

    /// Takes in the last packet of each message.
    #[inline(always)]
    fn update_last<S: Simd<M, Vector = V>, const M: usize>(&mut self, simd: S, messages: [&[u8]; M]) {
        let mut halves = [[&[0; HALF_BYTES]; 2]; M];
        let mut shuffles = [&[0; PACKET_BYTES]; M];
        let mut sizes = [&[0; PACKET_BYTES]; M];
        for (((message, halves), shuffle), size) in
            messages.iter().zip(&mut halves).zip(&mut shuffles).zip(&mut sizes)
        {
            let len = message.len() - whole_packets(message.len()) * PACKET_BYTES;
            let remainder = Remainder::of(len);
            *halves = remainder::halves(message, len).unwrap_or(*halves);
            *shuffle = &remainder.shuffle;
            *size = &remainder.size;
        }
        let sizes = simd.load(sizes);
        self.v0 = simd.add(self.v0, sizes);
        self.v1 = simd.rotate(self.v1, sizes);
        self.update(simd, simd.shuffle(simd.load_halves(halves), simd.load(shuffles)));
    }

    #[inline(always)]
    fn finish<S: Simd<M, Vector = V>, const M: usize>(mut self, simd: S) -> [u64; M] {
        for _ in 0..4 {
            self.update(simd, simd.permute(self.v0));
        }
        simd.first_lanes(simd.add(
            simd.add(self.v0, self.v1),
            simd.add(self.mul0, self.mul1),
        ))
    }
}

/// The bytes of two neighbouring lanes, mixed.
#[inline(always)]
fn zipper_merge<S: Simd<M>, const M: usize>(simd: S, a: S::Vector) -> S::Vector {
    const ORDER: [u64; 2] = [0x000f_010e_0502_0c03, 0x0708_0609_0d0a_040b];
    let [low, high] = ORDER;
    simd.shuffle(a, simd.splat([low, high, low, high]))
}

/// The hashes of messages of at least [`MIN_BYTES`] each, in descending order of their whole packets.
#[inline(always)]
pub(super) fn hash_lanes<S: Simd<M>, const M: usize, const N: usize>(
    simd: S,
    initial: State<S::Vector>,
    messages: [[&[u8]; M]; N],
) -> [[u64; M]; N] {
    let packets = messages.map(|messages| {
        messages.map(|message| {
            let whole = whole_packets(message.len());
            let (packets, _) = message.as_chunks().0.split_at_checked(whole).unwrap_or_default();
            packets
        })
    });
    let mut states = [initial; N];

    let together = packets.as_flattened().iter().map(|packets| packets.len()).min();
    let together = together.unwrap_or_default();
    // Cut to one length, so that the loop has one bound to look at.
    #[allow(clippy::indexing_slicing)] // no slice is shorter than the shortest
    let common = packets.map(|packets| packets.map(|packets: &[Packet]| &packets[..together]));
    for round in 0..together {
        for (state, common) in states.iter_mut().zip(&common) {
            let mut next = [&[0; PACKET_BYTES]; M];
            for (next, common) in next.iter_mut().zip(common) {
                if let Some(packet) = common.get(round) {
                    *next = packet;
                }
            }
            state.update(simd, simd.load(next));
        }
    }
    // Then the longer ones, which come first: fewer and fewer vectors.
    let mut round = together;
    if N >= 4 {
        round = step_first::<S, M, N, 4>(simd, &mut states, &packets, round);
    }
    if N >= 3 {
        round = step_first::<S, M, N, 3>(simd, &mut states, &packets, round);
    }
    if N >= 2 {
        round = step_first::<S, M, N, 2>(simd, &mut states, &packets, round);
    }
    step_first::<S, M, N, 1>(simd, &mut states, &packets, round);

    let mut hashes = [[0; M]; N];
    for (state, messages) in states.iter_mut().zip(messages) {
        state.update_last(simd, messages);
    }
    for (hashes, state) in hashes.iter_mut().zip(states) {
        *hashes = state.finish(simd);
    }
    hashes
}

/// Takes in the packets from `round` on of the first `ACTIVE` vectors, as far as the last of those has any.
#[inline(always)]
fn step_first<S: Simd<M>, const M: usize, const N: usize, const ACTIVE: usize>(
    simd: S,
    states: &mut [State<S::Vector>; N],
    packets: &[[&[Packet]; M]; N],
    mut round: usize,
) -> usize {
    let end = packets
        .get(ACTIVE - 1)
        .and_then(|packets| packets.iter().map(|packets| packets.len()).max())
        .unwrap_or_default();
    while round < end {
        for (state, packets) in states.iter_mut().zip(packets).take(ACTIVE) {
            let mut next = [None; M];
            for (next, packets) in next.iter_mut().zip(packets) {
                *next = packets.get(round);
            }
            state.update_some(simd, next);
        }
        round += 1;
    }
    round
}

/// Hashes the messages of a window, `N` vectors of `M` messages at a time, and asks for what comes behind it meanwhile.
#[inline(always)]
pub(super) fn hash_window<S: Simd<M>, const M: usize, const N: usize>(
    simd: S,
    key: &Key,
    window: &Window<'_>,
    hashes: &mut [u64],
) {
    let initial = State::new(simd, key);
    let groups = window.order.chunks(M * N);
    let mut ahead = window.ahead.chunks(window.ahead.len().div_ceil(groups.len().max(1)).max(1));
    for indices in groups {
        for line in ahead.next().unwrap_or_default().iter().step_by(CACHE_LINE_BYTES) {
            simd.prefetch(line);
        }
        match indices.len().div_ceil(M) {
            1 => hash_group::<S, M, 1>(simd, initial, window, indices, hashes),
            2 if N > 2 => hash_group::<S, M, 2>(simd, initial, window, indices, hashes),
            3 if N > 3 => hash_group::<S, M, 3>(simd, initial, window, indices, hashes),
            _ => hash_group::<S, M, N>(simd, initial, window, indices, hashes),
        }
    }
}

const CACHE_LINE_BYTES: usize = 64;

/// Hashes the messages of these indices. Where they do not fill the vectors, the last one is hashed several times.
#[inline(always)]
fn hash_group<S: Simd<M>, const M: usize, const N: usize>(
    simd: S,
    initial: State<S::Vector>,
    window: &Window<'_>,
    indices: &[u16],
    hashes: &mut [u64],
) {
    let mut lanes = [[0; M]; N];
    let mut messages = [[[].as_slice(); M]; N];
    let mut last = 0;
    let mut indices = indices.iter();
    for (lane, message) in lanes.as_flattened_mut().iter_mut().zip(messages.as_flattened_mut()) {
        last = indices.next().map_or(last, |index| usize::from(*index));
        *lane = last;
        *message = window.message(last);
    }
    let found = hash_lanes(simd, initial, messages);
    for (lane, found) in lanes.as_flattened().iter().zip(found.as_flattened()) {
        if let Some(hash) = hashes.get_mut(*lane) {
            *hash = *found;
        }
    }
}
