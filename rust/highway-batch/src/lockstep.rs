//! HighwayHash-64 of several messages in lockstep, over any type of vectors.
//!
//! Everything is inlined into the kernels' functions, because only those have the target features. The result is one
//! function with few registers. So invariants are asserted with a default value that needs no branch.
#![allow(unsafe_code)]

use crate::Key;
use crate::Messages;
use crate::invariant::Always;
use crate::message::Message;
use crate::simd::{HALF_BYTES, Half, PACKET_BYTES, Packet, Simd};
use crate::window::{Scratch, Window};

/// The bytes of a cache line of an x86-64 processor.
const CACHE_LINE_BYTES: usize = 64;

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

/// The states of the messages of `N` vectors.
///
/// Each operation is done for all vectors before the next one. That keeps the processor's units busy.
#[derive(Clone, Copy)]
pub(crate) struct States<V, const N: usize> {
    v0: [V; N],
    v1: [V; N],
    mul0: [V; N],
    mul1: [V; N],
}

impl<V: Copy, const N: usize> States<V, N> {
    /// The states before any input.
    #[inline(always)]
    fn new<S: Simd<M, Vector = V>, const M: usize>(simd: S, key: &Key) -> Self {
        let (v0, v1) = begin(simd, [key; M]);
        Self {
            v0: [v0; N],
            v1: [v1; N],
            mul0: [simd.splat(MUL0); N],
            mul1: [simd.splat(MUL1); N],
        }
    }

    /// The first vectors alone.
    #[inline(always)]
    fn first<const ACTIVE: usize>(&self) -> Option<States<V, ACTIVE>> {
        Some(States {
            v0: *self.v0.first_chunk()?,
            v1: *self.v1.first_chunk()?,
            mul0: *self.mul0.first_chunk()?,
            mul1: *self.mul1.first_chunk()?,
        })
    }

    /// Writes the first vectors back.
    #[inline(always)]
    fn set_first<const ACTIVE: usize>(&mut self, first: &States<V, ACTIVE>) {
        for (all, first) in [
            (&mut self.v0, first.v0),
            (&mut self.v1, first.v1),
            (&mut self.mul0, first.mul0),
            (&mut self.mul1, first.mul1),
        ] {
            if let Some(part) = all.first_chunk_mut() {
                *part = first;
            }
        }
    }

    #[inline(always)]
    fn update<S: Simd<M, Vector = V>, const M: usize>(&mut self, simd: S, packets: [V; N]) {
        let Self { v0, v1, mul0, mul1 } = self;
        // The packet is added first: it is available before `mul0`.
        each(v1, &packets, |v1, packet| simd.add(v1, packet));
        each(v1, mul0, |v1, mul0| simd.add(v1, mul0));
        each2(mul0, v1, v0, |mul0, v1, v0| {
            simd.xor(mul0, simd.mul_low_high(v1, v0))
        });
        each(v0, mul1, |v0, mul1| simd.add(v0, mul1));
        each2(mul1, v0, v1, |mul1, v0, v1| {
            simd.xor(mul1, simd.mul_low_high(v0, v1))
        });
        each(v0, v1, |v0, v1| simd.add(v0, zipper_merge(simd, v1)));
        each(v1, v0, |v1, v0| simd.add(v1, zipper_merge(simd, v0)));
    }

