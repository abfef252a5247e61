//! The conversions of numbers that may cut them off. Each gives the greatest number of the smaller type for what that cannot hold,
//! and says why that is right.

/// So many bytes as a length in memory; what no memory can hold is `usize::MAX`, which nothing that is read is as long as.
pub(crate) fn saturating_usize(bytes: impl TryInto<usize>) -> usize {
    bytes.try_into().unwrap_or(usize::MAX)
}

/// A length or offset within an Arrow view. Buffers that views name end before 2^31 bytes: arrays of longer ones are refused.
#[cfg(feature = "arrow")]
pub(crate) fn saturating_u32(bytes: usize) -> u32 {
    bytes.try_into().unwrap_or(u32::MAX)
}

/// An offset within an Arrow array, whose data ends before 2^31 bytes: arrays of longer data are refused.
pub(crate) fn saturating_i32(bytes: usize) -> i32 {
    bytes.try_into().unwrap_or(i32::MAX)
}

/// A number of bytes or an offset in a file as a signed number: those of files are below 2^63.
#[cfg(feature = "arrow")]
pub(crate) fn saturating_i64(bytes: u64) -> i64 {
    bytes.try_into().unwrap_or(i64::MAX)
}

/// A bound of a filter, which is not negative: no offset in a file is as great as what it cuts off.
#[cfg(feature = "chunked")]
pub(crate) fn saturating_bound(bound: i128) -> u64 {
    bound.try_into().unwrap_or(u64::MAX)
}

/// A time as a count of ticks; what is too late for any count is cut off again by what that counts for.
pub(crate) fn saturating_u64(ticks: u128) -> u64 {
    ticks.try_into().unwrap_or(u64::MAX)
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
        #[cfg(feature = "arrow")]
        assert_eq!([7, usize::MAX].map(saturating_u32), [7, u32::MAX]);
        assert_eq!([7, usize::MAX].map(saturating_i32), [7, i32::MAX]);
        #[cfg(feature = "arrow")]
        assert_eq!([7, u64::MAX].map(saturating_i64), [7, i64::MAX]);
        assert_eq!([7, u128::MAX].map(saturating_u64), [7, u64::MAX]);
    }
}
