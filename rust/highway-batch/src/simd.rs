//! The vector operations that the kernels provide. The algorithm is written once over them.

/// The bytes that HighwayHash takes in at once.
pub(crate) const PACKET_BYTES: usize = 32;

/// Half of a packet: byte shuffles stay within it.
pub(crate) const HALF_BYTES: usize = PACKET_BYTES / 2;

/// One packet.
pub(crate) type Packet = [u8; PACKET_BYTES];

/// One half of a packet.
pub(crate) type Half = [u8; HALF_BYTES];

/// Vectors with four 64-bit lanes for each of `M` messages. A value of the type proves that the processor has the
/// instructions, which makes these functions safe to call.
///
/// All are `#[inline(always)]`: they become instructions only inside a function with the right target features.
pub(crate) trait Simd<const M: usize>: Copy {
    /// `M` times four 64-bit lanes.
    type Vector: Copy;
    /// One bit for each of the `M` messages.
    type Mask: Copy;

    /// The same four lanes for all messages.
    fn splat(self, lanes: [u64; 4]) -> Self::Vector;

    /// The four lanes of each message.
    fn load_lanes(self, lanes: [&[u64; 4]; M]) -> Self::Vector;

    /// One packet of each message.
    fn load(self, packets: [&Packet; M]) -> Self::Vector;

    /// One packet of each message, whose two halves are in two places.
    fn load_halves(self, packets: [[&Half; 2]; M]) -> Self::Vector;

    /// Adds 64-bit lanes, wrapping around.
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Exclusive or.
    fn xor(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// The lower 32 bits of the lanes of `a` times the upper 32 bits of those of `b`.
    fn mul_low_high(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Each 32-bit part of `a` rotated left by the number, 0 to 31, in its place in `by`.
    fn rotate(self, a: Self::Vector, by: Self::Vector) -> Self::Vector;

    /// Bytes of `a` within each half packet in the order `by` gives; where that has its top bit set, zero.
    fn shuffle(self, a: Self::Vector, by: Self::Vector) -> Self::Vector;

    /// The lanes of each message in the order 2, 3, 0, 1, each with its 32-bit halves exchanged.
    fn permute(self, a: Self::Vector) -> Self::Vector;

    /// The mask of the messages that are `true`.
    fn mask(self, messages: [bool; M]) -> Self::Mask;

    /// `a` for messages of the mask, `b` for others.
    fn select(self, mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// The first lane of each message.
    fn first_lanes(self, a: Self::Vector) -> [u64; M];

    /// Prefetches the cache line of a byte.
    fn prefetch(self, byte: &u8);
}
