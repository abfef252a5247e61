//! Conversions of numbers that saturate. Each returns the largest value of the smaller type if the number is too large,
//! and its comment says why that is right.

/// The number, or else the largest of its type, which is `most`.
fn saturating<T>(number: impl TryInto<T>, most: T) -> T {
    number.try_into().unwrap_or(most)
}

/// A length in memory. A number above `usize::MAX` becomes `usize::MAX`, which no buffer reaches.
pub(crate) fn saturating_usize(bytes: impl TryInto<usize>) -> usize {
    saturating(bytes, usize::MAX)
}

/// Where something is guessed to be. A guess that is wrong costs a search.
pub(crate) fn saturating_u32(bytes: impl TryInto<u32>) -> u32 {
    saturating(bytes, u32::MAX)
}

/// An offset in an Arrow array. Data ends before 2^31 bytes; arrays with longer data are refused.
pub(crate) fn saturating_i32(bytes: usize) -> i32 {
    saturating(bytes, i32::MAX)
}

/// A number of bytes or an offset in a file, as a signed number. In files they are below 2^63.
#[cfg(feature = "arrow")]
pub(crate) fn saturating_i64(bytes: u64) -> i64 {
    saturating(bytes, i64::MAX)
}

/// A filter's bound, which is not negative. No offset in a file reaches the bounds that saturate.
#[cfg(feature = "chunked")]
pub(crate) fn saturating_bound(bound: i128) -> u64 {
    saturating(bound, u64::MAX)
}

/// A time as a number of ticks. A time that is too late saturates again in the caller's own type.
pub(crate) fn saturating_u64(ticks: u128) -> u64 {
    saturating(ticks, u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_the_greatest() {
        assert_eq!(
            [saturating_usize(7_u64), saturating_usize(u128::MAX)],
            [7, usize::MAX]
        );
        assert_eq!([7, usize::MAX].map(saturating_u32), [7, u32::MAX]);
        assert_eq!([7, usize::MAX].map(saturating_i32), [7, i32::MAX]);
        #[cfg(feature = "arrow")]
        assert_eq!([7, u64::MAX].map(saturating_i64), [7, i64::MAX]);
        assert_eq!([7, u128::MAX].map(saturating_u64), [7, u64::MAX]);
    }
}