    /// Takes in packet number `round` of the messages that have one.
    #[inline(always)]
    fn update_some<S: Simd<M, Vector = V>, const M: usize>(
        &mut self,
        simd: S,
        packets: &[[&[Packet]; M]; N],
        round: usize,
    ) {
        let old = *self;
        let mut masks = [simd.mask([false; M]); N];
        let mut next = self.v0;
        for ((mask, next), packets) in masks.iter_mut().zip(&mut next).zip(packets) {
            let mut has = [false; M];
            let mut packet = [&[0; PACKET_BYTES]; M];
            for ((has, packet), packets) in has.iter_mut().zip(&mut packet).zip(packets) {
                *has = round < packets.len();
                // A message without this packet may load any other: it is masked.
                *packet = packets.get(round).unwrap_or(packet);
            }
            *mask = simd.mask(has);
            *next = simd.load(packet);
        }
        self.update(simd, next);
        each2(&mut self.v0, &old.v0, &masks, |new, old, mask| {
            simd.select(mask, new, old)
        });
        each2(&mut self.v1, &old.v1, &masks, |new, old, mask| {
            simd.select(mask, new, old)
        });
        each2(&mut self.mul0, &old.mul0, &masks, |new, old, mask| {
            simd.select(mask, new, old)
        });
        each2(&mut self.mul1, &old.mul1, &masks, |new, old, mask| {
            simd.select(mask, new, old)
        });
    }

    /// Takes in the last packet of each message.
    #[inline(always)]
    fn update_last<S: Simd<M, Vector = V>, const M: usize>(
        &mut self,
        simd: S,
        messages: [[Message<'_>; M]; N],
    ) {
        let mut packets = self.v0;
        let mut sizes = self.v0;
        for ((packet, size), messages) in packets.iter_mut().zip(&mut sizes).zip(messages) {
            let remainders = messages.map(Message::remainder);
            let shuffle = simd.load(remainders.map(|remainder| &remainder.shuffle));
            *packet = simd.shuffle(simd.load_halves(messages.map(Message::halves)), shuffle);
            *size = simd.load(remainders.map(|remainder| &remainder.size));
        }
        each(&mut self.v0, &sizes, |v0, size| simd.add(v0, size));
        each(&mut self.v1, &sizes, |v1, size| simd.rotate(v1, size));
        self.update(simd, packets);
    }

    #[inline(always)]
    fn finish<S: Simd<M, Vector = V>, const M: usize>(mut self, simd: S) -> [[u64; M]; N] {
        for _ in 0..4 {
            let mut permuted = self.v0;
            for lanes in &mut permuted {
                *lanes = simd.permute(*lanes);
            }
            self.update(simd, permuted);
        }
        let mut hashes = [[0; M]; N];
        each(&mut self.v0, &self.v1, |v0, v1| simd.add(v0, v1));
        each(&mut self.mul0, &self.mul1, |mul0, mul1| {
            simd.add(mul0, mul1)
        });
        each(&mut self.v0, &self.mul0, |v0, mul0| simd.add(v0, mul0));
        for (hashes, lanes) in hashes.iter_mut().zip(self.v0) {
            *hashes = simd.first_lanes(lanes);
        }
        hashes
    }
}

/// Replaces each item of `a` by `f` of it and its counterpart.
#[inline(always)]
fn each<A: Copy, B: Copy, const N: usize>(a: &mut [A; N], b: &[B; N], f: impl Fn(A, B) -> A) {
    for (a, b) in a.iter_mut().zip(b) {
        *a = f(*a, *b);
    }
}

/// Replaces each item of `a` by `f` of it and its two counterparts.
#[inline(always)]
fn each2<A: Copy, B: Copy, C: Copy, const N: usize>(
    a: &mut [A; N],
    b: &[B; N],
    c: &[C; N],
    f: impl Fn(A, B, C) -> A,
) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = f(*a, *b, *c);
    }
}

/// The states v0 and v1 of a vector of messages with these keys, before any input.
#[inline(always)]
fn begin<S: Simd<M>, const M: usize>(simd: S, keys: [&Key; M]) -> (S::Vector, S::Vector) {
    /// The order of bytes that exchanges the halves of two lanes.
    const HALVES: [u64; 2] = [0x0302_0100_0706_0504, 0x0b0a_0908_0f0e_0d0c];
    let [low, high] = HALVES;
    let halves = simd.splat([low, high, low, high]);
    let mut lanes = [&[0; 4]; M];
    for (lanes, key) in lanes.iter_mut().zip(keys) {
        *lanes = key.lanes();
    }
    let keys = simd.load_lanes(lanes);
    let v0 = simd.xor(simd.splat(MUL0), keys);
    (v0, simd.xor(simd.splat(MUL1), simd.shuffle(keys, halves)))
}

