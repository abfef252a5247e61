//! The vector operations that the kernels provide. The sums are written once over them.

/// Vectors of `N` bytes, each an element of the field. A value of the type proves that the processor has the
/// instructions, which makes these functions safe to call.
///
/// All are `#[inline(always)]`: they become instructions only inside a function with the right target features.
pub(crate) trait Simd<const N: usize>: Copy {
    /// `N` bytes.
    type Vector: Copy;
    /// A vector, made ready to be multiplied.
    type Ready: Copy;
    /// What multiplies by one factor, in memory.
    type Table: Copy;
    /// The same in registers.
    type Factor: Copy;

    /// The table of a factor.
    fn table(self, factor: u8) -> Self::Table;

    /// Loads a vector.
    fn load(self, bytes: &[u8; N]) -> Self::Vector;

    /// Stores a vector.
    fn store(self, vector: Self::Vector, bytes: &mut [u8; N]);

    /// Prefetches the cache line of a byte.
    fn prefetch(self, byte: &u8);

    /// Makes a vector ready to be multiplied by any factor.
    fn ready(self, vector: Self::Vector) -> Self::Ready;

    /// Loads a factor.
    fn factor(self, table: &Self::Table) -> Self::Factor;

    /// The sum and the product of `factor` and `ready`.
    fn multiply_add(
        self,
        sum: Self::Vector,
        factor: Self::Factor,
        ready: Self::Ready,
    ) -> Self::Vector;
}