// The functions below are loops. Array functions and their closures are not always inlined, and then they lack the
// kernel's instructions.

/// Packet number `round` of each message, in place of `vectors`. All messages have that many packets.
#[inline(always)]
fn load<S: Simd<M>, const M: usize, const N: usize>(
    simd: S,
    messages: &[[&[Packet]; M]; N],
    round: usize,
    mut vectors: [S::Vector; N],
) -> [S::Vector; N] {
    for (vector, messages) in vectors.iter_mut().zip(messages) {
        let mut next = [&[0; PACKET_BYTES]; M];
        for (next, packets) in next.iter_mut().zip(messages) {
            #[allow(clippy::indexing_slicing)] // all have the one length
            let packet = &packets[round];
            *next = packet;
        }
        *vector = simd.load(next);
    }
    vectors
}

/// The first packet of each message, with its first half from elsewhere, in place of `vectors`.
#[inline(always)]
fn load_first<S: Simd<M>, const M: usize, const N: usize>(
    simd: S,
    messages: &[[&[Packet]; M]; N],
    heads: &[[&Half; M]; N],
    mut vectors: [S::Vector; N],
) -> Option<[S::Vector; N]> {
    for ((vector, messages), heads) in vectors.iter_mut().zip(messages).zip(heads) {
        let mut next = [[&[0; HALF_BYTES]; 2]; M];
        for ((next, packets), head) in next.iter_mut().zip(messages).zip(heads) {
            *next = [*head, packets.first()?.last_chunk()?];
        }
        *vector = simd.load_halves(next);
    }
    Some(vectors)
}

/// The bytes of two neighbouring lanes, mixed.
#[inline(always)]
fn zipper_merge<S: Simd<M>, const M: usize>(simd: S, a: S::Vector) -> S::Vector {
    const ORDER: [u64; 2] = [0x000f_010e_0502_0c03, 0x0708_0609_0d0a_040b];
    let [low, high] = ORDER;
    simd.shuffle(a, simd.splat([low, high, low, high]))
}

/// The hashes of messages in descending order of their whole packets. `None` if they are not in that order. Where there
/// are heads, each message has at least one whole packet, and its head replaces the first half of that. Where each
/// message has a key, that replaces the one key.
#[inline(always)]
pub(crate) fn hash_lanes<S: Simd<M>, const M: usize, const N: usize>(
    simd: S,
    key: &Key,
    messages: [[Message<'_>; M]; N],
    heads: Option<[[&Half; M]; N]>,
    keys: Option<[[&Key; M]; N]>,
    ahead: &mut Ahead<'_>,
) -> Option<[[u64; M]; N]> {
    let longest = messages.as_flattened().first()?.whole_packets();
    let together = messages.as_flattened().last()?.whole_packets();
    // All slices get one length, so that the loop has one bounds check.
    let mut common = [[[].as_slice(); M]; N];
    for (common, message) in common
        .as_flattened_mut()
        .iter_mut()
        .zip(messages.as_flattened())
    {
        *common = message.packets(together)?;
    }
    let mut states = States::<_, N>::new(simd, key);
    if let Some(keys) = keys {
        for ((v0, v1), keys) in states.v0.iter_mut().zip(&mut states.v1).zip(keys) {
            (*v0, *v1) = begin(simd, keys);
        }
    }
    let mut begun = 0;
    if let Some(heads) = heads {
        ahead.prefetch::<S, M, N>(simd);
        let packets = load_first(simd, &common, &heads, states.v0)?;
        states.update(simd, packets);
        begun = 1;
    }
    for round in begun..together {
        ahead.prefetch::<S, M, N>(simd);
        let packets = load(simd, &common, round, states.v0);
        states.update(simd, packets);
    }
    if longest > together {
        step_longer(simd, &mut states, messages, together);
    }
    ahead.prefetch::<S, M, N>(simd);
    states.update_last(simd, messages);
    Some(states.finish(simd))
}

/// Takes in the packets from `round` on of longer messages, with fewer and fewer vectors.
#[inline(always)]
fn step_longer<S: Simd<M>, const M: usize, const N: usize>(
    simd: S,
    states: &mut States<S::Vector, N>,
    messages: [[Message<'_>; M]; N],
    mut round: usize,
) {
    let packets = messages.map(|messages| {
        messages.map(|message| message.packets(message.whole_packets()).unwrap_or_default())
    });
    if N >= 4 {
        round = step_first::<S, M, N, 4>(simd, states, &packets, round);
    }
    if N >= 3 {
        round = step_first::<S, M, N, 3>(simd, states, &packets, round);
    }
    if N >= 2 {
        round = step_first::<S, M, N, 2>(simd, states, &packets, round);
    }
    step_first::<S, M, N, 1>(simd, states, &packets, round);
}

/// Takes in the packets from `round` on of the first `ACTIVE` vectors, up to the end of the shortest of them.
#[inline(always)]
fn step_first<S: Simd<M>, const M: usize, const N: usize, const ACTIVE: usize>(
    simd: S,
    states: &mut States<S::Vector, N>,
    packets: &[[&[Packet]; M]; N],
    mut round: usize,
) -> usize {
    let (Some(mut first), Some(packets)) =
        (states.first::<ACTIVE>(), packets.first_chunk::<ACTIVE>())
    else {
        return round;
    };
    let last = packets
        .last()
        .map(|packets| packets.iter().map(|packets| packets.len()).max());
    let end = last.flatten().unwrap_or_default();
    while round < end {
        first.update_some(simd, packets, round);
        round += 1;
    }
    states.set_first(&first);
    round
}

/// Hashes messages, window after window. The first `HEAD` bytes of each are its head.
#[inline(always)]
pub(crate) fn hash_windows<
    S: Simd<M>,
    const M: usize,
    const N: usize,
    const HEAD: usize,
    const KEYED: bool,
>(
    simd: S,
    key: &Key,
    mut messages: Messages<'_>,
    scratch: &mut Scratch,
    mut hashes: &mut [u64],
) {
    while !messages.extents.is_empty() {
        let (window, later) = scratch.window::<HEAD>(messages);
        hash_window::<S, M, N, HEAD, KEYED>(simd, key, &window, hashes);
        hash_singly(key, &window, window.others(), hashes);
        let done = window.messages().extents.len();
        hashes = hashes.get_mut(done..).always("a place for each hash");
        messages = later;
    }
}

/// Hashes the messages of a window, `N` vectors of `M` messages at a time. Meanwhile it prefetches the bytes after the
/// window.
#[inline(always)]
fn hash_window<S: Simd<M>, const M: usize, const N: usize, const HEAD: usize, const KEYED: bool>(
    simd: S,
    key: &Key,
    window: &Window<'_, HEAD>,
    hashes: &mut [u64],
) {
    let mut ahead = Ahead(window.ahead());
    let (vectors, _) = window.order().as_chunks::<M>();
    let (groups, _) = vectors.as_chunks::<N>();
    for group in groups {
        hash_group::<S, M, N, HEAD, KEYED>(simd, key, window, group, &mut ahead, hashes);
    }
    let rest = window
        .order()
        .get(groups.len() * M * N..)
        .unwrap_or_default();
    match rest.len().div_ceil(M) {
        0 => {}
        1 => hash_rest::<S, M, 1, HEAD, KEYED>(simd, key, window, rest, hashes),
        2 if N > 2 => hash_rest::<S, M, 2, HEAD, KEYED>(simd, key, window, rest, hashes),
        3 if N > 3 => hash_rest::<S, M, 3, HEAD, KEYED>(simd, key, window, rest, hashes),
        _ => hash_rest::<S, M, N, HEAD, KEYED>(simd, key, window, rest, hashes),
    }
}

/// Hashes the messages of these indices of the window's order. They do not fill the vectors, so the last one is hashed
/// several times.
#[inline(always)]
fn hash_rest<S: Simd<M>, const M: usize, const N: usize, const HEAD: usize, const KEYED: bool>(
    simd: S,
    key: &Key,
    window: &Window<'_, HEAD>,
    indices: &[u16],
    hashes: &mut [u64],
) {
    let Some(last) = indices.last() else { return };
    let mut filled = [[*last; M]; N];
    for (place, index) in filled.as_flattened_mut().iter_mut().zip(indices) {
        *place = *index;
    }
    hash_group::<S, M, N, HEAD, KEYED>(simd, key, window, &filled, &mut Ahead(&[]), hashes);
}

/// Hashes the messages of these indices of the window's order.
#[inline(always)]
fn hash_group<S: Simd<M>, const M: usize, const N: usize, const HEAD: usize, const KEYED: bool>(
    simd: S,
    key: &Key,
    window: &Window<'_, HEAD>,
    indices: &[[u16; M]; N],
    ahead: &mut Ahead<'_>,
    hashes: &mut [u64],
) {
    let mut messages = [[Message::default(); M]; N];
    let mut heads = [[&[0; HALF_BYTES]; M]; N];
    let mut keys = [[key; M]; N];
    let all = messages.as_flattened_mut().iter_mut();
    let all = all.zip(heads.as_flattened_mut());
    let all = all.zip(keys.as_flattened_mut());
    for (((message, head), key_of_it), index) in all.zip(indices.as_flattened()) {
        // SAFETY: the indices are from the window's order.
        let Some(found) = (unsafe { window.message(*index) }) else {
            return hash_singly(key, window, indices.as_flattened(), hashes);
        };
        *message = found;
        // Known when this is compiled: what looks for keys that are never there takes 2.7 % more instructions for short messages.
        let (index, given) = (usize::from(*index), window.messages());
        if HEAD > 0 {
            *head = given.heads.get(index).unwrap_or(head);
        }
        if KEYED {
            *key_of_it = given.keys.get(index).unwrap_or(key);
        }
    }
    let heads = (HEAD > 0).then_some(heads);
    let keys = KEYED.then_some(keys);
    let Some(found) = hash_lanes(simd, key, messages, heads, keys, ahead) else {
        return hash_singly(key, window, indices.as_flattened(), hashes);
    };
    for (index, found) in indices.as_flattened().iter().zip(found.as_flattened()) {
        if let Some(hash) = hashes.get_mut(usize::from(*index)) {
            *hash = *found;
        }
    }
}

/// Hashes one message after the other.
fn hash_singly<const HEAD: usize>(
    key: &Key,
    window: &Window<'_, HEAD>,
    indices: &[u16],
    hashes: &mut [u64],
) {
    for index in indices {
        let index = usize::from(*index);
        if let Some(hash) = hashes.get_mut(index) {
            *hash = window.messages().hash_singly(key, index);
        }
    }
}

/// Bytes that are hashed later and not prefetched yet.
pub(crate) struct Ahead<'a>(pub(crate) &'a [u8]);

impl Ahead<'_> {
    /// Prefetches as many bytes as are hashed meanwhile. More would delay the loads of those.
    #[inline(always)]
    fn prefetch<S: Simd<M>, const M: usize, const N: usize>(&mut self, simd: S) {
        if let Some((now, later)) = self.0.split_at_checked(M * N * PACKET_BYTES) {
            for line in now.iter().step_by(CACHE_LINE_BYTES) {
                simd.prefetch(line);
            }
            self.0 = later;
        }
    }
}
